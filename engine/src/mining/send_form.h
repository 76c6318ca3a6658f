#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "base/ids.h"
#include "dictionary/dictionary.h"

// The values of types from the form in which tables have them (Datums) to the form in which their send functions send
// them (src/backend/utils/adt).

namespace thalweg::mining {

// How a type's values are converted. Immutable.
struct SendForm {
  enum class Kind : uint8_t {
    copied,   // the bytes are the same
    swapped,  // integers of the machine, one after the other, to network byte order
    name,     // up to the first zero byte
    bits,     // their number, then the bits
    numeric,
    array,
    label,  // an enum's, by its oid
    tuple_id,
  };
  Kind kind = Kind::copied;
  uint32_t type = 0;
  int16_t length = 0;  // typlen: -1 begins with its length
  char align = 'c';
  uint8_t parts[4] = {};                         // of swapped ones: the bytes of each integer, up to the first 0
  std::shared_ptr<const SendForm> element = {};  // of arrays
  std::shared_ptr<const std::unordered_map<uint32_t, std::string>> labels = {};  // of enums

  // Appends the sent form of `content`, which is the value without its length. False: these are no bytes of the type.
  bool append(std::span<const std::byte> content, std::string& out) const;
};

// Null: the type cannot be mined yet. `viewer`: the transaction whose row it is.
std::shared_ptr<const SendForm> send_form_of(const dictionary::Dictionary& dictionary, uint32_t type, base::Xid viewer);

}  // namespace thalweg::mining
