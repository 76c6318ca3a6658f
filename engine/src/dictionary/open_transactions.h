#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "dictionary/catalog_file.h"

// Transactions of the source that have not ended: which belong together, and the catalogs' rows that they touched.

namespace thalweg::dictionary {

// A version that a transaction inserted or removed.
struct Touched {
  uint32_t file = 0;  // its number
  Place place;
  bool inserted = false;
};

// Owner: the dictionary. Only subtransactions, and those that touched a catalog or were prepared, take memory.
class OpenTransactions {
 public:
  // As a subtransaction's first record tells it.
  void assign(base::Xid subtransaction, base::Xid top_level);
  // The transaction itself, where it is no subtransaction.
  base::Xid top_of(base::Xid xid) const;
  void touch(base::Xid xid, const Touched& touched) { touched_[xid].push_back(touched); }
  bool has_touched(base::Xid xid) const { return touched_.contains(xid); }
  // Or a subtransaction of it did.
  bool has_touched_any(base::Xid top_level) const;
  // Versions that it touched; they are forgotten here.
  std::vector<Touched> take(base::Xid xid);
  void prepare(base::Xid top_level) { prepared_.emplace(top_level, true); }
  // Forgets a transaction and its subtransactions; gives those of them that still have touched something.
  std::vector<base::Xid> end(base::Xid top_level);
  // Those that touched something, or have subtransactions, and are not prepared.
  std::vector<base::Xid> not_prepared() const;
  // Of those the ones that began before this one.
  std::vector<base::Xid> not_prepared_before(base::Xid oldest) const;

 private:
  friend class DictionaryFile;
  std::unordered_map<base::Xid, std::vector<Touched>> touched_;
  std::unordered_map<base::Xid, base::Xid> top_level_;               // by subtransaction
  std::unordered_map<base::Xid, std::vector<base::Xid>> belonging_;  // by top-level transaction
  std::unordered_map<base::Xid, bool> prepared_;
};

}  // namespace thalweg::dictionary
