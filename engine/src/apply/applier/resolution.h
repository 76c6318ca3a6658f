#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apply/applier/statements.h"
#include "apply/conflict.h"
#include "base/ids.h"
#include "lcr/frame.h"
#include "metadata/table_metadata.h"

// An update that makes one row of two, as the handlers of its groups of columns say (docs/decisions/conflicts.md).

namespace thalweg::apply {

// A row of the source's that met one of the destination's.
struct MetRow {
  const metadata::TableMetadata& table;
  const lcr::Value* wanted;   // UNCHANGED where a value is not known
  const lcr::Value* old;      // with the identity by which the row is found; of an INSERT `wanted` itself
  bool has_old = false;       // old values came: a delta knows them
  ColumnMask differing = {};  // columns of which it is known that the destination's row differs
  base::UnixMicros commit_time = {};
};

// The destination's row is locked, and stays as it is, in its version too, where nothing of the source's wins.
struct Resolution {
  struct Parameter {
    const lcr::Value* value;
    base::TypeId type;
  };
  // Result: how many rows it has written, and how many not because they win; one in all. Empty: nothing to write.
  std::string sql;
  std::vector<Parameter> parameters = {};
  // The contents of parameters that are no value of a row; a deque's elements stay where they are.
  std::deque<std::string> texts = {};
  std::deque<lcr::Value> text_values = {};
};

// `handlers`: of the conflict, in their order: those of groups, then perhaps one of all other columns. Fails with the
// reason, in words, where they cannot settle the row.
std::expected<Resolution, std::string> make_resolution(const MetRow& row, std::span<const ConflictHandler> handlers);

}  // namespace thalweg::apply
