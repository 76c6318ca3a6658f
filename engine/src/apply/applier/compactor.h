#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apply/applier/tuple_values.h"
#include "metadata/table_metadata.h"

// Merges the changes of one table's rows, so that each row is touched once (Salinas-Monteagudo and Muñoz-Escoí 2008,
// section 2.7). An update here holds only the columns that came, so two updates merge column by column instead of the
// later one winning whole.

namespace thalweg::apply {

enum class RowState : uint8_t {
  insert,
  update,
  remove,
  remove_insert,  // an old row goes, a new one with the same key comes
  nothing,        // came and went
};

struct RowChange {
  uint64_t hash;
  Values values;  // insert: all; update: UNCHANGED where nothing came; remove: the identity's only
  // The values of the row before the first of its changes, with its identity, where some are compared (OldValues); else
  // null.
  const lcr::Value* old;
  const std::byte* frame;  // the last frame that had a part in it
  uint32_t bytes;          // roughly, of the values
  RowState state;
  bool has_text;  // a value came in text form: not for arrays and COPY
  bool has_unchanged;
};

// Owner: one applier. Values lie in its arena.
class Compactor {
 public:
  explicit Compactor(const metadata::TableMetadata& table) : table_(table) {}

  // False: the change does not fit what came before (an insert of a row that is there). The group must be executed in
  // row order, which names the conflict.
  bool insert(Values values, const std::byte* frame);
  // `old`: as in RowChange.
  bool update(Values values, const lcr::Value* old, const std::byte* frame);  // identity unchanged
  bool remove(Values identity, const lcr::Value* old, const std::byte* frame);

  const metadata::TableMetadata& table() const { return table_; }
  std::span<const RowChange> changes() const { return changes_; }
  size_t size() const { return changes_.size(); }
  void clear();

 private:
  RowChange* find(uint64_t hash, const lcr::Value* values);
  RowChange& add(uint64_t hash, RowState state, Values values, const lcr::Value* old, const std::byte* frame);
  void grow();
  uint64_t hash_of(const lcr::Value* values) const;
  void describe(RowChange& change) const;

  const metadata::TableMetadata& table_;
  std::vector<RowChange> changes_;
  std::vector<uint32_t> slots_;  // open addressing: index + 1 into changes_, 0 free; at most half full
};

}  // namespace thalweg::apply
