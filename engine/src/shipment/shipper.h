#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "shipment/wal_receiver.h"

// Keeps a source's WAL coming: from the source, and where that cannot give what is next, from its archive.

namespace thalweg::shipment {

struct ShipperOptions {
  WalReceiverOptions receiver;
  // By the shipper's thread: why neither the source nor the archive gives more, for longer than the patience; none: one
  // of them does again.
  std::function<void(std::optional<base::Error>)> on_trouble = [](const std::optional<base::Error>&) {};
  // By the shipper's thread: it waits for the next try. Since when the archive has given nothing of what is next, which
  // the source does not give either; none: the archive is not asked yet, or has just given something.
  std::function<void(std::optional<std::chrono::steady_clock::time_point>)> on_waiting = [](const auto&) {};
  // How long a source may be away before the archive is asked. WAL that the source no longer has is asked for at once.
  std::chrono::milliseconds patience{60'000};
};

// Owner: one thread, which runs it.
class Shipper {
 public:
  static constexpr std::chrono::milliseconds kRetryMin{250};
  static constexpr std::chrono::milliseconds kRetryMax{5'000};

  explicit Shipper(ShipperOptions options);
  // Until it is stopped (success) or fails. Without an archive: as the receiver does. With one, only by what neither
  // time nor the archive mends: another source or timeline than at first, other bytes from it than before, the engine's
  // own disk.
  base::Result<void> run();

 private:
  using Time = std::chrono::steady_clock::time_point;

  bool may_go_on(const base::Error& error, const WalReceiver& receiver) const;
  bool is_mended(const base::Error& error);
  base::Result<void> bridge(const base::Error& error);
  base::Result<bool> fetch();
  // Why nothing comes, from the source (`error`) or the archive.
  base::Error both_lack(const base::Error& error, const std::optional<base::Error>& archive) const;
  void note_reason(const base::Error& error);
  void note_streaming(const StagingReport& report);
  void wait();
  Time now() const { return options_.receiver.clock.steady_now(); }

  ShipperOptions options_;
  std::optional<Staging> staging_;
  const std::function<void(const StagingReport&)> on_staged_;
  std::chrono::milliseconds retry_{kRetryMin};
  std::optional<Time> away_since_;           // the source; none: it is there
  std::optional<Time> nothing_since_;        // neither gave anything
  std::optional<Time> archive_lacks_since_;  // what is next; none: it was not asked, or gave something
  bool has_trouble_ = false;
  std::string reason_;  // logged last
};

}  // namespace thalweg::shipment
