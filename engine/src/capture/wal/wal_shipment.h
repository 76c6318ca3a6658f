#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>

#include "base/doorbell.h"
#include "base/error.h"
#include "shipment/archive.h"
#include "shipment/shipper.h"
#include "telemetry/agent.h"
#include "telemetry/sample.h"

// The source's WAL on its way to this host's disk, beside the agent that mines it.

namespace thalweg::capture {

// Thread-safe. Its thread runs from begin() to end(), or until it fails.
class WalShipment {
 public:
  // `options`: without what it sets itself, the callbacks and what is shared. `archive`: where the source's WAL is as
  // well; `scratch` is the folder of what is fetched from there.
  WalShipment(shipment::WalReceiverOptions options, std::optional<shipment::ArchivePlace> archive,
              std::filesystem::path scratch);
  ~WalShipment() { end(); }
  WalShipment(const WalShipment&) = delete;
  WalShipment& operator=(const WalShipment&) = delete;

  // All of it is of that source.
  void begin(shipment::WalIdentity source);
  void end();

  // None before the first connection.
  std::optional<shipment::StagingReport> report() const;
  std::optional<base::Error> failure() const;
  // Why nothing comes at present, from the source or its archive.
  std::optional<base::Error> trouble() const;
  // Rings whenever the report or the failure has changed.
  base::Doorbell& bell() { return bell_; }
  // Segments that end there or before may go.
  void set_needed_from(base::Lsn lsn) { needed_from_.store(lsn.value, std::memory_order_release); }
  // Segments that end there or before are only needed by a restart: at the limit those go that the archive has.
  void set_read_to(base::Lsn lsn) { read_to_.store(lsn.value, std::memory_order_release); }

  telemetry::ComponentSample sample() const;

 private:
  void take(const shipment::StagingReport& report);
  // For how long the archive has lacked what is next, while the source cannot be read; zero: it does not.
  std::chrono::microseconds archive_wait() const;

  std::atomic<bool> stop_{false};         // writer: the owner. Reader: the thread
  std::atomic<uint64_t> needed_from_{0};  // writer: the owner (release). Reader: the thread (acquire)
  std::atomic<uint64_t> read_to_{0};      // likewise
  const std::optional<shipment::Archive> archive_;
  shipment::WalReceiverOptions options_;
  base::Doorbell bell_;

  mutable std::mutex mutex_;  // guards these
  std::optional<shipment::StagingReport> report_;
  std::optional<base::Error> error_, trouble_;
  std::optional<std::chrono::steady_clock::time_point> archive_lacks_since_;

  // The thread's; read by anybody.
  telemetry::StateText state_{"INITIALIZING"};
  telemetry::TimeAccount time_;
  telemetry::Counter received_bytes_, archived_bytes_;  // the latter of the former
  std::thread thread_;
};

}  // namespace thalweg::capture
