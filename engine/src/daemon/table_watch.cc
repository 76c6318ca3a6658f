#include "daemon/table_watch.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <ranges>
#include <utility>

#include "apply/progress.h"
#include "base/log.h"
#include "daemon/dropped_truncates.h"
#include "daemon/source_objects.h"
#include "daemon/source_servers.h"

namespace thalweg::daemon {
namespace {

using control::Delivery;
using control::DesiredStatus;
using control::TableResolution;
using control::TableTroubleKind;
using instantiation::Bookkeeping;
using instantiation::TableName;
using instantiation::TableRecord;
using instantiation::TroubleKind;
using instantiation::WrittenLeaf;

constexpr std::chrono::seconds kPause{2};
constexpr std::chrono::seconds kPauseStopped{5};  // then without a connection in between

bool is_watched(const Delivery& delivery) {
  return delivery.destination.status != DesiredStatus::dropped && !delivery.destination.send_to;
}

TableTroubleKind kind_of(TroubleKind kind) {
  switch (kind) {
    case TroubleKind::dropped:
      return TableTroubleKind::dropped;
    case TroubleKind::replaced:
      return TableTroubleKind::replaced;
    case TroubleKind::renamed:
      return TableTroubleKind::renamed;
    case TroubleKind::unpublished:
      return TableTroubleKind::unpublished;
    case TroubleKind::partitions_changed:
      return TableTroubleKind::partitions_changed;
    case TroubleKind::unidentified:
      return TableTroubleKind::unidentified;
  }
  std::unreachable();
}

std::vector<TableResolution> resolutions_of(const TableRecord& record) {
  switch (record.trouble->kind) {
    case TroubleKind::dropped:
      return {TableResolution::remove};
    case TroubleKind::renamed:
      return {TableResolution::follow};
    case TroubleKind::replaced:
    case TroubleKind::unpublished:
      return {TableResolution::copy};
    case TroubleKind::unidentified:  // at the source only, but for its name
      if (record.trouble->now == record.table) return {};
      return {TableResolution::follow};
    case TroubleKind::partitions_changed:
      break;
  }
  if (record.stopped) return {TableResolution::copy};
  return {TableResolution::copy, TableResolution::accept};
}

control::TableTrouble view_of(const TableRecord& record) {
  const instantiation::TableTrouble& trouble = *record.trouble;
  control::TableTrouble view{.kind = kind_of(trouble.kind),
                             .reason = trouble.reason,
                             .cure = instantiation::cure_of(trouble, record.stopped),
                             .cure_sql = trouble.cure_sql,
                             .since = trouble.since,
                             .renamed_to = {},
                             .resolutions = resolutions_of(record)};
  if (trouble.loses_nothing() && trouble.now != record.table) view.renamed_to = {trouble.now.schema, trouble.now.name};
  return view;
}

control::TableTrouble view_of(const TableName& table, const MissingTable& missing) {
  if (missing.is_there) {
    return {
        .kind = TableTroubleKind::missing,
        .reason = fmt::format("{} did not exist at the source when it was to be copied. Now it does.", table.quoted()),
        .cure = "Copy the table.",
        .cure_sql = {},
        .since = missing.since,
        .renamed_to = {},
        .resolutions = {TableResolution::copy}};
  }
  return {.kind = TableTroubleKind::missing,
          .reason = fmt::format("{} does not exist at the source, and nothing of it has been copied.", table.quoted()),
          .cure =
              "Take the table out of the stream; or create it at the source, then copy it. If it has another name by "
              "now, put that one into the stream.",
          .cure_sql = {},
          .since = missing.since,
          .renamed_to = {},
          .resolutions = {TableResolution::remove}};
}

}  // namespace

TableWatch::TableWatch(const base::Clock& clock)
    : clock_(clock), thread_([this](const std::stop_token& stop) { run(stop); }) {}

// The thread is asked to stop, and joined; it may wait for a database.
TableWatch::~TableWatch() { abandon_ = true; }

void TableWatch::watch(const Delivery& delivery) {
  std::lock_guard lock(mutex_);
  delivery_ = delivery;
  if (!is_watched(delivery)) {
    delivery_.reset();
    shown_.clear();
    missing_.clear();
  }
  read_again_ = true;
  ++asked_;
  changed_.notify_all();
}

void TableWatch::refresh() {
  std::lock_guard lock(mutex_);
  read_again_ = true;
  ++asked_;
  changed_.notify_all();
}

void TableWatch::forget_missing(const control::TableRef& table) {
  std::lock_guard lock(mutex_);
  missing_.erase({table.schema, table.table});
}

void TableWatch::look_now(std::chrono::milliseconds patience, const std::string& failed) {
  std::unique_lock lock(mutex_);
  read_again_ = true;
  failed_ = failed;
  const uint64_t mine = ++asked_;
  changed_.notify_all();
  changed_.wait_for(lock, patience, [&] { return looked_ >= mine || !delivery_; });
}

std::optional<base::Error> TableWatch::unresolved() const {
  std::lock_guard lock(mutex_);
  if (!is_known_ || looked_ < asked_) return std::nullopt;
  for (const auto& [name, record] : shown_) {
    if (instantiation::waits_for_resolution(record)) return instantiation::trouble_error(name, *record.trouble);
  }
  return std::nullopt;
}

void TableWatch::add_to(std::vector<control::TableStatus>& tables) const {
  std::lock_guard lock(mutex_);
  for (control::TableStatus& table : tables) {
    const TableName name{table.changes.schema_name, table.changes.table_name};
    if (const auto missing = missing_.find(name); missing != missing_.end()) {
      table.trouble = view_of(name, missing->second);
      if (delivery_ && delivery_->destination.parameters.stops_tables()) table.state = control::TableState::stopped;
    }
    const auto record = shown_.find(name);
    if (record == shown_.end() && table.state == control::TableState::waiting && is_followed(name)) {
      table.state = control::TableState::copied;
    }
    if (record == shown_.end() || !record->second.trouble) continue;
    table.trouble = view_of(record->second);
    if (record->second.stopped) table.state = control::TableState::stopped;
  }
}

bool TableWatch::is_followed(const TableName& name) const {
  return std::ranges::any_of(shown_ | std::views::values, [&](const TableRecord& former) {
    return former.finished && former.trouble && former.trouble->loses_nothing() &&
           former.trouble->now.schema == name.schema && former.trouble->now.name == name.name;
  });
}

// --- its thread

void TableWatch::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::optional<Delivery> delivery;
    uint64_t asked = 0;
    bool read_again = false;
    std::string failed;
    {
      std::unique_lock lock(mutex_);
      const auto pause = delivery_ && delivery_->destination.status == DesiredStatus::disabled ? kPauseStopped : kPause;
      changed_.wait_for(lock, stop, pause, [&] { return asked_ > looked_; });
      if (stop.stop_requested()) return;
      delivery = delivery_;
      asked = asked_;
      read_again = std::exchange(read_again_, false);
      failed = std::exchange(failed_, {});
    }
    if (!delivery) {
      source_.reset();
      records_.reset();
    }
    const bool is_known = delivery && look(*delivery, read_again, failed);
    std::lock_guard lock(mutex_);
    is_known_ = is_known;
    looked_ = asked;
    changed_.notify_all();
  }
}

