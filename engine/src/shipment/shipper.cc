#include "shipment/shipper.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/sentences.h"
#include "shipment/archive_reader.h"
#include "shipment/renewed_slot.h"

namespace thalweg::shipment {

namespace {

using base::ErrorCode;

constexpr std::chrono::milliseconds kLook{50};

// The source has forgotten the WAL that is next, or the slot that kept it.
bool is_forgotten(const base::Error& error) { return error.code == ErrorCode::slot_lost; }

}  // namespace

Shipper::Shipper(ShipperOptions options) : options_(std::move(options)), on_staged_(options_.receiver.on_staged) {
  options_.receiver.on_staged = [this](const StagingReport& report) { note_streaming(report); };
  options_.receiver.on_archive = [this](std::optional<base::Error> error) {
    if (error) note_reason(*error);
    has_trouble_ = error.has_value();
    options_.on_trouble(std::move(error));
  };
}

base::Result<void> Shipper::run() {
  while (true) {
    WalReceiver receiver(options_.receiver, staging_);
    const auto streamed = receiver.run();
    if (*options_.receiver.stop) return {};
    if (streamed) continue;  // with the next timeline
    if (staging_) options_.receiver.identity = staging_->identity();
    if (is_mended(streamed.error())) continue;
    if (!may_go_on(streamed.error(), receiver)) return streamed;
    THALWEG_TRY(bridge(streamed.error()));
    if (*options_.receiver.stop) return {};
  }
}

bool Shipper::may_go_on(const base::Error& error, const WalReceiver& receiver) const {
  if (options_.receiver.archive == nullptr || !staging_ || receiver.is_other_source()) return false;
  return is_forgotten(error) || base::class_of(error.code) == base::ErrorClass::transient;
}

// WAL of the source goes on with a record whose begin came from the archive, and the archive has it otherwise now.
bool Shipper::is_mended(const base::Error& error) {
  if (error.code != ErrorCode::protocol_violation || options_.receiver.archive == nullptr || !staging_) return false;
  return give_up_damaged(*options_.receiver.archive, *staging_).value_or(false);
}

// Until the source is to be tried again.
base::Result<void> Shipper::bridge(const base::Error& error) {
  const WalReceiverOptions& receiver = options_.receiver;
  if (!away_since_) away_since_ = now();
  bool came = false;
  base::Error why = error;
  if (is_forgotten(error) || now() - *away_since_ >= options_.patience) {
    // Before anything is fetched: what the archive does not have yet stays at the source.
    base::Result<void> renewed;
    if (is_forgotten(error)) {
      renewed =
          renew_slot(receiver.source, receiver.slot, {.application_name = receiver.slot, .abandon = receiver.stop});
    }
    const auto fetched = fetch();
    if (*receiver.stop) return {};
    if (!fetched && fetched.error().code != ErrorCode::wal_archive_failed) return std::unexpected(fetched.error());
    came = fetched.value_or(false);
    if (came) {
      archive_lacks_since_.reset();
    } else if (!archive_lacks_since_) {
      archive_lacks_since_ = now();
    }
    why = both_lack(error, fetched ? std::nullopt : std::optional{fetched.error()});
    if (!renewed) base::add_sentence(why.message, "The slot could not be made anew: " + renewed.error().message);
  }
  if (!came) note_reason(why);
  if (came) {
    nothing_since_.reset();
    retry_ = kRetryMin;
  } else if (!nothing_since_) {
    nothing_since_ = now();
  }
  const bool is_late = nothing_since_ && now() - *nothing_since_ >= options_.patience;
  if (is_late || std::exchange(has_trouble_, is_late)) {
    has_trouble_ = is_late;
    std::optional<base::Error> trouble;
    if (is_late) trouble = std::move(why);
    options_.on_trouble(std::move(trouble));
  }
  options_.on_waiting(archive_lacks_since_);
  wait();
  return {};
}

base::Error Shipper::both_lack(const base::Error& error, const std::optional<base::Error>& archive) const {
  base::Error both = error;
  // The slot is made anew by itself: what is in the way is the archive.
  if (is_forgotten(error)) {
    both.code = ErrorCode::wal_archive_failed;
    both.side = base::ErrorSide::engine;
  }
  if (archive) {
    if (archive->message != error.message) base::add_sentence(both.message, archive->message);
  } else if (staging_->end()) {
    const WalIdentity& identity = options_.receiver.identity;
    base::add_sentence(both.message,
                       fmt::format("The archive {} does not have {} either.", options_.receiver.archive->text(),
                                   identity.name_of(identity.segment_of(staging_->next()))));
  }
  return both;
}

// Once, until something comes again.
void Shipper::note_reason(const base::Error& error) {
  if (std::exchange(reason_, error.message) == error.message) return;
  base::log_event(base::LogLevel::warning, "no_wal_comes", {{"slot", options_.receiver.slot}, {"why", error.message}});
}

base::Result<bool> Shipper::fetch() {
  WalReceiverOptions of_archive = options_.receiver;
  of_archive.on_staged = on_staged_;
  return ArchiveReader(of_archive, *staging_).run();
}

// A source that has not said anything yet may still say that it has forgotten what it was asked for.
void Shipper::note_streaming(const StagingReport& report) {
  options_.receiver.identity = report.identity;
  if (report.server_time != base::UnixMicros{}) {
    away_since_.reset();
    nothing_since_.reset();
    archive_lacks_since_.reset();
    retry_ = kRetryMin;
    reason_.clear();
    if (std::exchange(has_trouble_, false)) options_.on_trouble({});
  }
  on_staged_(report);
}

void Shipper::wait() {
  const auto until = now() + retry_;
  retry_ = std::min(2 * retry_, kRetryMax);
  while (now() < until && !*options_.receiver.stop) std::this_thread::sleep_for(kLook);
}

}  // namespace thalweg::shipment
