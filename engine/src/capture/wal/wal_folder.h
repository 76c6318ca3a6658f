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
  // Of the last commit before `confirmed` that was mined, by the source's clock; none: not known.
  base::UnixMicros time = {};
  bool has_dictionary = false;  // one was saved at `confirmed`

  bool operator==(const MiningPosition&) const = default;
};

struct MiningState {
  std::string system_identifier = {};
  base::Lsn kept_from = {};   // the slot's first position, a redo pointer: the first contents need the WAL from there
  base::Lsn started_at = {};  // of the first contents; what commits before it is in the first copy
  MiningPosition at = {};
  // Where mining can go back to, should the source have gone on along another timeline, and where searches can begin:
  // rising.
  std::vector<MiningPosition> earlier = {};
  uint32_t segment_bytes = 16U << 20;  // of the source's WAL

  void advance(MiningPosition to);
  // No row before it is mined any more, wherever mining goes back to.
  base::Lsn first_restart() const { return earlier.empty() ? at.restart : earlier.front().restart; }
};

// The part that stays behind what is needed, for searches alone.
struct Keeping {
  uint64_t bytes = 0;            // of WAL; from the dictionary on that is this far behind, or farther
  base::Lsn possible_from = {};  // WAL from before it is gone, or has to go
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
  // Columns that the stream masks, or masked, as MaskedColumns has them.
  std::filesystem::path masked_columns() const { return path_ / "masked-columns.json"; }
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
  // The lowest position that back_to() has something for.
  base::Result<base::Lsn> reaches_back_to(const MiningState& state);
  // Makes `state` the one on the disk, and removes what was kept of the WAL behind `end`, but for the staged WAL.
  base::Result<void> cut_back(base::Lsn end, const MiningState& state);
  // Removes what no state that is this one, or comes after it, needs, but for what is kept. Gives the position from
  // which on WAL is needed or kept.
  base::Result<base::Lsn> drop_unneeded(MiningState& state, const Keeping& keeping = {});
  // Dictionaries that are needed, as of the last drop_unneeded().
  size_t dictionaries() const;
  // Whether there are others as well.
  bool keeps() const { return keeps_first_ || (!saved_.empty() && saved_.front() < needed_); }
  // The first position that a restart needs, as of the last drop_unneeded(): what is before it is only kept.
  base::Lsn needed_from() const { return needed_; }
  // Positions of all dictionaries, as they lie on the disk now: rising.
  base::Result<std::vector<base::Lsn>> saved() const;
  std::filesystem::path dictionary_at(base::Lsn position) const;
  base::Result<dictionary::Dictionary> load(base::Lsn position) const;

 private:
  base::Result<void> find_dictionaries();
  std::optional<base::Lsn> newest_before(base::Lsn restart) const;
  bool has_dictionary_for(base::Lsn restart) const;
  base::Lsn oldest_kept(base::Lsn needed, const Keeping& keeping) const;
  base::Result<void> thin(MiningState& state, const Keeping& keeping);

  const std::filesystem::path path_;
  std::vector<base::Lsn> saved_;  // positions of the dictionaries, rising
  base::Lsn needed_;              // of the oldest one that is needed
  bool keeps_first_ = false;      // the first contents are kept, and not needed
};

}  // namespace thalweg::capture
