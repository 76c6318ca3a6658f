#include "dictionary/open_transactions.h"

#include <algorithm>

namespace thalweg::dictionary {

void OpenTransactions::assign(base::Xid subtransaction, base::Xid top_level) {
  if (subtransaction == top_level || !subtransaction || !top_level) return;
  if (top_level_.emplace(subtransaction, top_level).second) belonging_[top_level].push_back(subtransaction);
}

base::Xid OpenTransactions::top_of(base::Xid xid) const {
  const auto found = top_level_.find(xid);
  return found == top_level_.end() ? xid : found->second;
}

bool OpenTransactions::has_touched_any(base::Xid top_level) const {
  if (touched_.empty()) return false;
  if (touched_.contains(top_level)) return true;
  const auto found = belonging_.find(top_level);
  if (found == belonging_.end()) return false;
  // This is asked for each row: by whichever are fewer.
  if (touched_.size() < found->second.size()) {
    return std::ranges::any_of(touched_, [&](const auto& touched) { return top_of(touched.first) == top_level; });
  }
  return std::ranges::any_of(found->second, [&](base::Xid xid) { return touched_.contains(xid); });
}

std::vector<Touched> OpenTransactions::take(base::Xid xid) {
  const auto found = touched_.find(xid);
  if (found == touched_.end()) return {};
  std::vector<Touched> touched = std::move(found->second);
  touched_.erase(found);
  return touched;
}

std::vector<base::Xid> OpenTransactions::end(base::Xid top_level) {
  std::vector<base::Xid> left;
  if (touched_.contains(top_level)) left.push_back(top_level);
  if (const auto found = belonging_.find(top_level); found != belonging_.end()) {
    for (const base::Xid subtransaction : found->second) {
      top_level_.erase(subtransaction);
      if (touched_.contains(subtransaction)) left.push_back(subtransaction);
    }
    belonging_.erase(found);
  }
  prepared_.erase(top_level);
  return left;
}

std::vector<base::Xid> OpenTransactions::not_prepared() const {
  std::vector<base::Xid> open;
  const auto add = [&](base::Xid xid) {
    const base::Xid top_level = top_of(xid);
    if (!prepared_.contains(top_level) && std::ranges::find(open, top_level) == open.end()) open.push_back(top_level);
  };
  for (const auto& [xid, touched] : touched_) add(xid);
  for (const auto& [top_level, subtransactions] : belonging_) add(top_level);
  return open;
}

std::vector<base::Xid> OpenTransactions::not_prepared_before(base::Xid oldest) const {
  std::vector<base::Xid> open = not_prepared();
  // Numbers wrap: half of them are before each (TransactionIdPrecedes of src/backend/access/transam/transam.c).
  std::erase_if(open, [&](base::Xid xid) { return static_cast<int32_t>(xid.value - oldest.value) >= 0; });
  return open;
}

}  // namespace thalweg::dictionary
