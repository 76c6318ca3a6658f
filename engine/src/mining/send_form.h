#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

// The values of types from the form in which tables have them (Datums) to the form in which their send functions send
// them (src/backend/utils/adt).

namespace thalweg::mining {

struct SendForm;

// Appends the sent form of `content`, which is a value without its length. False: these are no bytes of the type; what
// was appended is to be thrown away.
using Convert = bool (*)(const SendForm& form, std::span<const std::byte> content, std::string& out);

// A column of a table or an attribute of a composite type, by attnum.
struct StoredAttribute {
  uint32_t type = 0;
  int16_t length = 0;  // attlen
  char align = 'c';    // attalign
  bool is_dropped = false;
  // Rows that are older than the attribute have a value that the catalog tells (attmissingval). Null with it: what the
  // catalog tells cannot be sent.
  bool has_missing = false;
  std::optional<std::string> missing = {};    // sent
  std::shared_ptr<const SendForm> form = {};  // null: dropped, or of a type that is not known
};

// How a type's values are converted. Immutable. Which of the members below matter depends on the conversion.
struct SendForm {
  Convert convert = nullptr;
  uint32_t type = 0;
  int16_t length = 0;  // typlen: -1 begins with its length
  char align = 'c';    // typalign
  // It depends on labels or attributes, which can be changed later.
  bool may_change = false;
  std::array<uint8_t, 4> parts = {};             // of swapped ones: the bytes of each integer, up to the first 0
  std::shared_ptr<const SendForm> element = {};  // of arrays; of ranges and multiranges: of the bounds
  std::shared_ptr<const std::unordered_map<uint32_t, std::string>> labels = {};  // of enums, by their oids
  std::vector<StoredAttribute> attributes = {};                                  // of composites

  bool append(std::span<const std::byte> content, std::string& out) const { return convert(*this, content, out); }
};

// The value of a frame, an element or an attribute: the length in four bytes, then the sent form.
bool append_sized(const SendForm& form, std::span<const std::byte> content, std::string& out);

}  // namespace thalweg::mining
