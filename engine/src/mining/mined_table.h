#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "dictionary/dictionary.h"
#include "lcr/frame.h"
#include "mining/send_form.h"

// A table as the dictionary has it for one transaction: how its tuples are read, and how its rows are described.

namespace thalweg::mining {

// By attnum, from 1 on without gaps.
struct MinedColumn {
  std::string name = {};
  StoredAttribute stored = {};
  bool is_sent = false;  // neither dropped nor generated
};

// Immutable.
struct MinedTable {
  uint32_t oid = 0;
  uint32_t toast = 0;      // pg_class.oid of its TOAST table; 0: none
  bool is_toast = false;   // it is one itself, of a table whose rows are captured
  bool is_wanted = false;  // its rows are captured
  bool is_inserts_only = false;
  bool is_identity_full = false;
  std::vector<MinedColumn> columns;
  lcr::TableDescription description;  // version 0
};

bool same_description(const lcr::TableDescription& one, const lcr::TableDescription& other);
// Whether rows of one are read, and described, as those of the other.
bool reads_as(const MinedTable& one, const MinedTable& other);

// Changes of a table that are captured. `inserts`: no updates and deletes; `identified`: only those that say of which
// row.
enum class Wanted : uint8_t { nothing, everything, inserts, identified };
// Asked with a table's pg_class.oid, which a new name does not change.
using IsWanted = std::function<Wanted(uint32_t table)>;

// Null: the transaction sees no such relation, or rows of it can be nobody's: it is another catalog's file, an index, a
// table that is not logged, a copy that ALTER TABLE makes.
// A table that is wanted and has a column whose type cannot be mined is an unsupported_table.
base::Result<std::shared_ptr<const MinedTable>> read_table(const dictionary::Dictionary& dictionary, uint32_t oid,
                                                           base::Xid viewer, const IsWanted& is_wanted);

}  // namespace thalweg::mining