bool TableWatch::look(const Delivery& delivery, bool read_again, const std::string& failed) {
  auto done = compare(delivery, read_again, failed);
  if (!done) {
    spdlog::debug("tables of {} are not known: {}", delivery.stream.id, done.error().message);
    if (done.error().code != base::ErrorCode::database_busy) source_.reset();
    records_.reset();  // what could not be stored is found, and stored, again
    return false;
  }
  if (delivery.destination.status == DesiredStatus::disabled) source_.reset();
  return true;
}

base::Result<pg::Connection> TableWatch::connect(const base::Conninfo& conninfo, const std::string& stream_id) const {
  return pg::Connection::open(conninfo, {.application_name = "thalweg tables " + stream_id, .abandon = &abandon_});
}

base::Result<void> TableWatch::read_records(const Delivery& delivery) {
  THALWEG_ASSIGN(pg::Connection destination, connect(delivery.destination.conninfo, delivery.stream.id));
  Bookkeeping bookkeeping(destination, delivery.stream.id);
  instantiation::TableRecords records;
  THALWEG_ASSIGN(const bool exists, bookkeeping.exists());
  if (exists) {
    THALWEG_TRY(bookkeeping.upgrade());
    // In this order: of what the low watermark stands for, all notes are there.
    THALWEG_ASSIGN(const auto stream, apply::find_stream(destination, delivery.stream.id));
    applied_ = stream ? stream->low_watermark : base::Lsn{};
    THALWEG_ASSIGN(const auto recorded, bookkeeping.tables());
    for (const TableRecord& record : recorded) {
      const control::TableRef ref{record.table.schema, record.table.name};
      if (std::ranges::find(delivery.stream.tables, ref) == delivery.stream.tables.end()) continue;
      records.emplace(record.table, record).first->second.inserts_only = delivery.stream.inserts_only.contains(ref);
    }
  }
  std::lock_guard lock(mutex_);
  instantiation::keep_passing_troubles(records, shown_);
  records_ = std::move(records);
  return {};
}

