#include <algorithm>

#include "dictionary/dictionary.h"

// Ends of transactions: what they did to the catalogs holds from then on for everybody, or never was.

namespace thalweg::dictionary {

base::Result<void> Dictionary::apply_transaction(const wal::WalRecord& record, const wal::RecordParts& parts,
                                                 const wal::WalFormat& format) {
  THALWEG_ASSIGN(const wal::TransactionRecord parsed, wal::parse_transaction(record, parts, format));
  switch (parsed.operation) {
    case wal::TransactionOperation::none:
      return {};
    case wal::TransactionOperation::commit:
      return commit(record, parsed);
    case wal::TransactionOperation::abort:
      abort(parsed);
      return {};
    case wal::TransactionOperation::prepare:
      transactions_.prepare(record.xid);
      return {};
    case wal::TransactionOperation::assignment:
      for (const base::Xid xid : parsed.subtransactions) transactions_.assign(xid, parsed.xid);
      return {};
  }
  return {};
}

void Dictionary::end_one(base::Xid xid, bool committed) {
  if (transactions_.has_touched(xid)) ++changes_;
  for (const Touched& touched : transactions_.take(xid)) {
    const auto file = files_.find(touched.file);
    if (file == files_.end()) continue;  // that of a rewrite that was given up
    Version* const version = file->second.find(touched.place);
    if (version == nullptr) continue;
    base::Xid& mark = touched.inserted ? version->inserted_by : version->removed_by;
    if (mark != xid) continue;
    mark = {};
    if (touched.inserted != committed) file->second.erase(touched.place);
  }
}

base::Result<void> Dictionary::commit(const wal::WalRecord& record, const wal::TransactionRecord& end) {
  // A catalog that is rewritten and not in the map of files is told by its row of pg_class where it is from now on.
  for (Rewrite& rewrite : rewrites_) {
    if (transactions_.top_of(rewrite.by) != end.xid || description_of(rewrite.catalog).is_mapped) continue;
    std::optional<int64_t> number;
    constexpr size_t kByOid = 0;
    rows_with_key(Catalog::pg_class, kByOid, description_of(rewrite.catalog).oid, end.xid,
                  [&](const Row& row) { number = std::get<int64_t>(row[class_column::filenode]); });
    if (number == rewrite.number && !rewrite.is_current) THALWEG_TRY(make_current(record, rewrite));
  }
  end_one(end.xid, true);
  for (const base::Xid xid : end.subtransactions) end_one(xid, true);
  // Of its other subtransactions each one's abort came before; one that is forgotten at the source has none.
  for (const base::Xid xid : transactions_.end(end.xid)) end_one(xid, false);
  end_rewrites(end.xid, true);
  for (const base::Xid xid : end.subtransactions) end_rewrites(xid, true);
  return {};
}

void Dictionary::abort(const wal::TransactionRecord& end) {
  end_one(end.xid, false);
  for (const base::Xid xid : end.subtransactions) end_one(xid, false);
  // A subtransaction's abort ends no other.
  const bool is_whole = transactions_.top_of(end.xid) == end.xid;
  if (is_whole) {
    for (const base::Xid xid : transactions_.end(end.xid)) end_one(xid, false);
  }
  end_rewrites(end.xid, false);
  for (const base::Xid xid : end.subtransactions) end_rewrites(xid, false);
}

void Dictionary::abort_all(const std::vector<base::Xid>& top_level) {
  for (const base::Xid xid : top_level) {
    for (const base::Xid left : transactions_.end(xid)) {
      end_one(left, false);
      end_rewrites(left, false);
    }
    end_rewrites(xid, false);
  }
}

}  // namespace thalweg::dictionary
