#include "search/log_search.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "capture/wal/mined_tables.h"
#include "mining/builder.h"
#include "pg/replication_stream.h"
#include "search/change_finder.h"
#include "shipment/source_identity.h"
#include "shipment/staged_wal.h"
#include "wal/record_parts.h"
#include "wal/wal_reader.h"

namespace thalweg::search {

namespace {

using telemetry::FoundChange;
using telemetry::SearchState;

// Of a capture's thread it is 0.
constexpr int kNice = 10;
constexpr size_t kValueBytes = 128;  // of one, beside its text

size_t bytes_of(const FoundChange& change) {
  size_t bytes = sizeof(FoundChange) + change.schema.size() + change.table.size();
  for (const telemetry::FoundColumn& column : change.columns) {
    bytes += sizeof(column) + column.name.size() + column.type.size() + kValueBytes;
    for (const auto* value : {&column.before, &column.after}) {
      if (*value && (*value)->text) bytes += (*value)->text->size();
    }
  }
  return bytes;
}

base::Error overtaken(base::Lsn at) {
  base::Error error = base::fail(base::ErrorCode::search_overtaken,
                                 fmt::format("The WAL at {} is no longer kept.", base::to_string(at)))
                          .error();
  error.lsn = at;
  return error;
}

bool is_missing(const std::filesystem::path& file) {
  std::error_code failed;
  return !std::filesystem::exists(file, failed);
}

}  // namespace

LogSearch::LogSearch(Options options) : id_(options.id) {
  status_ = {.id = id_, .begun_at = options.clock->unix_now(), .from = options.from, .to = options.to};
  thread_ = std::thread([this, given = std::move(options)]() mutable { run(std::move(given)); });
}

LogSearch::~LogSearch() {
  request_stop();
  thread_.join();
}

telemetry::SearchStatus LogSearch::status() const {
  const std::lock_guard lock(mutex_);
  telemetry::SearchStatus status = status_;
  status.mined_bytes = std::min(mined_bytes_.load(std::memory_order_relaxed), status.total_bytes);
  status.found = found_.size();
  return status;
}

telemetry::FoundPart LogSearch::part(const telemetry::SearchPart& part) const {
  telemetry::FoundPart out{.status = status()};
  const std::lock_guard lock(mutex_);
  const size_t begin = std::min<size_t>(part.after, found_.size());
  const size_t end = std::min<size_t>(found_.size(), begin + part.limit);
  out.changes.assign(found_.begin() + static_cast<ptrdiff_t>(begin), found_.begin() + static_cast<ptrdiff_t>(end));
  if (end < found_.size()) out.next_after = end;
  return out;
}

void LogSearch::run(Options options) {
  // Of this thread alone; a failure leaves it as it is.
  static_cast<void>(::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice));
  auto searched = search(options);
  options.place.reset();
  {
    const std::lock_guard lock(mutex_);
    status_.ended_at = options.clock->unix_now();
    status_.state = searched ? SearchState::done : SearchState::failed;
    if (!searched) status_.error = std::move(searched).error();
  }
  base::log_event(base::LogLevel::info, "log_search_ended",
                  {{"stream", options.stream.id}, {"search", id_}, {"state", name_of(status().state)}});
}

bool LogSearch::publish(std::vector<std::shared_ptr<FoundChange>> found) {
  const std::lock_guard lock(mutex_);
  for (auto& change : found) {
    found_bytes_ += bytes_of(*change);
    // The first one is taken whatever its size: a search that goes on behind it could not begin otherwise.
    if (found_bytes_ > kResultBytesMax && !found_.empty()) return false;
    change->number = found_.size() + 1;
    found_.push_back(std::move(change));
  }
  return true;
}