// The destination knows which partitions have another file because of a TRUNCATE that is applied.
base::Result<void> TableWatch::settle(const Delivery& delivery, instantiation::SourceTables& now,
                                      const std::set<TableName>& rewritten, const std::string& failed) {
  THALWEG_ASSIGN(pg::Connection destination, connect(delivery.destination.conninfo, delivery.stream.id));
  Bookkeeping bookkeeping(destination, delivery.stream.id);
  // In this order: what the low watermark stands for has left its notes by then.
  THALWEG_ASSIGN(const auto stream, apply::find_stream(destination, delivery.stream.id));
  THALWEG_ASSIGN(const auto recorded, bookkeeping.tables());
  bool any_truncated = false;
  for (const TableRecord& record : recorded) {
    any_truncated = any_truncated || !record.truncations.empty();
    const auto known = records_->find(record.table);
    if (known != records_->end()) known->second.truncations = record.truncations;
  }
  const base::Lsn low_watermark = stream ? stream->low_watermark : base::Lsn{};
  THALWEG_ASSIGN(const auto kept, with_dropped_truncates(*source_, delivery, rewritten, *records_, now));
  const auto taken_over = rewrites_.settle(*records_, now, low_watermark, failed, kept);
  for (const TableName& name : taken_over) THALWEG_TRY(bookkeeping.set_identity(name, records_->at(name).identity));
  // Truncations up to the last look are settled, as far as they were applied when the notes were read.
  const base::Lsn settled = std::min(wal_end_, low_watermark);
  if (any_truncated && settled) THALWEG_TRY(bookkeeping.forget_truncations(settled));
  return {};
}

bool TableWatch::waits_for_apply() const {
  return std::ranges::any_of(*records_ | std::views::values, [&](const TableRecord& record) {
    return std::ranges::any_of(record.written, [&](const auto& leaf) { return leaf.commit_lsn >= applied_; });
  });
}

base::Result<void> TableWatch::forget(const Delivery& delivery, const NotesOf& notes_of) {
  std::optional<pg::Connection> destination;
  for (auto& [name, record] : *records_) {
    const std::vector<WrittenLeaf> settled = notes_of(record);
    if (settled.empty()) continue;
    if (!destination) {
      THALWEG_ASSIGN(destination, connect(delivery.destination.conninfo, delivery.stream.id));
    }
    THALWEG_TRY(Bookkeeping(*destination, delivery.stream.id).forget_partitions(name, settled));
    std::erase_if(record.written,
                  [&](const WrittenLeaf& leaf) { return std::ranges::find(settled, leaf) != settled.end(); });
  }
  return {};
}

