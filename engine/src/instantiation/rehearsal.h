#pragma once

#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/networks.h"
#include "instantiation/table_name.h"

// What a first instantiation would meet at the destination, all of it at once: for a preflight, before there is a
// stream. It tries the very statements of the instantiation in a transaction that it rolls back.

namespace thalweg::instantiation {

struct RehearsalOptions {
  base::Conninfo source_conninfo;
  base::Conninfo destination_conninfo;
  std::vector<TableName> tables;
  std::set<TableName> inserts_only;            // of these
  const std::atomic<bool>* abandon = nullptr;  // once it is set, whatever waits for a database is given up; may be null
};

enum class Outcome {
  refused,   // the stream would not start
  left_out,  // the stream would start, and the destination would lack this
};

struct Finding {
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

// Fails where one of the databases cannot be reached or read. Creates nothing.
base::Result<std::vector<Finding>> rehearse(const RehearsalOptions& options);

}  // namespace thalweg::instantiation
