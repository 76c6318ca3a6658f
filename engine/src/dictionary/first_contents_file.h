#pragma once

#include <filesystem>

#include "base/error.h"
#include "dictionary/first_contents.h"

// First contents on disk: until the dictionary has come to their position, and has a file of its own, every restart
// begins with them.
//
// Format, as that of a dictionary's file:
//   magic "TWFIRST1"; position
//   of each catalog: tablespace, database, file; count of its columns, each: name, length, align; count of its rows,
//     each: block, offset (2), the packed row
//   XXH3 of all before it (8)

namespace thalweg::dictionary {

// Replaces the file; after a crash it is either the old one or the new one.
base::Result<void> save_first_contents(const FirstContents& contents, const std::filesystem::path& path);
// A file_error: it cannot be read, or is damaged.
base::Result<FirstContents> load_first_contents(const std::filesystem::path& path);

}  // namespace thalweg::dictionary
