#include "base/file.h"
#include "daemon/destination.h"

// A destination without a backlog, which reads the queue: nothing of this is between a change and its apply.

namespace thalweg::daemon {
namespace {

constexpr std::chrono::seconds kRefusalPatience{10};

}  // namespace

base::Result<CaptureStart> Destination::open(queue::LcrQueue& queue, const SourceSlot& slot) {
  begin_session(slot);
  constraints_due_.reset();
  refused_since_.reset();
  // Before the wait for the engine that captures: without an identity that one never gets through.
  if (options_.definition.receive_from) THALWEG_TRY(options_.peering->name());
  THALWEG_TRY(base::make_folders(options_.directory));
  StartedDestination started;
  if (!sends()) {
    THALWEG_ASSIGN(started, start_destination(options_.definition, start_context()));
    if (options_.tables != nullptr) options_.tables->refresh();
    source_ = started.identity;
  }
  constraints_from_ = started.constraints_from;
  frames_.emplace(queue, 0);
  THALWEG_ASSIGN(const base::Lsn from, start_consumer(options_.definition, started, *frames_));
  return CaptureStart{.identity = source_, .from = from};
}

base::Result<void> Destination::look() {
  if (auto failed = consumer_->failure()) return std::unexpected(*failed);
  THALWEG_TRY(check_refusal());
  const base::Lsn applied = consumer_->applied();
  note_confirmed({consumer_->confirmed().load(std::memory_order_acquire)});
  if (auto trouble = unresolved_trouble()) {
    if (!options_.definition.parameters.stops_tables()) return std::unexpected(std::move(*trouble));
    wish_session();  // the next start does it
  }
  if (constraints_from_ && applied >= constraints_from_) {
    constraints_due_ = applied;
    wish_session();
  }
  return {};
}

// The other engine may wait for a table that has become fit to be published: a session's start publishes it.
base::Result<void> Destination::check_refusal() {
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

void Destination::release() {
  if (!reads_queue()) return;
  std::unique_lock lock(session_lock_);
  consumer_.reset();
  ruled_.reset();
  frames_.reset();
}

base::Result<void> Destination::add_due_constraints() {
  if (!constraints_due_) return {};
  return add_late_constraints(options_.definition, start_context(), *constraints_due_);
}

}  // namespace thalweg::daemon
