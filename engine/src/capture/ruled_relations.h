#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/error.h"
#include "base/ids.h"
#include "capture/stream_rules.h"

// The relations of the source that the tables of a stream with rules are, noted in a file: a name alone would let a
// table that was renamed between two sessions go without its rules, or take one without rules for a table that has
// some. Notes on another source, or on another list of tables, count for nothing.

namespace thalweg::capture {

using RuledRelations = std::map<base::RelationId, TableKey>;

// `source` names the server's cluster and the database. A file that cannot be read counts as nothing noted, and is
// logged.
RuledRelations read_ruled_relations(const StreamRules& rules, const std::string& source);
// Fails as files do. Nothing to do where the rules have no file.
base::Result<void> note_ruled_relations(const StreamRules& rules, const std::string& source,
                                        const RuledRelations& relations);

}  // namespace thalweg::capture
