#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bind_names.h"
#include "base/error.h"
#include "base/ids.h"
#include "lcr/frame.h"

// Statements of a user that are executed for changes of a table, in the place of those that fail, or at the end of each
// transaction
// (docs/decisions/statement-handlers.md).

namespace thalweg::metadata {

enum class HandlerTime : uint8_t {
  instead,    // of what the change would do
  after,      // behind it
  precommit,  // behind the last change of the transaction
  error,      // in the place of a change that has failed
};

// A statement handler as somebody has set it. Immutable.
struct StatementHandler {
  int number = 0;          // its place in the parameter, from 1
  std::string table = {};  // schema-qualified and quoted, as at the destination; empty: any, or of precommit none
  HandlerTime time = HandlerTime::after;
  bool of_inserts = true;  // not of precommit, as the next two
  bool of_updates = true;
  bool of_deletes = true;
  std::vector<std::string> errors = {};  // of error: those of ErrorPolicy::error that it is for; empty: any
  base::BoundStatement statement = {};
};

// Where a parameter's value comes from. `column`: of new_value and old_value, its place in the table.
struct BindSource {
  base::BindKind kind = base::BindKind::xid;
  uint16_t column = 0;
};

// A handler for one table, or of precommit. Immutable.
struct HandlerStatement {
  int number = 0;
  HandlerTime time = HandlerTime::after;
  bool of_inserts = false;
  bool of_updates = false;
  bool of_deletes = false;
  std::vector<std::string> errors = {};
  std::string sql = {};
  std::vector<base::TypeId> types = {};
  std::vector<BindSource> sources = {};

  bool is_of(lcr::FrameKind kind) const {
    return kind == lcr::FrameKind::insert   ? of_inserts
           : kind == lcr::FrameKind::update ? of_updates
                                            : kind == lcr::FrameKind::remove && of_deletes;
  }
};

struct TableMetadata;

// The statement of a precommit handler, which names no columns.
HandlerStatement precommit_statement(const StatementHandler& handler);
// Those of its handlers, in their order, of a table whose columns are known. Fails with destination_table_differs where
// one names a column that the table's changes do not have.
base::Result<std::vector<HandlerStatement>> statements_of(const TableMetadata& table,
                                                          std::span<const StatementHandler> handlers);

}  // namespace thalweg::metadata
