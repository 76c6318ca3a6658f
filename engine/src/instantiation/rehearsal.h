#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/networks.h"
#include "instantiation/destination_names.h"
#include "instantiation/table_name.h"
#include "transform/step.h"

// Finds all problems at once that a first instantiation would meet at the destination: for a preflight, before there is
// a stream. It tries the very statements of the instantiation in a transaction that it rolls back.

namespace thalweg::instantiation {

struct RehearsalOptions {
  base::Conninfo source_conninfo;
  base::Conninfo destination_conninfo;
  std::vector<TableName> tables;
  std::set<TableName> inserts_only;                            // of these
  std::map<TableName, transform::Steps> transformations = {};  // of these
  DestinationNames names = {};                                 // of these
  const std::atomic<bool>* abandon = nullptr;  // once it is set, whatever waits for a database is given up; may be null
  std::chrono::milliseconds time_max{75'000};  // for all of it: the control plane waits for 90 s
};

enum class Outcome {
  refused,    // the stream would not start
  left_out,   // the stream would start, and the destination would lack this
  not_tried,  // it calls code that somebody has to accept first
};

std::string_view name_of(Outcome outcome);

struct Problem {
  Outcome outcome = Outcome::refused;
  std::string part;   // table, type, extension, function, index, foreign key, ...
  std::string table;  // schema-qualified and quoted: that needs it; empty: several, which the message names
  std::string name;   // of the part
  std::string message;
  std::string sqlstate;   // where the server refused a statement
  std::string statement;  // that was tried; empty where none was
  std::string cure;       // in words; empty: what the message says must change
  std::string cure_sql;
};

// Fails where one of the databases cannot be reached or read, and with database_busy once its time is over: nothing is
// known then. Creates nothing. A role with powers beyond its own tables runs no code of the databases' users meanwhile:
// a constant argument is enough for the server to call a function of a check or of an index while it makes them.
base::Result<std::vector<Problem>> rehearse(const RehearsalOptions& options);

}  // namespace thalweg::instantiation
