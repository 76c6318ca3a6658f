#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "dictionary/dictionary.h"

// Files of a stream that mines the WAL: the staged WAL, where it goes on after a restart, and the dictionaries with
// which it can.

namespace thalweg::capture {

struct MiningState {
  std::string system_identifier = {};
  base::Lsn kept_from = {};   // the slot's first position, a redo pointer: the first contents need the WAL from there
  base::Lsn started_at = {};  // of the first contents; what commits before it is in the first copy
  base::Lsn confirmed = {};   // what commits before it is durable at every destination
  base::Lsn restart = {};     // transactions that commit at `confirmed` or behind it have no row before this
};

// A dictionary, and the record with which it goes on.
struct MiningBegin {
  dictionary::Dictionary dictionary;
  base::Lsn from;
};

// Owner: one thread, but for staging() and scratch().
class WalFolder {
 public:
  explicit WalFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path staging() const { return path_ / "staging"; }
  // Of what is fetched from an archive; nothing in it lasts.
  std::filesystem::path scratch() const { return path_ / "fetched"; }
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
  // Removes what no state that is this one, or comes after it, needs. Gives the position from which on WAL is needed.
  base::Result<base::Lsn> drop_unneeded(const MiningState& state);
  size_t dictionaries() const { return saved_.size(); }

 private:
  std::filesystem::path dictionary_at(base::Lsn position) const;
  base::Result<void> find_dictionaries();
  std::optional<base::Lsn> newest_before(base::Lsn restart) const;

  const std::filesystem::path path_;
  std::vector<base::Lsn> saved_;  // positions of the dictionaries, rising
};

}  // namespace thalweg::capture
