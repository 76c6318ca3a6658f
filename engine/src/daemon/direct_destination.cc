#include "daemon/direct_destination.h"

#include "base/file.h"
#include "capture/wal/wal_start.h"
#include "daemon/earlier_logs.h"
#include "daemon/source_objects.h"
#include "daemon/source_slot.h"

// No code here runs per change.

namespace thalweg::daemon {
namespace {

constexpr std::chrono::seconds kRefusalPatience{10};

}  // namespace

DirectDestination::DirectDestination(const DestinationOptions& options)
    : Destination(options, {.apply = options.directory, .rules = options.directory}) {}

DirectDestination::~DirectDestination() { end(); }

base::Result<void> DirectDestination::begin(SessionStart& session) {
  begin_session(session.slot);
  needs_session_ = false;
  constraints_due_.reset();
  refused_since_.reset();
  // Before the wait for the engine that captures: without an identity that one never gets through.
  if (options_.delivery.stream.receive_from) THALWEG_TRY(options_.peering->name());
  THALWEG_TRY(base::make_folders(options_.directory));
  StartedDestination started;
  if (!sends()) {
    THALWEG_ASSIGN(started, start_destination(options_.delivery, start_context()));
    if (options_.tables != nullptr) options_.tables->refresh();
    source_ = started.identity;
  }
  constraints_from_ = started.constraints_from;
  frames_.emplace(session.queue, session.next_consumer++);
  THALWEG_ASSIGN(session.from, start_consumer(options_.delivery, started, *frames_));
  note_effect(options_.delivery);
  session.identity = source_;
  session.confirmed = &consumer_->confirmed();
  return {};
}

base::Result<void> DirectDestination::tend() {
  if (auto failed = consumer_->failure()) return std::unexpected(*failed);
  THALWEG_TRY(check_refusal());
  const base::Lsn applied = consumer_->applied();
  note_confirmed({consumer_->confirmed().load(std::memory_order_acquire)});
  if (auto trouble = unresolved_trouble()) {
    if (!options_.delivery.destination.parameters.stops_tables()) return std::unexpected(std::move(*trouble));
    needs_session_ = true;  // the next start does it
  }
  if (constraints_from_ && applied >= constraints_from_) {
    constraints_due_ = applied;
    needs_session_ = true;
  }
  return {};
}

// The other engine may wait for a table that has become fit to be published: a session's start publishes it.
base::Result<void> DirectDestination::check_refusal() {
  const auto trouble = sends() ? consumer_->trouble() : std::nullopt;
  if (!trouble || trouble->code != base::ErrorCode::link_refused) {
    refused_since_.reset();
    return {};
  }
  const auto now = std::chrono::steady_clock::now();
  if (!refused_since_) refused_since_ = now;
  if (now - *refused_since_ < kRefusalPatience) return {};
  return std::unexpected(*trouble);
}

void DirectDestination::drain() {
  if (consumer_) consumer_->request_stop(true);
}

void DirectDestination::request_stop() {
  if (consumer_) consumer_->request_stop(false);
}

// A link that breaks now is not waited for (the receiver may have been stopped first): the source keeps what it lacks.
bool DirectDestination::has_ended() const { return !consumer_ || !consumer_->is_running() || consumer_->trouble(); }

void DirectDestination::end() {
  request_stop();
  if (consumer_) consumer_->join();
}

void DirectDestination::release() {
  release_consumer();
  frames_.reset();
}

base::Result<void> DirectDestination::finish_session() {
  if (!constraints_due_) return {};
  return add_late_constraints(options_.delivery, start_context(), *constraints_due_);
}

StartContext DirectDestination::start_context() {
  return {.destination = id(),
          .joins_capture = options_.delivery.stream.receive_from.has_value(),
          .session = {},
          .progress = options_.progress,
          .folder = mining_folder(options_.directory),
          .work = {.stop = options_.stop, .board = options_.board},
          .on_copy = options_.on_copy};
}

base::Result<void> DirectDestination::go_on_from(base::Lsn reached) {
  auto joins = check_joins(reached, from_, slot_made_at_, options_.delivery.destination.name);
  if (joins || !mines(options_.delivery.stream)) return joins;
  auto kept = capture::check_kept(mining_folder(options_.directory), reached);
  if (!kept) return joins.error().code == base::ErrorCode::slot_lost ? joins : kept;
  std::unique_lock lock(session_lock_);
  from_ = reached;
  return {};
}

control::DestinationStatus DirectDestination::status() const {
  control::DestinationStatus out = Destination::status();
  out.confirmed = confirmed();
  std::shared_lock lock(session_lock_);
  if (consumer_) out.confirmed = {consumer_->confirmed().load(std::memory_order_acquire)};
  return out;
}

}  // namespace thalweg::daemon