base::Result<void> LogSearch::search(const Options& options) {
  const capture::WalFolder folder(options.stream.folder);
  const Begin begin = begin_of(options.kept, options.from, options.request.from_time);
  {
    const std::lock_guard lock(mutex_);
    status_.from = begin.from;
    status_.total_bytes = options.to.value - std::min(begin.dictionary.value, options.to.value);
  }
  const pg::ConnectOptions session{.application_name = "thalweg search", .abandon = &stop_};
  THALWEG_ASSIGN(pg::ReplicationStream replication, pg::ReplicationStream::open(options.stream.source, session));
  THALWEG_ASSIGN(shipment::WalIdentity identity, shipment::identify(replication));
  // The staged WAL may be of a timeline that the source has left meanwhile.
  identity.history = identity.history.up_to(static_cast<int>(options.kept.timeline));
  THALWEG_ASSIGN(pg::Connection source, pg::Connection::open(options.stream.source, session));
  THALWEG_ASSIGN(capture::MaskedColumns masked, capture::MaskedColumns::load(folder.masked_columns()));
  THALWEG_TRY(masked.note(source, options.stream.transformations, {}));
  ChangeFinder finder(source, {.request = options.request,
                               .from = begin.from,
                               .masked = &masked,
                               .transformations = &options.stream.transformations,
                               .stop = &stop_,
                               .publish = [this](auto found) { return publish(std::move(found)); }});
  THALWEG_TRY(mine(options, begin, identity, finder));
  const std::lock_guard lock(mutex_);
  status_.is_truncated = finder.is_truncated();
  if (!status_.is_truncated) mined_bytes_.store(status_.total_bytes, std::memory_order_relaxed);
  return {};
}

base::Result<void> LogSearch::mine(const Options& options, const Begin& begin, const shipment::WalIdentity& identity,
                                   ChangeFinder& finder) {
  const capture::WalFolder folder(options.stream.folder);
  auto dictionary = folder.load(begin.dictionary);
  if (!dictionary) {
    const bool has_gone = is_missing(folder.dictionary_at(begin.dictionary));
    return std::unexpected(has_gone ? overtaken(begin.dictionary) : std::move(dictionary).error());
  }
  THALWEG_ASSIGN(capture::MinedTables tables, capture::MinedTables::recalled(folder.tables(), begin.dictionary));
  const auto is_wanted = [&](uint32_t table) {
    return tables.had(table) ? tables.wanted(table) : mining::Wanted::nothing;
  };
  mining::Builder builder(*dictionary,
                          {.from = begin.from, .is_wanted = is_wanted, .sink = &finder, .memory_bytes = kBuilderBytes});
  shipment::StagedWal wal({.directory = folder.staging(), .identity = identity},
                          base::Lsn{begin.dictionary.value - begin.dictionary.value % wal::kPageBytes});
  wal::WalReader reader({.start = begin.dictionary,
                         .segment_bytes = identity.segment_bytes,
                         .system_identifier = identity.system_identifier,
                         .timeline_at = identity.timeline_at()});
  wal::RecordParts parts;
  const auto build = [&]() -> base::Result<void> {
    while (!finder.is_done()) {
      THALWEG_ASSIGN(const wal::WalRecord* const record, reader.next());
      if (record == nullptr || record->begin >= options.to) return {};
      if (tables.go_to(record->begin)) {
        builder.forget_tables();
        finder.forget_rows();
      }
      THALWEG_TRY(parts.parse(*record, *reader.format()));
      finder.set_origin(parts.origin());
      THALWEG_TRY(builder.apply(*record, parts, *reader.format()));
    }
    return {};
  };
  while (wal.position() < options.to && !finder.is_done()) {
    if (stop_.load(std::memory_order_relaxed)) {
      return base::fail(base::ErrorCode::engine_stopping, "The search was ended.");
    }
    const auto bytes = wal.read(options.to);
    if (!bytes) {
      const base::Lsn at = wal.position();
      const bool has_gone = is_missing(folder.staging() / identity.name_of(identity.segment_of(at)));
      return std::unexpected(has_gone ? overtaken(at) : bytes.error());
    }
    reader.feed(*bytes);
    auto built = build();
    // A sink that has enough ends the building in the middle of a transaction.
    if (!built && !finder.is_done()) return built;
    THALWEG_TRY(finder.flush());
    mined_bytes_.store(wal.position().value - std::min(wal.position().value, begin.dictionary.value),
                       std::memory_order_relaxed);
  }
  return {};
}

}  // namespace thalweg::search
