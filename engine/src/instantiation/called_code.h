#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "instantiation/shape.h"
#include "pg/connection.h"

// What the definitions call that the engine is about to carry to a destination: functions and operators run there as
// the role that applies. called_code.inc has the questions; the control plane's preflight asks the same ones before it
// asks somebody's consent.

namespace thalweg::instantiation {

// What somebody has accepted, by table: digests (SHA-256, hexadecimal) of definitions, as called_code.inc makes them.
using AcceptedCode = std::map<TableName, std::set<std::string>>;

enum class Carried {
  whole,       // the table is to be made
  later,       // the stream has made it: it gets the constraints and indexes that it lacks, and new partitions
  partitions,  // somebody else has made it: it gets new partitions
};

// What is to be made of one table of the source.
struct CarriedTable {
  TableName table;
  std::vector<uint32_t> relations;  // pg_class.oid at the source; each stands for its partitions, too
  Carried carried = Carried::whole;
};
// `there`: the table as the destination has it, or nullptr. `created`: the stream has made it.
CarriedTable carried_table(const TableShape& shape, const TableShape* there, bool created);

// Judged at the destination, by what bears the names there. Fails with code_not_accepted where the role has powers
// beyond its own tables, and a definition calls what does more than compute, and has not been accepted. Runs none of
// it.
base::Result<void> check_called_code(pg::Connection& source, pg::Connection& destination,
                                     const std::vector<CarriedTable>& carried, const AcceptedCode& accepted);

}  // namespace thalweg::instantiation
