#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "dictionary/dictionary.h"
#include "shipment/wal_identity.h"

// Files of a stream that mines the WAL: the staged WAL, where it goes on after a restart, and the dictionaries with
// which it can.

namespace thalweg::capture {

struct MiningPosition {
  base::Lsn confirmed = {};  // what commits before it is durable at every destination
  base::Lsn restart = {};    // transactions that commit at `confirmed` or behind it have no row before this

  bool operator==(const MiningPosition&) const = default;
};

struct MiningState {
  std::string system_identifier = {};
  base::Lsn kept_from = {};   // the slot's first position, a redo pointer: the first contents need the WAL from there
  base::Lsn started_at = {};  // of the first contents; what commits before it is in the first copy
  MiningPosition at = {};
  // Where mining can go back to, should the source have gone on along another timeline: rising.
  std::vector<MiningPosition> earlier = {};

  void advance(MiningPosition to);
  // No row before it is mined any more, wherever mining goes back to.
  base::Lsn first_restart() const { return earlier.empty() ? at.restart : earlier.front().restart; }
};

// A dictionary, and the record with which it goes on.
struct MiningBegin {
  dictionary::Dictionary dictionary;
  base::Lsn from;
};

// Owner: one thread, but for the paths.
class WalFolder {
 public:
  explicit WalFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path staging() const { return path_ / "staging"; }
  // Of what is fetched from an archive; nothing in it lasts.
  std::filesystem::path scratch() const { return path_ / "fetched"; }
  // The stream's tables, as MinedTables has read them.
  std::filesystem::path tables() const { return path_ / "tables.json"; }
  std::filesystem::path first_contents() const { return path_ / "first-contents"; }

  // None: nothing was begun here. A file_error: it cannot be read.
  base::Result<std::optional<MiningState>> read_state() const;
  // Survives a loss of power once it has returned.
  base::Result<void> write_state(const MiningState& state) const;
  base::Result<void> clear() const;

  // False: it cannot be saved now.
  base::Result<bool> save(const dictionary::Dictionary& dictionary);
  // The newest dictionary from which everything of the state is to be had.
  base::Result<MiningBegin> begin(const MiningState& state);
  // Where the timeline of what is staged ends for a source that has left it; none: it has not, or nothing is staged.
  // source_diverged: the source has never been on it.
  base::Result<std::optional<base::Lsn>> left_at(const shipment::WalIdentity& source) const;
  // The state as of a position at `end` or before it from which everything is to be had; none: it has gone too far.
  base::Result<std::optional<MiningState>> back_to(base::Lsn end, const MiningState& state);
  // Makes `state` the one on the disk, and removes what was kept of the WAL behind `end`, but for the staged WAL.
  base::Result<void> cut_back(base::Lsn end, const MiningState& state);
  // Removes what no state that is this one, or comes after it, needs. Gives the position from which on WAL is needed.
  base::Result<base::Lsn> drop_unneeded(MiningState& state);
  size_t dictionaries() const { return saved_.size(); }

 private:
  std::filesystem::path dictionary_at(base::Lsn position) const;
  base::Result<void> find_dictionaries();
  std::optional<base::Lsn> newest_before(base::Lsn restart) const;

  const std::filesystem::path path_;
  std::vector<base::Lsn> saved_;  // positions of the dictionaries, rising
};

}  // namespace thalweg::capture
