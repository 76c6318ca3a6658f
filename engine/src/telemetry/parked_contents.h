#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The changes of a parked transaction, row by row, beside the destination's current rows, as GET
// /v1/streams/{id}/errors/{error_id} shows them.

namespace thalweg::telemetry {

inline constexpr size_t kParkedChangesShownMax = 100;
inline constexpr size_t kParkedValueBytesMax = 1024;
// Of those who ask for whole values: of all values of one change together, and of a page's, which ends behind the
// change that goes beyond.
inline constexpr size_t kWholeChangeBytesMax = size_t{32} * 1024 * 1024;
inline constexpr size_t kWholePageBytesMax = size_t{8} * 1024 * 1024;

// A column's value as the destination's server writes it.
struct ShownValue {
  enum class State : uint8_t {
    absent,     // the change does not tell it: of an old row, say, that came as its key only
    null,       // NULL
    unchanged,  // stored outside the row, and not sent because it stayed as it was
    text,
    raw,  // the server could not read it as the column's type: the bytes as they came, in hex unless they are text
  };
  State state = State::absent;
  std::string text;    // kParkedValueBytesMax at most, unless whole ones are asked for
  uint64_t bytes = 0;  // of all of it
  uint64_t hash = 0;   // of all of it, as the server writes it
  bool cut = false;    // `text` is its beginning

  bool has_text() const { return state == State::text || state == State::raw; }
};

// An operator's decision about one change of a parked transaction: it is left out, or applied with other values.
struct ParkedEdit {
  bool left_out = false;
  std::map<std::string, std::optional<std::string>> values = {};  // by column, in text form; none: NULL
  std::string reason;
};

struct ShownColumn {
  std::string name;
  bool is_identity = false;  // by it the row is found at the destination
  ShownValue wanted;
  ShownValue before;
  ShownValue now;
};

struct ShownChange {
  uint64_t number = 0;         // in the transaction, from 1; those of one TRUNCATE share it
  std::string_view operation;  // INSERT, UPDATE, DELETE, TRUNCATE: a string literal
  std::string schema_name;
  std::string table_name;
  std::vector<ShownColumn> columns;  // none of a TRUNCATE
  // The row of `now`: found by these columns; all of them where the table has no key, none where nothing was looked
  // for.
  std::vector<std::string> found_by;
  std::optional<uint64_t> rows_found;  // unknown: not looked for, or `problem`
  std::string problem;                 // why the destination's row is not known
  std::optional<ParkedEdit> edit = {};
};

// The changes to show: those with a higher number than `after`, the lowest first.
struct ChangesPart {
  uint64_t after = 0;
  uint64_t limit = kParkedChangesShownMax;  // those of one TRUNCATE are one
  std::optional<uint64_t> only = {};        // instead: this one
  bool whole = false;                       // values longer than kParkedValueBytesMax too, as far as there is room
};

struct ParkedContents {
  uint64_t changes_total = 0;
  std::vector<ShownChange> changes;         // in the transaction's order
  std::optional<uint64_t> next_after = {};  // none: the transaction has no more
};

}  // namespace thalweg::telemetry
