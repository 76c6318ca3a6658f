#pragma once

#include <span>

#include "base/error.h"
#include "dictionary/dictionary.h"
#include "dictionary/first_contents.h"
#include "mining/mined_table.h"

// Whether tables can be mined, before anything is.

namespace thalweg::mining {

// Of those that the dictionary has: fails with unsupported_table, naming table and column.
base::Result<void> check_tables(const dictionary::Dictionary& dictionary, std::span<const uint32_t> tables,
                                const IsWanted& is_wanted);
// As they are in the first contents.
base::Result<void> check_tables(const dictionary::FirstContents& contents, std::span<const uint32_t> tables,
                                const IsWanted& is_wanted);

}  // namespace thalweg::mining
