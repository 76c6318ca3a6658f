#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "dictionary/dictionary.h"
#include "mining/send_form.h"

// The conversions of types as the dictionary has them for one transaction.

namespace thalweg::mining {

// Owner: whoever reads a table. Forms outlive it.
class TypeForms {
 public:
  // `viewer`: the transaction whose rows are converted.
  TypeForms(const dictionary::Dictionary& dictionary, base::Xid viewer) : dictionary_(dictionary), viewer_(viewer) {}

  // Null: the type is none of those that are known.
  std::shared_ptr<const SendForm> of(uint32_t type);
  // A row of pg_attribute. Without a form: it is dropped, or of a type that is not known.
  StoredAttribute attribute(const dictionary::Row& row);

 private:
  std::shared_ptr<const SendForm> make(uint32_t type);
  std::optional<dictionary::Row> type_row(uint32_t type) const;
  bool complete(const dictionary::Row& row, SendForm& form);
  bool complete_base(const dictionary::Row& row, SendForm& form);
  bool complete_enum(SendForm& form);
  bool complete_range(SendForm& form, size_t key);
  bool complete_composite(const dictionary::Row& row, SendForm& form);

  const dictionary::Dictionary& dictionary_;
  const base::Xid viewer_;
  // Null also while it is being made: no type is a part of itself.
  std::unordered_map<uint32_t, std::shared_ptr<const SendForm>> made_;
  size_t depth_ = 0;
};

// The rows of pg_attribute of a relation, without those of the system, by attnum.
std::vector<dictionary::Row> attributes_of(const dictionary::Dictionary& dictionary, uint32_t relation,
                                           base::Xid viewer);

}  // namespace thalweg::mining
