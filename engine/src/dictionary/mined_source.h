#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "dictionary/dictionary.h"
#include "dictionary/first_contents.h"
#include "pg/connection.h"
#include "pg/replication_stream.h"
#include "support/test_cluster.h"
#include "wal/wal_reader.h"

// A real source whose WAL the tests read from its own files, and its catalogs by SQL beside the dictionary's.

namespace thalweg::dictionary {

inline constexpr uint32_t kSegmentBytes = 16U << 20;

inline test::TestClusterOptions mined_options(std::map<std::string, std::string> more = {}) {
  // Hints are logged as images of pages, too: so every way in which a page gets into the WAL is met.
  std::map<std::string, std::string> settings{
      {"full_page_writes", "on"}, {"wal_log_hints", "on"},      {"wal_keep_size", "4GB"}, {"max_wal_size", "4GB"},
      {"autovacuum", "on"},       {"autovacuum_naptime", "1s"}, {"lock_timeout", "300ms"}};
  more.merge(settings);
  return {.settings = more, .hba_lines = {}};
}

// Owner: the test.
class MinedSource {
 public:
  explicit MinedSource(const test::TestClusterOptions& options = mined_options()) : cluster_(options) {}

  test::TestCluster& cluster() { return cluster_; }
  pg::Connection connect() const {
    auto connection = pg::Connection::open(base::Conninfo{cluster_.conninfo()}, {.search_path = "public"});
    if (!connection) throw std::runtime_error(connection.error().message);
    return std::move(*connection);
  }
  static std::string value(pg::Connection& connection, const std::string& sql) {
    const auto rows = connection.script(sql);
    if (!rows) throw std::runtime_error(rows.error().message + " in " + sql);
    return rows->size() == 0 ? "" : std::string{rows->text(0, 0)};
  }

  // `wish`, if this server knows it as a value of the setting: what is built for tests of other versions may lack lz4
  // and zstd, and version 14 compresses images in one way only.
  static std::string offered(pg::Connection& connection, const std::string& setting, const std::string& wish,
                             const std::string& otherwise) {
    const std::string knows = value(connection, "SELECT coalesce('" + wish +
                                                    "' = ANY (enumvals), false) FROM "
                                                    "pg_settings WHERE name = '" +
                                                    setting + "'");
    return knows == "t" ? wish : otherwise;
  }

