#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "rules/rule_set.h"

namespace thalweg::capture {

// Schema and name of a table in the stream's definition.
using TableKey = std::pair<std::string, std::string>;

struct StreamRules {
  std::map<TableKey, rules::RuleSets> tables;  // those with rules
  std::set<TableKey> others;                   // the stream's other tables
  std::string source;                          // the attribute's value
  std::filesystem::path relations_file;        // ruled_relations.h; empty: none
  bool stops_tables = false;                   // a table's trouble stops the table, and not the stream
};

}  // namespace thalweg::capture
