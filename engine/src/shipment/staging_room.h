#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "shipment/archive.h"
#include "shipment/staging.h"

// The disk space of staged WAL: what may go, and when.

namespace thalweg::shipment {

struct StagingRoomOptions {
  // Segments that end there or before may go, once they are durable. Written by any thread. Null: all are kept.
  const std::atomic<uint64_t>* needed_from = nullptr;
  // At the limit, segments that end there or before go as well where the archive has the same: whoever needs them once
  // more reads them there. Written by any thread. Null: none do.
  const std::atomic<uint64_t>* read_to = nullptr;
  uint64_t bytes_max = UINT64_MAX;   // of all segments
  const Archive* archive = nullptr;  // null: there is none
  WalIdentity identity = {};
  const base::Clock* clock = nullptr;
};

// A whole staged segment, as an archive has it.
enum class Archived : uint8_t { no, same, different };
base::Result<Archived> compare_archived(const Archive& archive, const Staging& staging, base::Lsn segment);

// The record that goes on behind what is staged is damaged, or what is staged of it is: where the archive has other
// bytes of it by now, these are to come, and what is staged of it is given up. True: it was.
base::Result<bool> give_up_damaged(const Archive& archive, Staging& staging);

// Owner: the staging's thread.
class StagingRoom {
 public:
  // How often the archive is asked for what it did not have.
  static constexpr std::chrono::seconds kArchiveInterval{1};

  StagingRoom(Staging& staging, StagingRoomOptions options) : staging_(staging), options_(options) {}

  // Nothing more may be staged until something has gone.
  bool is_full() const { return staging_.bytes() >= options_.bytes_max; }
  // Lets go what may go. True: something went. Fails with wal_archive_failed where the archive has other bytes; what
  // nobody needs has gone then.
  base::Result<bool> make();

 private:
  base::Result<bool> drop_before(base::Lsn position);
  base::Result<bool> drop_archived();
  // A staging that was emptied would not know where to go on, and bytes that are not durable are needed, whatever
  // others say.
  base::Lsn last_kept() const { return {staging_.durable().value - 1}; }

  Staging& staging_;
  const StagingRoomOptions options_;
  base::Lsn dropped_;  // up to where it was looked for what is not needed
  std::chrono::steady_clock::time_point asked_at_;
};

}  // namespace thalweg::shipment