  // The first step of a start: WAL is kept from here on.
  void keep_wal() {
    pg::Connection connection = connect();
    value(connection, "SELECT pg_create_physical_replication_slot('mined', true)");
    redo_ = lsn(connection, "SELECT restart_lsn FROM pg_replication_slots WHERE slot_name = 'mined'");
  }
  // The second: a snapshot, and what SQL tells in it. Waits for the transactions that run. `then` runs once the
  // position is known.
  FirstContents first_contents(const std::function<void()>& then = [] {}) const {
    auto stream = pg::ReplicationStream::open(base::Conninfo{cluster_.conninfo()}, "dictionary");
    if (!stream) throw std::runtime_error(stream.error().message);
    const auto slot = stream->create_slot("first", true);
    if (!slot) throw std::runtime_error(slot.error().message);
    then();
    pg::Connection connection = connect();
    value(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '" + slot->snapshot_name + "'");
    auto contents = read_first_contents(connection, slot->consistent_point);
    if (!contents) throw std::runtime_error(contents.error().message);
    return std::move(*contents);
  }
  // Until first_contents(), which another thread makes, waits for the session's open transaction.
  void wait_for_slot(pg::Connection& session) const {
    pg::Connection observer = connect();
    const std::string waits =
        "SELECT count(*) FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted AND transactionid = '" +
        value(session, "SELECT pg_current_xact_id()::xid::text") + "'";
    while (value(observer, waits) == "0") std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  void begin(FirstContents contents) {
    auto begun = Dictionary::begin(std::move(contents));
    if (!begun) throw std::runtime_error(begun.error().message);
    dictionary_ = std::make_unique<Dictionary>(std::move(*begun));
    read_from({redo_.value / wal::kPageBytes * wal::kPageBytes}, redo_);
  }
  // Goes on with another one, which ends where the record at its position begins.
  void resume(Dictionary dictionary) {
    dictionary_ = std::make_unique<Dictionary>(std::move(dictionary));
    read_from({dictionary_->position().value / wal::kPageBytes * wal::kPageBytes}, dictionary_->position());
  }
  Dictionary& dictionary() { return *dictionary_; }
  // Gives the records to somebody else, who gives them to the dictionary.
  using Give = std::function<base::Result<void>(const wal::WalRecord&, const wal::RecordParts&, const wal::WalFormat&)>;
  void give_to(Give give) { give_ = std::move(give); }

  // Applies all that the source has written.
  testing::AssertionResult catch_up() {
    pg::Connection connection = connect();
    // Its commit flushes what others have not.
    value(connection, "SELECT pg_logical_emit_message(true, 'flush', '')");
    const base::Lsn end = lsn(connection, "SELECT pg_current_wal_flush_lsn()");
    wal::RecordParts parts;
    while (fed_ < end) {
      const uint64_t begin = fed_.value / kSegmentBytes * kSegmentBytes;
      const uint64_t until = std::min(begin + kSegmentBytes, end.value);
      std::ifstream file(
          cluster_.directory() + "/data/pg_wal/" +
              fmt::format("00000001{:08X}{:08X}", fed_.value >> 32, (fed_.value & 0xFFFFFFFF) / kSegmentBytes),
          std::ios::binary);
      file.seekg(static_cast<std::streamoff>(fed_.value - begin));
      std::vector<char> bytes(until - fed_.value);
      file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
      if (!file) return testing::AssertionFailure() << "the source lacks WAL at " << to_string(fed_);
      fed_ = {until};
      reader_->feed(std::as_bytes(std::span{bytes}));
      while (true) {
        const auto record = reader_->next();
        if (!record) return testing::AssertionFailure() << record.error().message;
        if (*record == nullptr) break;
        if (const auto parsed = parts.parse(**record, *reader_->format()); !parsed) {
          return testing::AssertionFailure() << parsed.error().message;
        }
        if (const auto applied = give_(**record, parts, *reader_->format()); !applied) {
          return testing::AssertionFailure() << applied.error().message;
        }
      }
    }
    return testing::AssertionSuccess();
  }

  // Every row of the catalogs, as this session sees them by SQL and as the dictionary has them for it.
  testing::AssertionResult same_for(pg::Connection& session) {
    const std::string xid = value(session, "SELECT pg_current_xact_id_if_assigned()::text");
    const base::Xid viewer{xid.empty() ? 0 : static_cast<uint32_t>(std::stoull(xid))};
    const auto contents = read_first_contents(session, {1});
    if (!contents) return testing::AssertionFailure() << contents.error().message;
    for (size_t i = 0; i < kCatalogs; ++i) {
      const CatalogDescription& catalog = description_of(static_cast<Catalog>(i));
      std::vector<std::string> theirs;
      for (const SelectedRow& row : contents->catalogs.at(i).rows) {
        theirs.push_back(comparable(catalog, unpacked(row.row).value_or(Row{})));
      }
      std::vector<std::string> ours;
      dictionary_->rows(catalog.catalog, viewer, [&](Row row) { ours.push_back(comparable(catalog, std::move(row))); });
      std::ranges::sort(theirs);
      std::ranges::sort(ours);
      if (ours == theirs) continue;
      std::vector<std::string> missing;
      std::vector<std::string> extra;
      std::ranges::set_difference(theirs, ours, std::back_inserter(missing));
      std::ranges::set_difference(ours, theirs, std::back_inserter(extra));
      auto failure = testing::AssertionFailure();
      constexpr size_t kShown = 10;
      failure << catalog.name << " for transaction " << viewer.value << " has " << ours.size() << " rows instead of "
              << theirs.size() << ":";
      missing.resize(std::min(missing.size(), kShown));
      extra.resize(std::min(extra.size(), kShown));
      for (const auto& row : missing) failure << "\n  only at the source: " << shown(row);
      for (const auto& row : extra) failure << "\n  only in the dictionary: " << shown(row);
      return failure;
    }
    return same_files(session, viewer);
  }

 private:
  static base::Lsn lsn(pg::Connection& connection, const std::string& sql) {
    return base::parse_lsn(value(connection, sql)).value_or(base::Lsn{});
  }
  static std::string shown(const std::string& row) {
    std::string text;
    const auto values = unpacked(row);
    for (const Value& value : values.value_or(Row{})) {
      if (const auto* const integer = std::get_if<int64_t>(&value)) text += std::to_string(*integer) + " ";
      if (const auto* const name = std::get_if<std::string>(&value)) text += *name + " ";
    }
    return text;
  }
  // The relation of each file, for the records that have nothing but the file; temporary ones are in none.
  testing::AssertionResult same_files(pg::Connection& session, base::Xid viewer) {
    const auto files = session.script(
        "SELECT c.oid, coalesce(nullif(c.reltablespace, 0), d.dattablespace), d.oid, c.relfilenode FROM pg_class c,"
        " pg_database d WHERE d.datname = current_database() AND c.relfilenode <> 0 AND NOT c.relisshared"
        " AND c.relpersistence <> 't'");
    if (!files) return testing::AssertionFailure() << files.error().message;
    for (size_t i = 0; i < files->size(); ++i) {
      const auto number = [&](size_t column) { return static_cast<uint32_t>(files->integer(i, column)); };
      const auto oid =
          dictionary_->relation_of({.tablespace = number(1), .database = number(2), .number = number(3)}, viewer);
      if (oid != number(0))
        return testing::AssertionFailure() << "file " << number(3) << " is of relation " << number(0);
    }
    return testing::AssertionSuccess();
  }
  void read_from(base::Lsn page, base::Lsn record) {
    fed_ = page;
    reader_ = std::make_unique<wal::WalReader>(wal::WalReaderOptions{.start = record});
  }

  test::TestCluster cluster_;
  base::Lsn redo_;
  base::Lsn fed_;
  std::unique_ptr<wal::WalReader> reader_;
  std::unique_ptr<Dictionary> dictionary_;
  Give give_ = [this](const wal::WalRecord& record, const wal::RecordParts& parts, const wal::WalFormat& format) {
    return dictionary_->apply(record, parts, format);
  };
};

}  // namespace thalweg::dictionary
