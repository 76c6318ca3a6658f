#include "capture/wal/wal_shipment.h"

#include <utility>

namespace thalweg::capture {

using telemetry::Activity;

WalShipment::WalShipment(shipment::WalReceiverOptions options, std::optional<shipment::ArchivePlace> archive,
                         std::filesystem::path scratch)
    : archive_([&]() -> std::optional<shipment::Archive> {
        if (!archive) return std::nullopt;
        return std::optional<shipment::Archive>(std::in_place, std::move(*archive), std::move(scratch), &stop_);
      }()),
      options_([&] {
        options.stop = &stop_;
        options.needed_from = &needed_from_;
        options.read_to = &read_to_;
        options.archive = archive_ ? &*archive_ : nullptr;
        options.on_staged = [this](const shipment::StagingReport& report) { take(report); };
        return std::move(options);
      }()) {}

void WalShipment::begin(shipment::WalIdentity source) {
  options_.identity = std::move(source);
  thread_ = std::thread([this] {
    time_.enter(Activity::network);
    auto ran = shipment::Shipper({.receiver = options_,
                                  .on_trouble =
                                      [this](std::optional<base::Error> trouble) {
                                        const std::lock_guard lock(mutex_);
                                        trouble_ = std::move(trouble);
                                      },
                                  .on_waiting =
                                      [this](std::optional<std::chrono::steady_clock::time_point> archive_lacks_since) {
                                        state_.set("WAITING FOR SOURCE OR ARCHIVE");
                                        const std::lock_guard lock(mutex_);
                                        archive_lacks_since_ = archive_lacks_since;
                                      }})
                   .run();
    state_.set(ran ? "STOPPED" : "ABORTING");
    time_.enter(Activity::idle);
    if (!ran) {
      const std::lock_guard lock(mutex_);
      error_ = std::move(ran).error();
    }
    bell_.ring();
  });
}

void WalShipment::end() {
  stop_.store(true, std::memory_order_release);
  if (thread_.joinable()) thread_.join();
}

void WalShipment::take(const shipment::StagingReport& report) {
  {
    const std::lock_guard lock(mutex_);
    const bool has_more = report_ && report.end > report_->end;
    // A connection that was only made may still fail for want of the same WAL.
    if (has_more || report.server_time != base::UnixMicros{}) archive_lacks_since_.reset();
    if (has_more) {
      const uint64_t bytes = report.end.value - report_->end.value;
      received_bytes_.add(bytes);
      if (report.is_archived) archived_bytes_.add(bytes);
    }
    report_ = report;
  }
  state_.set(report.is_full       ? "PAUSED FOR STAGING SPACE"
             : report.is_archived ? "FETCHING ARCHIVED WAL"
                                  : "RECEIVING WAL");
  time_.enter(report.is_full ? Activity::flow_control : Activity::network);
  bell_.ring();
}

std::optional<shipment::StagingReport> WalShipment::report() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

std::optional<base::Error> WalShipment::failure() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

std::optional<base::Error> WalShipment::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

std::chrono::microseconds WalShipment::archive_wait() const {
  const std::lock_guard lock(mutex_);
  if (!archive_lacks_since_) return {};
  return std::chrono::duration_cast<std::chrono::microseconds>(options_.clock.steady_now() - *archive_lacks_since_);
}

telemetry::ComponentSample WalShipment::sample() const {
  const shipment::StagingReport report = this->report().value_or(shipment::StagingReport{});
  return {.type = "CAPTURE",
          .name = "capture",
          .sub_component = "WAL SHIPMENT",
          .server = 0,
          .state = state_.get(),
          .time_ns = time_.sample(),
          .counters = {{"received_bytes", received_bytes_.get()}, {"archived_bytes", archived_bytes_.get()}},
          .gauges = {{"archive_wait_us", archive_wait().count()},
                     {"staged_bytes", static_cast<int64_t>(report.bytes)},
                     {"staging_limit_bytes", static_cast<int64_t>(options_.bytes_max)},
                     {"unsynced_bytes", static_cast<int64_t>(report.end.value - report.durable.value)}}};
}

}  // namespace thalweg::capture
