#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

// Values while a condition is evaluated, and the memory that they lie in.

namespace thalweg::rules {

__extension__ typedef __int128 Wide;  // for results before they are checked against a range

// pg_type.oid of the types that a condition may compute with; other oids occur as candidates of resolution only.
enum class Type : uint32_t {
  none = 0,
  boolean = 16,
  bytea = 17,
  name = 19,
  int8 = 20,
  int2 = 21,
  int4 = 23,
  text = 25,
  float4 = 700,
  float8 = 701,
  unknown = 705,  // a string or a NULL that has no type yet
  bpchar = 1042,
  varchar = 1043,
  date = 1082,
  time = 1083,
  timestamp = 1114,
  timestamptz = 1184,
  interval = 1186,
  numeric = 1700,
  uuid = 2950,
  jsonb = 3802,
  any_enum = 3500,  // stands for every enum type
};

enum class State : uint8_t { value, null, undecidable };

struct Datum {
  struct Calendar {
    int32_t days;
    int32_t months;
  };
  union {
    int64_t integer = 0;  // bool, int2..8; date: days; time, timestamp, timestamptz: microseconds; interval: its time
    double real;          // float4, float8
  };
  union {
    const char* data = nullptr;  // text and the like, bytea, uuid, enum, jsonb's text; numeric: as sent (numeric.h)
    Calendar calendar;           // interval
  };
  uint32_t size = 0;
  State state = State::null;

  std::string_view text() const { return {data, size}; }
};

// Why an expression has no value. Zero is success.
enum class Failure : uint8_t {
  none,
  division_by_zero,
  out_of_range,
  invalid_text,
  invalid_datetime,
  datetime_overflow,
  invalid_substring,
  invalid_escape,
  invalid_parameter,
  invalid_index,      // of a byte or bit
  invalid_root,       // the square root of a negative number
  invalid_character,  // no character has the number
  not_supported,
  too_large,         // the value does not fit into the scratch memory
  too_costly,        // more steps than one evaluation may take
  corrupt,           // bytes that cannot be a value of the column's type
  unsupported_form,  // a literal that PostgreSQL may read, but not without its settings; only while compiling
};

std::string_view sqlstate_of(Failure failure);
std::string_view message_of(Failure failure);

inline constexpr size_t kScratchBytes = size_t{1} << 20;
// Steps of functions whose time grows with the product of two lengths: a few tenths of a second.
inline constexpr uint64_t kStepsMax = uint64_t{1} << 27;

// Memory for the strings and numbers of one evaluation, taken at once and never grown. Owner: one thread.
class Scratch {
 public:
  Scratch() : bytes_(std::make_unique_for_overwrite<char[]>(kScratchBytes)) {}
  // Aligned to 8; nullptr when it is used up.
  char* take(size_t size) {
    const size_t rounded = (size + 7) & ~size_t{7};
    if (rounded > kScratchBytes - used_) return nullptr;
    char* const taken = bytes_.get() + used_;
    used_ += rounded;
    return taken;
  }
  template <typename T>
  T* take_array(size_t count) {
    return reinterpret_cast<T*>(take(count * sizeof(T)));
  }
  // False: the evaluation has used up its steps.
  bool spend(uint64_t steps) {
    steps_ += steps;
    return steps_ <= kStepsMax;
  }
  void clear_memory() { used_ = 0; }
  // Empties the memory for the next evaluation.
  void clear() {
    clear_memory();
    steps_ = 0;
  }

 private:
  std::unique_ptr<char[]> bytes_;
  size_t used_ = 0;
  uint64_t steps_ = 0;
};

// All arguments are values, never NULL; those that the function has not are unspecified. Fills `out`, whose state is
// `value` already.
// More than three arguments lie behind one another: `a` is the first of them (arguments_from).
using Function = Failure (*)(Scratch& scratch, const Datum& a, const Datum& b, const Datum& c, Datum& out);

// All arguments of a function that has more than three.
inline const Datum* arguments_from(const Datum& a) { return &a; }

inline Failure give_text(Datum& out, std::string_view text) {
  out.data = text.data();
  out.size = static_cast<uint32_t>(text.size());
  return Failure::none;
}

}  // namespace thalweg::rules
