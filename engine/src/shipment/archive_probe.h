#pragma once

#include <atomic>
#include <filesystem>

#include "base/error.h"
#include "base/networks.h"
#include "pg/connection.h"
#include "shipment/archive.h"

namespace thalweg::shipment {

// Whether the archive can be used, before anybody needs it: fetches the segment that the source has archived last
// (pg_stat_archiver), and checks it. Fails with wal_archive_failed, also where the archive does not have it. A source
// that has archived nothing leaves the question open. `folder`: of what is fetched; nothing stays there. `stop`: ends a
// command, by any thread.
base::Result<void> probe_archive(const ArchivePlace& place, const base::Conninfo& source,
                                 const pg::ConnectOptions& session, const std::filesystem::path& folder,
                                 const std::atomic<bool>* stop);

}  // namespace thalweg::shipment
