#pragma once

#include <cstdint>

#include "base/error.h"
#include "shipment/wal_receiver.h"

namespace thalweg::shipment {

// Stages WAL from the archive, behind what is staged. Owner: one thread, which runs it.
class ArchiveReader {
 public:
  // `options`: a receiver's, with an archive and an identity. Both outlive it.
  ArchiveReader(const WalReceiverOptions& options, Staging& staging)
      : options_(options), staging_(staging), room_(staging, room_options(options, options.identity)) {}
  // Until it is stopped, or the archive lacks the next segment: whether anything came. Fails with
  // wal_archive_failed where nothing came because the archive cannot be used, or has other bytes than were staged.
  // Where nothing is staged nothing comes: no position is known.
  base::Result<bool> run();

 private:
  base::Result<bool> take_next();
  base::Result<bool> what_came(const base::Error& error, base::Lsn before) const;
  base::Result<bool> refuse(base::Lsn segment, const base::Error& error);
  void report();

  const WalReceiverOptions& options_;
  Staging& staging_;
  StagingRoom room_;
};

}  // namespace thalweg::shipment
