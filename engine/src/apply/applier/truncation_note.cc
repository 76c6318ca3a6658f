#include "apply/applier/truncation_note.h"

#include <fmt/format.h>

namespace thalweg::apply {

constexpr size_t kTruncationsMax = 64;  // notes that are kept: only the newest are needed

std::string truncation_note(const metadata::SourceTable& source, base::Xid xid, base::Lsn commit_lsn) {
  return fmt::format(
      "UPDATE thalweg.stream_table SET truncations = CASE WHEN pg_catalog.jsonb_array_length(truncations) >= {} THEN "
      "truncations - 0 ELSE truncations END || pg_catalog.jsonb_build_array(pg_catalog.jsonb_build_array({}::bigint, "
      "'{}')) WHERE stream_id = '{}' AND identity->'relation' = '{}' AND identity->'leaves' <> '[]'",
      kTruncationsMax, xid.value, base::to_string(commit_lsn), source.recorded_by, source.description.relation.value);
}

}  // namespace thalweg::apply
