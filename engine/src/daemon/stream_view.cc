#include <fmt/format.h>

#include <algorithm>

#include "daemon/destination_conflicts.h"
#include "daemon/destination_errors.h"
#include "daemon/rule_sets.h"
#include "daemon/source_objects.h"
#include "daemon/stream.h"
#include "daemon/stream_status.h"
#include "daemon/table_actions.h"

// A Stream as the control API shows it, and the control API's actions on its error queue.

namespace thalweg::daemon {
namespace {

// An apply is held while the last of its parked transactions are executed.
constexpr std::chrono::seconds kHoldPatience{2};
constexpr std::chrono::seconds kHoldMost{5};
constexpr std::chrono::milliseconds kHoldLook{5};

}  // namespace

control::StreamStatus Stream::status() const {
  searches_.forget_old();  // the status is asked for all the time
  control::StreamStatus out;
  out.id = id_;
  control::StreamDefinition definition;
  uint64_t revision = 0;
  std::shared_ptr<const TakenUp> taken_up;
  {
    std::lock_guard lock(mutex_);
    out.state = life_.state();
    out.error = error_;
    out.retry_at = retry_at_;
    definition = desired_;
    revision = revision_;
    taken_up = taken_up_;
  }
  out.mode = mode_of(definition);
  add_destinations(out, definition);
  add_in_effect(out, definition, taken_up.get(), revision);
  out.waits = waits_.waits(definition);
  return out;
}

// The statuses come from the sessions that run; else from what is known without them.
void Stream::add_destinations(control::StreamStatus& out, const control::StreamDefinition& definition) const {
  {
    std::shared_lock lock(sessions_lock_);
    if (sessions_) {
      const StreamPositions positions = sessions_->positions();
      out.captured = positions.captured;
      out.source_end = positions.source_end;
      out.confirmed = positions.confirmed;
      out.destinations = sessions_->destinations();
      out.rule_counts = sessions_->rule_counts();
      out.kind_change = sessions_->kind_change();
    }
  }
  // Some destinations were desired only a moment ago, or wait for the stream to start.
  for (const control::DestinationDefinition& destination : definition.destinations) {
    if (std::ranges::find(out.destinations, destination.id, &control::DestinationStatus::id) != out.destinations.end())
      continue;
    control::DestinationStatus& idle = out.destinations.emplace_back();
    idle.id = destination.id;
    const bool is_waiting = names_of(out.state).status == names_of(State::initializing).status;
    idle.state = is_waiting && out.state != State::dropping ? State::initializing : out.state;
    idle.mode = mode_of(definition, destination);
    if (destination.backlog) {
      idle.backlog.state = control::BacklogState::in_memory;
      idle.backlog.limit_bytes = destination.parameters.queue_spill_limit_bytes();
    }
    const DestinationMemory& memory = memory_of(destination.id);
    add_tables(idle, control::delivery_to(definition, destination), {}, memory.progress.report(), false);
    memory.tables.add_to(idle.tables);
  }
  bool first = true;
  for (control::DestinationStatus& destination : out.destinations) {
    const control::DestinationDefinition* const desired = definition.find(destination.id);
    if (desired != nullptr && is_direct(*desired)) {
      destination.state = out.state;
      destination.error = out.error;
      destination.retry_at = out.retry_at;
      if (definition.receive_from) out.confirmed = destination.confirmed;
    }
    if (destination.state == State::dropped || destination.state == State::dropping) continue;
    out.applied = first ? destination.applied : std::min(out.applied, destination.applied);
    first = false;
  }
}

// A definition that nothing runs by is in effect if the last sessions ran by it: they go on where they ended.
void Stream::add_in_effect(control::StreamStatus& out, const control::StreamDefinition& definition,
                           const TakenUp* taken_up, uint64_t revision) const {
  const bool is_taken_up = taken_up != nullptr && taken_up->definition == definition;
  const bool runs = [&] {
    std::shared_lock lock(sessions_lock_);
    return sessions_ != nullptr;
  }();
  for (control::DestinationStatus& destination : out.destinations) {
    const control::DestinationDefinition* const desired = definition.find(destination.id);
    if (desired == nullptr) continue;
    const Effect& effect = memory_of(destination.id).effect;
    for (const EffectBegin& at : effect.positions())
      destination.effects.push_back({.from = at.from, .since = at.since});
    if (runs && !is_taken_up) continue;
    const auto begun = effect.of(is_taken_up ? taken_up->judging.at(destination.id)
                                             : judging(control::delivery_to(definition, *desired)));
    if (begun)
      destination.in_effect = control::InEffect{.revision = revision, .from = begun->from, .since = begun->since};
  }
}

control::StreamStats Stream::stats() const {
  std::shared_lock lock(sessions_lock_);
  if (sessions_) return sessions_->stats();
  control::StreamStats none;
  none.id = id_;
  return none;
}

telemetry::TransactionSamples Stream::transactions() const {
  std::shared_lock lock(sessions_lock_);
  return sessions_ ? sessions_->transactions() : telemetry::TransactionSamples{};
}

telemetry::MarkerTrail Stream::markers() const {
  std::shared_lock lock(sessions_lock_);
  return sessions_ ? sessions_->markers() : telemetry::MarkerTrail{};
}

base::Result<void> Stream::place_marker(const std::string& id, const std::string& label) {
  std::shared_lock lock(sessions_lock_);
  if (sessions_) return sessions_->place_marker(id, label);
  return base::fail(base::ErrorCode::marker_refused, "The stream does not run");
}

// The locks are not held while it waits: sessions may come and go meanwhile.
base::Result<capture::TappedChanges> Stream::recent_changes(const control::TableRef& table, size_t limit,
                                                            std::chrono::milliseconds patience) {
  const auto tables = desired().tables;
  if (std::ranges::find(tables, table) == tables.end()) {
    return base::fail(base::ErrorCode::changes_not_captured,
                      fmt::format("The stream does not have the table {}", pg::quote_table(table.schema, table.table)));
  }
  {
    std::shared_lock lock(sessions_lock_);
    if (!sessions_ || !sessions_->captures()) {
      return base::fail(base::ErrorCode::changes_not_captured, "The engine does not capture the stream at the moment");
    }
  }
  return tap_.take({table.schema, table.table}, limit, patience);
}

// Files are enough for a search: it needs no session, and also finds what a stopped stream has.
base::Result<search::SearchedStream> Stream::searched() const {
  const control::StreamDefinition definition = desired();
  const auto refused = [](const char* why) { return base::fail(base::ErrorCode::search_refused, why); };
  if (definition.receive_from) return refused("Another engine captures the stream.");
  if (definition.capture_kind != control::CaptureKind::wal)
    return refused("The stream does not mine its source's WAL.");
  if (definition.status == control::DesiredStatus::dropped) return refused("The stream is being deleted.");
  return search::SearchedStream{.id = id_,
                                .folder = mining_folder(spill_directory_),
                                .source = definition.source.conninfo,
                                .transformations = stream_rules(definition).transformations};
}

base::Result<telemetry::SearchList> Stream::searches() {
  THALWEG_ASSIGN(const search::SearchedStream stream, searched());
  return searches_.list(stream);
}

base::Result<telemetry::SearchStatus> Stream::begin_search(telemetry::SearchRequest request, Place place) {
  THALWEG_ASSIGN(const search::SearchedStream stream, searched());
  return searches_.begin(stream, std::move(request), std::shared_ptr<Places>(std::move(place)), abandon_);
}

base::Result<telemetry::FoundPart> Stream::search(const std::string& id, const telemetry::SearchPart& part) {
  return searches_.part(id, part);
}

base::Result<void> Stream::end_search(const std::string& id) { return searches_.end(id); }

// The stream as `destination` sees it.
base::Result<control::Delivery> Stream::desired_of(const std::string& destination) const {
  const control::StreamDefinition definition = desired();
  if (const auto* const found = definition.find(destination)) return control::delivery_to(definition, *found);
  return base::fail(base::ErrorCode::unknown_destination,
                    fmt::format("Stream {} has no destination \"{}\"", id_, destination));
}

base::Result<telemetry::LoggedConflicts> Stream::conflicts(const std::string& destination,
                                                           const telemetry::ConflictPart& part) const {
  THALWEG_ASSIGN(const control::Delivery delivery, desired_of(destination));
  return logged_conflicts(delivery, part, abandon_);
}

base::Result<std::vector<telemetry::LoggedCount>> Stream::conflict_counts(const std::string& destination) const {
  THALWEG_ASSIGN(const control::Delivery delivery, desired_of(destination));
  return daemon::conflict_counts(delivery, abandon_);
}

base::Result<control::ParkedListView> Stream::errors(const std::string& destination,
                                                     const telemetry::ParkedPart& part) const {
  THALWEG_ASSIGN(const control::Delivery delivery, desired_of(destination));
  const Place place = take_place(listings_);
  if (!place) return base::fail(base::ErrorCode::database_busy, "Other lists of these transactions are being read");
  THALWEG_ASSIGN(control::ParkedListView list, parked_errors(delivery, part, abandon_));
  list.execution = executions_.status(destination);
  return list;
}

base::Result<telemetry::ParkedTree> Stream::error_tree(const std::string& destination, int64_t error_id,
                                                       const telemetry::TreePart& part) const {
  THALWEG_ASSIGN(const control::Delivery delivery, desired_of(destination));
  const Place place = take_place(listings_);
  if (!place) return base::fail(base::ErrorCode::database_busy, "Other lists of these transactions are being read");
  return parked_error_tree(delivery, error_id, part, abandon_);
}

base::Result<control::ParkedContentsView> Stream::error_contents(const std::string& destination, int64_t error_id,
                                                                 const telemetry::ChangesPart& part) const {
  THALWEG_ASSIGN(const control::Delivery delivery, desired_of(destination));
  return parked_error_contents(delivery, error_id, part, abandon_);
}

// Its statements may wait for somebody's lock at the destination for as long as that lasts: nothing of the stream is
// held meanwhile.
base::Result<control::ExecutionState> Stream::execute_error(const std::string& destination,
                                                            const telemetry::ParkedChoice& choice) {
  THALWEG_ASSIGN(const control::Delivery delivery, desired_of(destination));
  return executions_.execute(
      destination, delivery, choice, [this, destination] { note_errors_changed(executions_.current_id(destination)); },
      [this, destination] { hold_apply(executions_.current_id(destination)); });
}

base::Result<control::DryRunView> Stream::dry_run_error(const std::string& destination, int64_t error_id,
                                                        const std::string& role) const {
  THALWEG_ASSIGN(const control::Delivery delivery, desired_of(destination));
  return dry_run_parked_error(delivery, error_id, role, abandon_);
}

base::Result<void> Stream::edit_error(const std::string& destination, int64_t error_id, uint64_t change,
                                      const std::optional<telemetry::ParkedEdit>& edit,
                                      const std::string& version) const {
  THALWEG_ASSIGN(const control::Delivery delivery, desired_of(destination));
  return edit_parked_error(delivery, error_id, change, edit, version, abandon_);
}

base::Result<void> Stream::drop_error(const std::string& destination, int64_t error_id) {
  THALWEG_ASSIGN(const control::Delivery delivery, desired_of(destination));
  auto removed = remove_parked_error(delivery, error_id, abandon_);
  note_errors_changed(destination);
  return removed;
}

// Recorded at the destination first: a crash from here on loses nothing of it.
base::Result<void> Stream::copy_table(const std::string& destination, const control::TableRef& table) {
  THALWEG_ASSIGN(const control::Delivery delivery, desired_of(destination));
  THALWEG_TRY(ask_for_copy(delivery, table, abandon_));
  TableWatch& tables = memory_of(destination).tables;
  tables.forget_missing(table);
  tables.refresh();
  start_over(destination);
  return {};
}

base::Result<void> Stream::accept_table(const std::string& destination, const control::TableRef& table) {
  THALWEG_ASSIGN(const control::Delivery delivery, desired_of(destination));
  THALWEG_TRY(accept_partitions(delivery, table, abandon_));
  memory_of(destination).tables.refresh();
  start_over(destination);  // it may still run, and have read of the trouble already, for which it is about to stop
  return {};
}

// A direct destination starts over together with its capture or receiver.
void Stream::start_over(const std::string& destination) {
  {
    std::lock_guard lock(mutex_);
    const control::DestinationDefinition* const desired = desired_.find(destination);
    if (desired != nullptr && is_direct(*desired)) {
      if (desired_.status != control::DesiredStatus::enabled) return;
      clear_memory();
      interrupt_ = true;
      has_news_ = true;
      retry_asked_ = true;
      changed_.notify_all();
      return;
    }
  }
  std::shared_lock lock(sessions_lock_);
  if (Destination* const found = sessions_ ? sessions_->find(destination) : nullptr) found->start_over();
}

// For an execution that is nearly done. A running transaction may wait for somebody's lock: it is not waited for long.
void Stream::hold_apply(const std::string& destination) {
  const auto find = [&] { return sessions_ ? sessions_->find(destination) : nullptr; };
  {
    std::shared_lock lock(sessions_lock_);
    if (Destination* const found = find()) found->hold_for_errors(kHoldMost);
  }
  const auto deadline = std::chrono::steady_clock::now() + kHoldPatience;
  while (!abandon_ && std::chrono::steady_clock::now() < deadline) {
    {
      std::shared_lock lock(sessions_lock_);
      const Destination* const found = find();
      if (found == nullptr || found->is_held()) return;
    }
    std::this_thread::sleep_for(kHoldLook);
  }
}

void Stream::note_errors_changed(const std::string& destination) {
  std::shared_lock lock(sessions_lock_);
  if (Destination* const found = sessions_ ? sessions_->find(destination) : nullptr) found->note_errors_changed();
}

}  // namespace thalweg::daemon
