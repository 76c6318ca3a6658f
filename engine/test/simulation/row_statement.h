#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulation/relational.h"
#include "simulation/server.h"
#include "simulation/statement_text.h"

namespace thalweg::simulation {

// A statement about rows of one table, as apply writes it (engine/src/apply/applier/statements.h). Anything else of
// that kind is not known here: the simulation says so instead of guessing.
struct RowStatement {
  enum class Kind : uint8_t { insert, update, remove };
  Kind kind = Kind::insert;
  int table = -1;
  bool checked = false;                             // fails with a division by zero where it touches no row
  bool is_set = false;                              // parameters are arrays
  std::vector<std::pair<size_t, size_t>> values;    // column and its parameter
  std::vector<std::pair<size_t, size_t>> key;       // the same, of what finds the row
  std::vector<std::pair<size_t, size_t>> compared;  // the same, of what the row has to have besides
};
std::optional<RowStatement> parse_row_statement(const std::string& sql);

// The condition of such a statement, "a" = $1 AND ..., with what stands behind it in `sql` still to be read.
bool parse_condition(StatementText& sql, RowStatement& statement);

// The values of a one-dimensional array in binary form; none where it is no such array.
std::optional<std::vector<Value>> parse_array(const std::string& bytes);

// "public"."a", "public"."b": the names of the tables.
std::vector<std::string> parse_table_names(const std::string& list);

}  // namespace thalweg::simulation
