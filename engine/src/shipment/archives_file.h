#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "shipment/archive.h"

// The archives that the host's administrator lets streams read. Streams name them; a request cannot make one, because
// a command runs with the engine's rights and a directory is read with them.

namespace thalweg::shipment {

// In the engine's state directory.
inline constexpr const char* kArchivesFile = "wal-archives.json";

// Of the file: {"NAME": {"directory": "/path"}, "OTHER": {"command": "fetch %f %p"}}. Fails with wal_archive_failed
// where there is no such name, or the file is not of that form.
base::Result<ArchivePlace> find_archive(const std::filesystem::path& file, const std::string& name);

// The names that find_archive finds, sorted.
std::vector<std::string> archive_names(const std::filesystem::path& file);

}  // namespace thalweg::shipment