base::Result<void> TableWatch::forget_dropped_truncates(const Delivery& delivery,
                                                        const instantiation::SourceTables& now) {
  std::set<TableName> truncated;
  for (const auto& [name, record] : *records_) {
    if (std::ranges::any_of(record.written, &WrittenLeaf::truncated)) truncated.insert(name);
  }
  if (truncated.empty()) return {};
  THALWEG_ASSIGN(const auto kept, with_dropped_truncates(*source_, delivery, truncated, *records_, now));
  return forget(delivery, [&](const TableRecord& record) {
    std::vector<WrittenLeaf> dropped;
    if (!kept.contains(record.table)) return dropped;
    std::ranges::copy_if(record.written, std::back_inserter(dropped), &WrittenLeaf::truncated);
    return dropped;
  });
}

std::vector<TableName> TableWatch::without_record(const Delivery& delivery) const {
  std::vector<TableName> names;
  for (const control::TableRef& table : delivery.stream.tables) {
    if (const TableName name{table.schema, table.table}; !records_->contains(name)) names.push_back(name);
  }
  return names;
}

// One that was seen to be missing stays so until it is copied: no start may have come since.
void TableWatch::note_missing(const Delivery& delivery, const instantiation::SourceTables& now) {
  std::map<TableName, MissingTable> missing;
  std::lock_guard lock(mutex_);
  for (const TableName& name : without_record(delivery)) {
    const bool is_there = now.find(name) != nullptr;
    const auto before = missing_.find(name);
    if (is_there && before == missing_.end()) continue;  // the start that is under way copies it
    const base::UnixMicros since = before == missing_.end() ? clock_.unix_now() : before->second.since;
    missing.emplace(name, MissingTable{.since = since, .is_there = is_there});
  }
  if (delivery_) missing_ = std::move(missing);
}

void TableWatch::log_troubles(const Delivery& delivery, const std::vector<TableName>& tables) const {
  for (const TableName& name : tables) {
    base::log_event(
        base::LogLevel::warning, "table_trouble",
        {{"stream", delivery.stream.id}, {"table", name.quoted()}, {"reason", records_->at(name).trouble->reason}});
  }
}

base::Result<void> TableWatch::compare(const Delivery& delivery, bool read_again, const std::string& failed) {
  const bool applies = delivery.destination.status != DesiredStatus::disabled;
  if (read_again || !records_ || (applies && waits_for_apply())) THALWEG_TRY(read_records(delivery));
  if (!records_->empty()) {
    if (!source_) {
      // The server that the stream reads: after a promotion the old primary may be back as a standby.
      THALWEG_ASSIGN(const control::StreamDefinition at_server, with_server_to_read(delivery.stream));
      THALWEG_ASSIGN(source_, connect(at_server.source.conninfo, delivery.stream.id));
      THALWEG_TRY(source_->script("SET lock_timeout = '1s'"));
    }
    std::vector<instantiation::WatchedTable> watched = instantiation::to_watch(*records_);
    for (const TableName& name : without_record(delivery)) watched.push_back({.name = name, .was = {}});
    THALWEG_ASSIGN(instantiation::SourceTables now,
                   instantiation::look_at_source(*source_, publications_of(delivery.stream.id), watched));
    now.applied = applied_;
    const auto rewritten = instantiation::Rewrites::open(*records_, now);
    if (!rewritten.empty()) THALWEG_TRY(settle(delivery, now, rewritten, failed));
    wal_end_ = now.wal_end;
    THALWEG_TRY(forget_dropped_truncates(delivery, now));
    const instantiation::RecordChanges changes = instantiation::compare(*records_, now, clock_.unix_now());
    if (changes.any()) {
      THALWEG_ASSIGN(pg::Connection destination, connect(delivery.destination.conninfo, delivery.stream.id));
      Bookkeeping bookkeeping(destination, delivery.stream.id);
      THALWEG_TRY(bookkeeping.exists());
      THALWEG_TRY(instantiation::store(bookkeeping, *records_, changes));
    }
    THALWEG_TRY(forget(delivery, instantiation::settled_partitions));
    log_troubles(delivery, changes.troubles);
    log_troubles(delivery, changes.noticed);
    note_missing(delivery, now);
  }
  std::lock_guard lock(mutex_);
  if (delivery_) shown_ = *records_;
  return {};
}

}  // namespace thalweg::daemon
