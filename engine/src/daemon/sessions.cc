#include "daemon/sessions.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/log.h"
#include "capture/wal/wal_folder.h"
#include "daemon/direct_destination.h"
#include "daemon/independent_destination.h"
#include "daemon/made_slot.h"
#include "daemon/queue_sample.h"
#include "daemon/rule_sets.h"
#include "daemon/source_objects.h"
#include "daemon/source_slot.h"
#include "daemon/stream_status.h"
#include "shipment/archive_probe.h"
#include "shipment/archives_file.h"
#include "spill/spill_space.h"

namespace thalweg::daemon {
namespace {

using base::Lsn;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{50};
constexpr std::chrono::milliseconds kDrainPatience{30'000};  // when it is stopped
// Between two sessions. All destinations stand still meanwhile: what a slow one has not got by then comes again.
constexpr std::chrono::milliseconds kSessionDrainPatience{300};
// So long after another one a destination may still have something to commit; then its backlog is to be durable.
constexpr std::chrono::seconds kBehindPatience{15};
constexpr std::chrono::seconds kMarkInterval{1};

queue::LcrQueueOptions queue_options(const control::StreamParameters& parameters, size_t consumers) {
  return {.slots = static_cast<size_t>(parameters.queue_size),
          .memory_bytes = static_cast<size_t>(parameters.queue_memory_mb) * 1024 * 1024,
          .consumers = consumers};
}

using control::DesiredStatus;
using control::DestinationDefinition;
using control::StreamDefinition;

bool goes_on_as(const DestinationDefinition& from, const DestinationDefinition& to) {
  const bool same_life = from.status == to.status && from.force == to.force;
  const bool changes_within = to.backlog && (from.status != DesiredStatus::dropped || to.status == from.status);
  return from.backlog == to.backlog && from.conninfo == to.conninfo && from.send_to == to.send_to &&
         (same_life || changes_within) && (to.backlog || from.rules == to.rules) &&
         !control::needs_restart(from.parameters, to.parameters);
}

// A new destination needs a consumer of the queue of its own, and the last one that goes has nobody left to capture
// for.
bool destinations_go_on(const StreamDefinition& from, const StreamDefinition& to) {
  const auto stays = [&](const DestinationDefinition& destination) {
    const DestinationDefinition* const next = to.find(destination.id);
    return next == nullptr ? destination.backlog && destination.status == DesiredStatus::dropped
                           : goes_on_as(destination, *next);
  };
  const auto is_known = [&](const DestinationDefinition& destination) { return from.find(destination.id) != nullptr; };
  const auto takes = [](const DestinationDefinition& destination) {
    return destination.status != DesiredStatus::dropped;
  };
  return std::ranges::all_of(from.destinations, stays) && std::ranges::all_of(to.destinations, is_known) &&
         std::ranges::any_of(from.destinations, takes) == std::ranges::any_of(to.destinations, takes);
}

}  // namespace

bool goes_on_with(const StreamDefinition& from, const StreamDefinition& to) {
  return from.source.conninfo == to.source.conninfo && from.receive_from == to.receive_from &&
         from.staging_limit_mb == to.staging_limit_mb && from.wal_keep_mb == to.wal_keep_mb &&
         from.capture_memory_mb == to.capture_memory_mb && from.wal_archive == to.wal_archive &&
         from.tables == to.tables && from.inserts_only == to.inserts_only && from.accepted_code == to.accepted_code &&
         from.rules == to.rules && from.transformations == to.transformations && from.names == to.names &&
         from.mask_key == to.mask_key && reads_transaction(from) == reads_transaction(to) &&
         !control::capture_needs_restart(from.parameters, to.parameters) && destinations_go_on(from, to);
}

Sessions::Sessions(SessionsOptions options)
    : options_(std::move(options)), wanted_kind_(options_.wanted_kind.value_or(options_.definition.capture_kind)) {
  const StreamDefinition& stream = options_.definition;
  for (const DestinationDefinition& destination : stream.destinations) {
    DestinationMemory* const memory = options_.memory_of ? options_.memory_of(destination.id) : nullptr;
    const DestinationOptions own{
        .delivery = control::delivery_to(stream, destination),
        .directory = destination.backlog ? options_.spill_directory / destination.id : options_.spill_directory,
        .clock = options_.clock,
        .peering = options_.peering,
        .board = options_.board,
        .tables = memory == nullptr ? nullptr : &memory->tables,
        .progress = memory == nullptr ? nullptr : &memory->progress,
        .retries = memory == nullptr ? nullptr : &memory->retries,
        .effect = memory == nullptr ? nullptr : &memory->effect,
        .stop = options_.stop,
        .on_copy = [this] { options_.set_state(State::instantiating); },
        .publishes_all = [this](const DatabaseWork& work) { return publishes_all(options_.definition, work); },
        .backlog_segment_bytes = options_.backlog_segment_bytes};
    if (is_direct(destination)) {
      destinations_.push_back(std::make_unique<DirectDestination>(own));
    } else {
      destinations_.push_back(std::make_unique<IndependentDestination>(own));
    }
  }
}

Sessions::~Sessions() { end(false, {}); }

base::Result<void> Sessions::run() {
  if (std::ranges::any_of(destinations_, [](const auto& destination) { return destination->keeps_capture_off(); })) {
    rest();
    return {};
  }
  auto ran = run_to_the_end();
  end_kind_change();
  return ran;
}

base::Result<void> Sessions::run_to_the_end() {
  while (!*options_.stop && !changes_kind_) {
    THALWEG_ASSIGN(const SourceSlot slot, prepare_source());
    THALWEG_TRY(run_session(slot));
  }
  return {};
}

// A destination that prepares the source itself leaves nothing there when it cannot be begun.
base::Result<SourceSlot> Sessions::prepare_source() {
  THALWEG_TRY(find_archive());
  if (std::ranges::any_of(destinations_, [](const auto& destination) { return destination->prepares_source(); }))
    return SourceSlot{};
  THALWEG_ASSIGN(SourceSlot slot, start_source(options_.definition, {.stop = options_.stop, .board = options_.board},
                                               mining_folder(options_.spill_directory), lacked_from()));
  if (slot.made_at) {
    THALWEG_TRY(note_made_slot(options_.spill_directory, slot.made_at));
  } else {
    slot.made_at = read_made_slot(options_.spill_directory);
  }
  return slot;
}

// The lowest position from which on a destination lacks what has been captured; zero: none does.
Lsn Sessions::lacked_from() const {
  Lsn lowest;
  for (const auto& destination : destinations_) {
    const Lsn lacked = destination->lacks_from();
    if (lacked && !destination->is_dropped() && (!lowest || lacked < lowest)) lowest = lacked;
  }
  return lowest;
}

// At each session: its administrator may have changed it.
base::Result<void> Sessions::find_archive() {
  archive_.reset();
  if (options_.definition.wal_archive.empty() || !mines(options_.definition)) return {};
  THALWEG_ASSIGN(archive_, shipment::find_archive(options_.archives_file, options_.definition.wal_archive));
  // A stream that runs goes on without its archive. One that begins is refused before its copy.
  const capture::WalFolder mined(mining_folder(options_.spill_directory));
  THALWEG_ASSIGN(const auto begun, mined.read_state());
  if (begun) return {};
  const DatabaseWork work{.stop = options_.stop, .board = options_.board};
  auto probed = shipment::probe_archive(*archive_, options_.definition.source.conninfo,
                                        capture_session(options_.definition, work), mined.scratch(), options_.stop);
  if (!probed && probed.error().code == base::ErrorCode::wal_archive_failed) return probed;
  return on_side("Source", options_.definition.source.name, std::move(probed));
}

base::Result<void> Sessions::run_session(const SourceSlot& slot) {
  auto ran = begin(slot);
  if (ran) {
    options_.on_capture();
    ran = watch();
  }
  const bool for_good = *options_.stop && !options_.goes_on();
  end(ran.has_value(), for_good || has_direct() ? kDrainPatience : kSessionDrainPatience);
  if (!ran || *options_.stop) return ran;
  for (const auto& destination : destinations_) THALWEG_TRY(destination->finish_session());
  return {};
}

base::Result<void> Sessions::begin(const SourceSlot& slot) {
  const auto takes = [](const auto& destination) { return !destination->is_dropped(); };
  const auto consumers = static_cast<size_t>(std::ranges::count_if(destinations_, takes));
  {
    std::unique_lock lock(session_lock_);
    queue_ = std::make_unique<queue::LcrQueue>(queue_options(options_.definition.parameters, consumers));
  }
  confirmed_.store(slot.confirmed_flush.value, std::memory_order_release);
  marks_.clear();
  SessionStart session{.queue = *queue_,
                       .slot = slot,
                       .source_end = source_end_,
                       .identity = slot.identity,
                       .from = slot.confirmed_flush,
                       .confirmed = &confirmed_,
                       .spillables = {}};
  THALWEG_TRY(begin_destinations(session));
  auto producer =
      options_.definition.receive_from
          ? make_receiver_producer(control::delivery_to(options_.definition, options_.definition.destinations.front()),
                                   session.identity.timeline, *options_.peering, *queue_, *options_.clock)
          : make_capture_producer(options_.definition, session.identity,
                                  {.folder = options_.spill_directory, .archive = archive_}, *queue_, *options_.clock,
                                  options_.tap);
  {
    std::unique_lock lock(session_lock_);
    producer_ = std::move(producer);
    producer_since_ = options_.clock->unix_now();
  }
  base::log_event(base::LogLevel::info, "session_begun",
                  {{"stream", options_.definition.id},
                   {"from", base::to_string(session.from)},
                   {"timeline", session.identity.timeline}});
  THALWEG_TRY(producer_->start(session.from, *session.confirmed));
  producing_ = true;
  return {};
}

// Removals first: the start of another destination may copy for hours.
base::Result<void> Sessions::begin_destinations(SessionStart& session) {
  for (const auto& destination : destinations_) {
    if (destination->is_dropped()) THALWEG_TRY(destination->begin(session));
  }
  // Removes the spill files that the apply of a direct destination has left.
  THALWEG_TRY(spill::SpillSpace(options_.spill_directory, 0, *options_.clock).clear());
  for (const auto& destination : destinations_) {
    if (!destination->is_dropped()) THALWEG_TRY(destination->begin(session));
  }
  if (!session.spillables.empty()) {
    spiller_ = std::make_unique<queue::QueueSpiller>(std::move(session.spillables));
  }
  return {};
}

base::Result<void> Sessions::watch() {
  options_.set_state(State::catching_up);
  while (!*options_.stop && !needs_session() && !changes_kind_) {
    // Destinations first: when one ends that lives with the capture, the producer only notices that nobody takes its
    // LCRs.
    for (const auto& destination : destinations_) THALWEG_TRY(destination->tend());
    if (auto failed = producer_->failure()) return std::unexpected(*failed);
    look();
    options_.on_look();
    std::this_thread::sleep_for(kLook);
  }
  return {};
}

void Sessions::look() {
  const capture::CaptureStatus capture = producer_->capture_status();
  source_end_.store(capture.source_end.value, std::memory_order_release);
  confirmed_.store(lowest_confirmed().value, std::memory_order_release);
  judge(capture.captured);
  look_at_kind();
  std::optional<base::Error> trouble;
  for (const auto& destination : destinations_) {
    if (!trouble) trouble = destination->stream_trouble();
  }
  if (!trouble) trouble = producer_->trouble();
  if (!trouble && kind_change_) trouble = kind_change_->trouble();
  options_.note_trouble(trouble);
  if (trouble) return;
  const auto has_caught_up = [&](const auto& destination) { return destination->has_caught_up(*producer_); };
  if (std::ranges::all_of(destinations_, has_caught_up)) {
    options_.set_state(State::replicating);
  } else if (!has_direct()) {
    options_.set_state(State::catching_up);  // a destination has begun anew within the session
  }
}

// While the present kind works, the other one is prepared; it goes on once nobody lacks anything from before it. One
// that is not wanted any more leaves nothing.
void Sessions::look_at_kind() {
  const control::CaptureKind present = options_.definition.capture_kind;
  if (options_.definition.receive_from) return;
  if (kind_change_ ? kind_change_->to() != wanted_kind_ : present != wanted_kind_) {
    end_kind_change();
    StreamDefinition wanted = options_.definition;
    wanted.capture_kind = wanted_kind_;
    auto change = std::make_unique<KindChange>(std::move(wanted), present, options_.spill_directory, options_.board);
    std::unique_lock lock(session_lock_);
    kind_change_ = std::move(change);
  }
  const auto position = kind_change_ ? kind_change_->position() : std::nullopt;
  changes_kind_ = position && lowest_confirmed() >= *position;
}

void Sessions::end_kind_change() {
  std::unique_ptr<KindChange> change;
  std::unique_lock lock(session_lock_);
  change = std::move(kind_change_);
  lock.unlock();  // it may take seconds to give up
}

// Nothing is captured; destinations may be on their way out.
void Sessions::rest() {
  options_.set_state(State::disabled);
  for (const auto& destination : destinations_) destination->rest();
  while (!*options_.stop) {
    options_.on_look();
    std::this_thread::sleep_for(kLook);
  }
  for (const auto& destination : destinations_) destination->end();
}

bool Sessions::has_direct() const {
  return std::ranges::any_of(destinations_, [](const auto& destination) { return destination->lives_with_capture(); });
}

bool Sessions::needs_session() const {
  return std::ranges::any_of(destinations_, [](const auto& destination) { return destination->needs_session(); });
}

Lsn Sessions::lowest_confirmed() const {
  Lsn lowest{UINT64_MAX};
  for (const auto& destination : destinations_) {
    if (!destination->is_dropped()) lowest = std::min(lowest, destination->confirmed());
  }
  return lowest;
}

// A slow destination, though nothing fails there, also makes the source keep WAL.
void Sessions::judge(Lsn captured) {
  const auto now = steady_clock::now();
  if (marks_.empty() || now - marks_.back().at >= kMarkInterval) {
    marks_.push_back({.at = now, .captured = captured});
  }
  Lsn due;
  while (!marks_.empty() && now - marks_.front().at >= kBehindPatience) {
    due = marks_.front().captured;
    marks_.pop_front();
  }
  if (!due) return;
  const bool somebody_has = std::ranges::any_of(destinations_, [&](const auto& destination) {
    return !destination->is_dropped() && destination->confirmed() >= due;
  });
  if (!somebody_has) return;
  for (const auto& destination : destinations_) {
    if (!destination->is_dropped() && destination->confirmed() < due) destination->keep_to_disk();
  }
}

void Sessions::end(bool drain, std::chrono::milliseconds patience) {
  if (!queue_) return;
  if (drain && producing_) {
    if (has_direct()) options_.set_state(State::draining);
    producer_->quiesce();
    for (const auto& destination : destinations_) destination->drain();
    const auto deadline = steady_clock::now() + patience;
    const auto ended = [](const auto& destination) { return destination->has_ended(); };
    while (!std::ranges::all_of(destinations_, ended) && steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    for (const auto& destination : destinations_) {
      if (!destination->lives_with_capture() || destination->has_ended()) continue;  // the next session brings it again
      base::log_event(base::LogLevel::warning, "drain_incomplete", {{"stream", options_.definition.id}});
    }
  }
  for (const auto& destination : destinations_) destination->request_stop();
  spiller_.reset();
  for (const auto& destination : destinations_) destination->end();
  if (producing_) {
    confirmed_.store(lowest_confirmed().value, std::memory_order_release);
    producer_->join();
  }
  for (const auto& destination : destinations_) destination->release();
  std::unique_lock lock(session_lock_);
  producing_ = false;
  producer_.reset();
  queue_.reset();
}

void Sessions::take_up(const control::StreamDefinition& definition) {
  wanted_kind_ = definition.capture_kind;
  for (const auto& destination : destinations_) {
    const control::DestinationDefinition* const desired = definition.find(destination->id());
    if (desired != nullptr) {
      destination->take_up(*desired);
    } else if (destination->is_dropped()) {
      destination->forget();
    }
  }
}

Destination* Sessions::find(const std::string& destination) const {
  const auto found = std::ranges::find_if(destinations_, [&](const auto& candidate) {
    return candidate->id() == destination && !candidate->is_forgotten();
  });
  return found == destinations_.end() ? nullptr : found->get();
}

StreamPositions Sessions::positions() const {
  std::shared_lock lock(session_lock_);
  if (!producing_) return {};
  const capture::CaptureStatus capture = producer_->capture_status();
  return {.captured = capture.captured, .source_end = capture.source_end, .confirmed = capture.confirmed};
}

std::optional<control::KindChangeStatus> Sessions::kind_change() const {
  control::KindChangeStatus out;
  {
    std::shared_lock lock(session_lock_);
    if (!kind_change_ || kind_change_->to() == options_.definition.capture_kind) return std::nullopt;
    out.to = kind_change_->to();
    out.position = kind_change_->position();
  }
  for (const auto& destination : destinations_) {
    if (out.position && !destination->is_dropped() && destination->confirmed() < *out.position) {
      out.waits_for.push_back(destination->id());
    }
  }
  return out;
}

std::optional<control::RuleCounts> Sessions::rule_counts() const {
  std::shared_lock lock(session_lock_);
  if (!producing_) return {};
  auto tables = producer_->rules();
  if (tables.empty()) return {};
  return control::RuleCounts{.counted_since = producer_since_, .tables = std::move(tables)};
}

std::vector<control::DestinationStatus> Sessions::destinations() const {
  std::vector<control::DestinationStatus> out;
  for (const auto& destination : destinations_) {
    if (!destination->is_forgotten()) out.push_back(destination->status());
  }
  return out;
}

control::StreamStats Sessions::stats() const {
  control::StreamStats stats;
  stats.id = options_.definition.id;
  {
    std::shared_lock lock(session_lock_);
    if (producing_) {
      stats.components.push_back(producer_->sample());
      for (telemetry::ComponentSample& part : producer_->parts()) stats.components.push_back(std::move(part));
      stats.components.push_back(queue_sample(*queue_));
    }
  }
  for (const auto& destination : destinations_) {
    if (!destination->is_forgotten()) destination->add_to(stats);
  }
  return stats;
}

telemetry::MarkerTrail Sessions::markers() const {
  telemetry::MarkerTrail trail;
  {
    std::shared_lock lock(session_lock_);
    if (producing_) producer_->add_to(trail);
  }
  for (const auto& destination : destinations_) destination->add_to(trail);
  return trail;
}

base::Result<void> Sessions::place_marker(const std::string& id, const std::string& label) {
  std::shared_lock lock(session_lock_);
  if (producing_) return producer_->place_marker(id, label);
  return base::fail(base::ErrorCode::marker_refused, "The capture does not run");
}

bool Sessions::captures() const {
  std::shared_lock lock(session_lock_);
  return producing_ && producer_->capture_status().running;
}

telemetry::TransactionSamples Sessions::transactions() const {
  telemetry::TransactionSamples all;
  for (const auto& destination : destinations_) destination->add_to(all);
  return all;
}

}  // namespace thalweg::daemon
