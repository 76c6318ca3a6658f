#include "instantiation/refusal_cure.h"

#include <fmt/format.h>

#include <algorithm>

namespace thalweg::instantiation {

Cure cure_of_refusal(const Refusal& refusal, int source_version, int destination_version) {
  const int source = source_version / 10'000;
  const int destination = destination_version / 10'000;
  const std::string_view state = refusal.sqlstate;
  if (state == "53200") {
    return {.words =
                "Raise max_locks_per_transaction at the destination and restart it: all tables are made in one "
                "transaction.",
            .sql = "ALTER SYSTEM SET max_locks_per_transaction = 512",
            .ends_the_rehearsal = true};
  }
  if (state == "42501") return {.words = "Grant the privilege that the message names.", .sql = {}};
  if (state == "42P07") return {.words = "Rename what has the name at the destination.", .sql = {}};
  if (state == "55P03") return {.words = "Wait for the session that holds the lock, or end it.", .sql = {}};
  // A syntax that it does not know, a feature that it does not have, an object that it does not bring, a constant that
  // its type cannot hold (an infinite interval before 17).
  const bool unknown = state == "42601" || state == "0A000" || state == "42883" || state == "42704" ||
                       state == "42P17" || state == "22007" || state == "22P02" || state == "22023";
  if (unknown && source > destination) {
    return {.words = fmt::format("PostgreSQL {} of the destination may lack what PostgreSQL {} of the source has: "
                                 "upgrade the destination, or make the table there yourself, with what it knows.",
                                 destination, source),
            .sql = {}};
  }
  return {.words = "Create at the destination what the message names, or make the table there yourself.", .sql = {}};
}

std::string missing_labels_sql(const TypeShape& source, const TypeShape& destination, const pg::Connection& quoting) {
  std::string sql;
  std::string place = destination.labels.empty() ? "" : " BEFORE " + quoting.quote_literal(destination.labels.front());
  for (const std::string& label : source.labels) {
    const std::string quoted = quoting.quote_literal(label);
    if (std::ranges::find(destination.labels, label) == destination.labels.end())
      sql += fmt::format("ALTER TYPE {} ADD VALUE {}{};\n", source.name.quoted(), quoted, place);
    place = " AFTER " + quoted;
  }
  if (!sql.empty()) sql.pop_back();
  return sql;
}

}  // namespace thalweg::instantiation
