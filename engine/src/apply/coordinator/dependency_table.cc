#include "apply/coordinator/dependency_table.h"

#include <algorithm>
#include <bit>

namespace thalweg::apply {

namespace {

constexpr size_t kSlotsMin = 4096;

void add_once(std::vector<uint64_t>& numbers, uint64_t number) {
  if (std::ranges::find(numbers, number) == numbers.end()) numbers.push_back(number);
}

}  // namespace

DependencyTable::DependencyTable() : entries_(kSlotsMin) {}

const DependencyTable::Entry* DependencyTable::look_up(uint64_t hash) const {
  const size_t mask = entries_.size() - 1;
  for (size_t slot = hash & mask; entries_[slot].used(); slot = (slot + 1) & mask) {
    if (entries_[slot].hash == hash) return &entries_[slot];
  }
  return nullptr;
}

DependencyTable::Entry& DependencyTable::slot_for(uint64_t hash) {
  const size_t mask = entries_.size() - 1;
  size_t slot = hash & mask;
  while (entries_[slot].used() && entries_[slot].hash != hash) slot = (slot + 1) & mask;
  if (!entries_[slot].used()) ++used_;
  entries_[slot].hash = hash;
  return entries_[slot];
}

void DependencyTable::rebuild(uint64_t committed_through, size_t more) {
  std::vector<Entry> before;
  before.swap(entries_);
  size_t live = more;
  for (const Entry& entry : before) live += std::max(entry.writer, entry.reader) > committed_through ? 1 : 0;
  entries_.assign(std::max(kSlotsMin, std::bit_ceil(live * 4)), {});
  used_ = 0;
  for (const Entry& entry : before) {
    if (std::max(entry.writer, entry.reader) > committed_through) slot_for(entry.hash) = entry;
  }
}

void DependencyTable::find(const TransactionHashes& hashes, uint64_t committed_through, uint64_t own,
                           Dependencies& found) const {
  const auto wait_for_writer = [&](const Entry* entry) {
    if (entry == nullptr || entry->writer <= committed_through || entry->writer == own) return false;
    add_once(found.predecessors, entry->writer);
    return true;
  };
  for (const auto writes : {hashes.writes, hashes.possible_writes}) {
    const bool is_exact = writes.data() == hashes.writes.data();
    for (const uint64_t hash : writes) {
      const Entry* const entry = look_up(hash);
      if (wait_for_writer(entry)) {
        if (is_exact) found.contested.push_back(hash);
        found.waits_whole = found.waits_whole || !is_exact;
      }
      if (entry == nullptr || entry->reader <= committed_through) continue;
      // Readers before the last one are not listed: wait for everything up to it.
      found.after = std::max(found.after, entry->reader == own ? own - 1 : entry->reader);
    }
  }
  for (const uint64_t hash : hashes.reads) {
    if (wait_for_writer(look_up(hash))) found.waits_whole = true;
  }
}

void DependencyTable::note(const TransactionHashes& hashes, uint64_t committed_through, uint64_t own) {
  const size_t more = hashes.writes.size() + hashes.possible_writes.size() + hashes.reads.size();
  if ((used_ + more) * 2 > entries_.size()) rebuild(committed_through, more);
  for (const uint64_t hash : hashes.writes) slot_for(hash).writer = own;
  for (const uint64_t hash : hashes.possible_writes) slot_for(hash).writer = own;
  for (const uint64_t hash : hashes.reads) slot_for(hash).reader = own;
}

}  // namespace thalweg::apply
