#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "base/error.h"

// A command of the host's administrator that fetches one file of an archive, as PostgreSQL's restore_command.

namespace thalweg::shipment {

inline std::unexpected<base::Error> archive_failed(std::string message) {
  return base::fail(base::ErrorCode::wal_archive_failed, std::move(message), base::ErrorSide::engine);
}

struct ArchiveCommand {
  std::string text;                         // %f is the file's name, %p where it is to be written, %% a percent sign
  std::string name;                         // %f
  std::string path;                         // %p
  const std::atomic<bool>* stop = nullptr;  // by any thread; the command is ended then
};

// By a shell, in a process group of its own, with at most ten minutes. False: the archive does not have the file, which
// the command says with 1 to 125 (PostgreSQL documentation, restore_command). Fails with wal_archive_failed where it
// ended otherwise, and the message has the end of its output; with engine_stopping after a stop.
base::Result<bool> run(const ArchiveCommand& command);

// The text with everything in its place. None: a % is followed by something else.
base::Result<std::string> expand(const ArchiveCommand& command);

}  // namespace thalweg::shipment
