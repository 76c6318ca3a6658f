#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "rules/rule_set.h"
#include "transform/step.h"

namespace thalweg::capture {

// Schema and name of a table in the stream's definition.
using TableKey = std::pair<std::string, std::string>;

struct StreamRules {
  // Those with rules or transformations; one without rules has neither set.
  std::map<TableKey, rules::RuleSets> tables;
  std::map<TableKey, transform::Steps> transformations;  // of those
  std::set<TableKey> plain_tables;                       // those without rules and transformations
  std::string source;                                    // the attribute's value
  std::filesystem::path relations_file;                  // ruled_relations.h; empty: none
  bool stops_tables = false;                             // a table's trouble stops the table, and not the stream
  // A rule, of the stream or of one of its destinations, reads its transaction's tag or commit time: transactions come
  // whole, and with their origins.
  bool reads_transaction = false;
};

}  // namespace thalweg::capture
