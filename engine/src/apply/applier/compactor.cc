#include "apply/applier/compactor.h"

#include <algorithm>

#include "metadata/key_hash.h"

namespace thalweg::apply {

using lcr::ValueMark;

namespace {

constexpr size_t kSlotsMin = 64;

// Overwrites `into` with the columns of `from` that are not UNCHANGED.
void merge(const metadata::TableMetadata& table, Values into, const lcr::Value* from) {
  for (size_t column = 0; column < table.columns.size(); ++column) {
    if (from[column].mark != ValueMark::unchanged) into[column] = from[column];
  }
}

}  // namespace

uint64_t Compactor::hash_of(const lcr::Value* values) const {
  uint64_t hash = table_.table_hash;
  for (const uint16_t column : table_.identity) {
    hash = metadata::mix_hash(hash, metadata::hash_bytes(values[column].bytes, 0));
  }
  return hash;
}

RowChange* Compactor::find(uint64_t hash, const lcr::Value* values) {
  if (slots_.empty()) return nullptr;
  const size_t mask = slots_.size() - 1;
  for (size_t slot = hash & mask; slots_[slot] != 0; slot = (slot + 1) & mask) {
    RowChange& change = changes_[slots_[slot] - 1];
    if (change.hash == hash && same_identity(table_, change.values, values)) return &change;
  }
  return nullptr;
}

void Compactor::grow() {
  slots_.assign(std::max(kSlotsMin, slots_.size() * 2), 0);
  const size_t mask = slots_.size() - 1;
  for (size_t i = 0; i < changes_.size(); ++i) {
    size_t slot = changes_[i].hash & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = static_cast<uint32_t>(i + 1);
  }
}

RowChange& Compactor::add(uint64_t hash, RowState state, Values values, const lcr::Value* old, const std::byte* frame) {
  if (!table_.keyless()) {
    if ((changes_.size() + 1) * 2 > slots_.size()) grow();
    const size_t mask = slots_.size() - 1;
    size_t slot = hash & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = static_cast<uint32_t>(changes_.size() + 1);
  }
  changes_.push_back({.hash = hash,
                      .values = values,
                      .old = old,
                      .frame = frame,
                      .bytes = 0,
                      .state = state,
                      .has_text = false,
                      .has_unchanged = false});
  return changes_.back();
}

void Compactor::describe(RowChange& change) const {
  change.has_text = false;
  change.has_unchanged = false;
  uint64_t bytes = 0;
  for (size_t column = 0; column < table_.columns.size(); ++column) {
    const lcr::Value& value = change.values[column];
    change.has_text |= value.mark == ValueMark::text;
    change.has_unchanged |= value.mark == ValueMark::unchanged;
    bytes += value.bytes.size() + 4;
    if (change.old == nullptr) continue;
    change.has_text |= change.old[column].mark == ValueMark::text;
    bytes += change.old[column].bytes.size();
  }
  change.bytes = static_cast<uint32_t>(std::min<uint64_t>(bytes, UINT32_MAX));
}

bool Compactor::insert(Values values, const std::byte* frame) {
  if (table_.keyless()) {
    describe(add(0, RowState::insert, values, nullptr, frame));
    return true;
  }
  const uint64_t hash = hash_of(values);
  RowChange* const before = find(hash, values);
  if (before == nullptr) {
    describe(add(hash, RowState::insert, values, nullptr, frame));
    return true;
  }
  if (before->state != RowState::remove && before->state != RowState::nothing) return false;
  before->state = before->state == RowState::remove ? RowState::remove_insert : RowState::insert;
  before->values = values;
  before->frame = frame;
  describe(*before);
  return true;
}

bool Compactor::update(Values values, const lcr::Value* old, const std::byte* frame) {
  const uint64_t hash = hash_of(values);
  RowChange* const before = find(hash, values);
  if (before == nullptr) {
    describe(add(hash, RowState::update, values, old, frame));
    return true;
  }
  if (before->state == RowState::remove || before->state == RowState::nothing) return false;
  merge(table_, before->values, values);
  before->frame = frame;
  describe(*before);
  return true;
}

bool Compactor::remove(Values identity, const lcr::Value* old, const std::byte* frame) {
  const uint64_t hash = hash_of(identity);
  RowChange* const before = find(hash, identity);
  if (before == nullptr) {
    describe(add(hash, RowState::remove, identity, old, frame));
    return true;
  }
  switch (before->state) {
    case RowState::insert:
      before->state = RowState::nothing;
      break;
    case RowState::update:
    case RowState::remove_insert:
      before->state = RowState::remove;
      break;
    case RowState::remove:
    case RowState::nothing:
      return false;
  }
  before->values = identity;
  before->frame = frame;
  describe(*before);
  return true;
}

void Compactor::clear() {
  changes_.clear();
  std::ranges::fill(slots_, 0U);
}

}  // namespace thalweg::apply
