#pragma once

#include <cstdint>
#include <string_view>

#include "rules/value.h"

// jsonb values as the text that jsonb_out writes: keys are unique, and the text of a part is a part of the text. Every
// function takes a time that grows with the text's length, whatever its depth; none allocates.

namespace thalweg::rules {

enum class DocumentKind : uint8_t { object, array, string, number, boolean, null, corrupt };
DocumentKind kind_of(std::string_view document);

// The members of an object, or the elements of an array, one after the other.
class DocumentParts {
 public:
  explicit DocumentParts(std::string_view container);

  // False: there is no further part, or the text is no document (is_corrupt).
  bool next();
  bool is_corrupt() const { return corrupt_; }
  std::string_view key() const { return key_; }  // in its quotes; of an object
  std::string_view value() const { return value_; }

 private:
  bool take(char wanted);
  bool fail();

  std::string_view rest_;
  bool is_object_;
  bool first_ = true;
  bool corrupt_ = false;
  std::string_view key_;
  std::string_view value_;
};

// A string in its quotes. The result lies in `quoted` where it has no escapes, else in `scratch`.
Failure unquoted(Scratch& scratch, std::string_view quoted, Datum& out);
// Whether that is the string. One that is corrupt equals nothing.
bool equals_unquoted(std::string_view quoted, std::string_view text);

}  // namespace thalweg::rules
