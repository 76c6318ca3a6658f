#pragma once

#include <filesystem>
#include <string>

#include "pg/publication_names.h"

namespace thalweg::daemon {

// The names of what a stream has at its source.
inline std::string slot_name(const std::string& stream_id) { return "thalweg_" + stream_id; }
inline pg::PublicationNames publications_of(const std::string& stream_id) {
  return {.changes = "thalweg_" + stream_id, .inserts = "thalweg_" + stream_id + "_inserts"};
}
// Beside the stream's slot while it changes its capture_kind: of the other kind (kind_change.h).
inline std::string next_slot_name(const std::string& stream_id) { return "thalweg_" + stream_id + "_next"; }
// Temporary: exports the snapshot with which a resumed copy goes on.
inline std::string copy_slot_name(const std::string& stream_id, const std::string& destination = "") {
  return "thalweg_" + stream_id + (destination.empty() ? "" : "_" + destination) + "_copy";
}

// Of a stream that mines the source's WAL, in the stream's folder; no destination's id.
inline std::filesystem::path mining_folder(const std::filesystem::path& folder) { return folder / "mined-wal"; }
// Of one that is to mine it, as it is prepared.
inline std::filesystem::path next_mining_folder(const std::filesystem::path& folder) {
  return folder / "mined-wal-next";
}

}  // namespace thalweg::daemon
