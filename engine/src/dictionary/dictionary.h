#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "dictionary/catalog_file.h"
#include "dictionary/catalog_layout.h"
#include "dictionary/catalogs.h"
#include "dictionary/first_contents.h"
#include "dictionary/open_transactions.h"
#include "wal/file_records.h"
#include "wal/heap_page.h"
#include "wal/heap_records.h"
#include "wal/record_parts.h"
#include "wal/transaction_records.h"
#include "wal/wal_format.h"
#include "wal/wal_record.h"

// A shadow of the source's catalogs: what a row meant where its record stands in the WAL. It begins with what the
// source tells by SQL, and is kept by applying the catalogs' own records; their old rows, which compressed updates
// refer to, come from the pages' images, of which each page has one behind a redo pointer (XLogCheckBufferNeedsBackup
// of src/backend/access/transam/xloginsert.c).

namespace thalweg::dictionary {

// Owner: one thread. Nothing follows an error.
class Dictionary {
 public:
  // The WAL is then applied from a redo pointer on that is before every transaction that ran at `contents.as_of`.
  static base::Result<Dictionary> begin(FirstContents contents);

  // Applies the next record; records come in their order and without a gap. A protocol_violation: the record, or an
  // image in it, contradicts what is known.
  base::Result<void> apply(const wal::WalRecord& record, const wal::RecordParts& parts, const wal::WalFormat& format);
  // The next record begins there. apply() does this, too: whoever has to ask before that record counts, calls it.
  base::Result<void> reach(base::Lsn begin);

  // Whether it has come to the position of its first contents. Before, it must not be asked.
  bool is_ready() const { return !first_; }
  // Behind the last record that was applied.
  base::Lsn position() const { return position_; }
  uint32_t database() const { return place_.database; }  // its oid
  // Grows whenever an answer below may be another one than before.
  uint64_t changes() const { return changes_; }
  // Of a subtransaction its top-level one, else itself.
  base::Xid top_of(base::Xid xid) const { return transactions_.top_of(xid); }
  // Whether the transaction, or one of its subtransactions, sees changes of its own.
  bool has_own_changes(base::Xid top_level) const { return transactions_.has_touched_any(top_level); }

  // Rows as a transaction sees them here: what committed before, and what it did itself. `viewer`: none for one that
  // did nothing; a subtransaction sees what its top-level transaction sees.
  void rows(Catalog catalog, base::Xid viewer, const std::function<void(Row)>& take) const;
  void rows_with_key(Catalog catalog, size_t key, int64_t value, base::Xid viewer,
                     const std::function<void(Row)>& take) const;
  // The oid of the relation that has this file for that transaction, if its database is the dictionary's. Null: none,
  // or a catalog whose file is not in pg_class.
  std::optional<uint32_t> relation_of(const wal::RelationFile& file, base::Xid viewer) const;

 private:
  friend class DictionaryFile;
  Dictionary() = default;

  // A catalog's second file, into which a transaction copies it.
  struct Rewrite {
    Catalog catalog = Catalog::pg_class;
    base::Xid by;
    uint32_t number = 0;
    uint32_t before = 0;      // the file that it takes the place of
    bool is_current = false;  // it has taken its place, for good only once the transaction has committed
    bool is_mapped = false;   // for good, by the map of files, whatever becomes of the transaction
  };

  CatalogFile* file_of(const wal::RelationFile& file);
  CatalogFile& current(Catalog catalog) { return files_.at(numbers_.at(static_cast<size_t>(catalog))); }
  const CatalogFile& current(Catalog catalog) const { return files_.at(numbers_.at(static_cast<size_t>(catalog))); }
  bool sees(const Version& version, base::Xid viewer) const;

  base::Result<void> apply_heap(const wal::WalRecord& record, const wal::RecordParts& parts);
  base::Result<void> apply_in_place(const wal::WalRecord& record, const wal::HeapChange& change, CatalogFile& file);
  base::Result<Version> version_of(const wal::WalRecord& record, const wal::NewTuple& added,
                                   const wal::HeapChange& change, const Version* old);
  base::Result<void> remove(const wal::WalRecord& record, const wal::RelationFile& file, Place place);
  base::Result<void> add(const wal::WalRecord& record, const wal::RelationFile& file, Place place, Version version);
  base::Result<void> compare_image(const wal::WalRecord& record, const wal::BlockReference& block);
  base::Result<void> compare_tuple(const wal::WalRecord& record, CatalogFile& file, Place place,
                                   const wal::PageTuple& tuple);
  base::Result<void> apply_transaction(const wal::WalRecord& record, const wal::RecordParts& parts,
                                       const wal::WalFormat& format);
  void end_one(base::Xid xid, bool committed);
  base::Result<void> commit(const wal::WalRecord& record, const wal::TransactionRecord& end);
  void abort(const wal::TransactionRecord& end);
  void abort_all(const std::vector<base::Xid>& top_level);
  base::Result<void> apply_files(const wal::WalRecord& record, const wal::RecordParts& parts);

  base::Result<void> settle();
  // Of rewrites of catalogs.
  base::Result<void> note_rewrite(const wal::WalRecord& record, const Version& version);
  base::Result<void> make_current(const wal::WalRecord& record, Rewrite& rewrite);
  base::Result<void> follow_map(const wal::WalRecord& record, const wal::FileMap& map);
  void end_rewrites(base::Xid xid, bool committed);

  base::Lsn position_;
  uint64_t changes_ = 0;
  wal::RelationFile place_;  // the tablespace and the database of all of them
  std::array<std::shared_ptr<const CatalogLayout>, kCatalogs> layouts_;
  std::array<uint32_t, kCatalogs> numbers_{};        // of the current files
  std::unordered_map<uint32_t, CatalogFile> files_;  // by number: current ones, and those of rewrites
  std::vector<Rewrite> rewrites_;
  OpenTransactions transactions_;
  std::optional<FirstContents> first_;  // until its position
  bool was_rewritten_ = false;          // a catalog, before that
  wal::HeapRecords heap_records_;
  wal::HeapPage page_;
};

}  // namespace thalweg::dictionary
