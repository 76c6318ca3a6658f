#include "shipment/archive_probe.h"

#include <fmt/format.h>

#include "pg/replication_stream.h"
#include "shipment/archive_command.h"
#include "shipment/segment_name.h"
#include "shipment/source_identity.h"

namespace thalweg::shipment {

base::Result<void> probe_archive(const ArchivePlace& place, const base::Conninfo& source,
                                 const pg::ConnectOptions& session, const std::filesystem::path& folder,
                                 const std::atomic<bool>* stop) {
  THALWEG_ASSIGN(pg::ReplicationStream stream, pg::ReplicationStream::open(source, session));
  THALWEG_ASSIGN(const WalIdentity identity, identify(stream));
  THALWEG_ASSIGN(const pg::Rows last,
                 stream.connection().script("SELECT coalesce(last_archived_wal, '') FROM pg_catalog.pg_stat_archiver"));
  const auto segment = SegmentName::parse(last.text(0, 0), identity.segment_bytes);
  if (!segment || identity.name_of(segment->begin) != last.text(0, 0)) return {};
  const Archive archive(place, folder, stop);
  THALWEG_ASSIGN(const auto fetched, archive.fetch(segment->begin, identity));
  if (fetched) return {};
  return archive_failed(fmt::format("The archive {} does not have {}, which the source has archived last.",
                                    archive.text(), last.text(0, 0)));
}

}  // namespace thalweg::shipment
