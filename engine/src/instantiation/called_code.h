#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "instantiation/table_name.h"
#include "pg/connection.h"

// Which functions and operators the definitions call that the engine is about to carry to a destination: they run there
// as the role that applies. called_code.inc has the questions; the control plane's preflight asks the same ones.

namespace thalweg::instantiation {

// What somebody has accepted, by table: "app.f(integer)".
using AcceptedCode = std::map<TableName, std::set<std::string>>;

enum class Carried {
  whole,       // the table is to be made
  later,       // it is there, and gets the constraints and indexes that it lacks, and new partitions
  partitions,  // it is there as somebody else made it, and gets new partitions
};

// What is to be made of one table of the source.
struct CarriedTable {
  TableName table;
  std::vector<uint32_t> relations;  // pg_class.oid at the source; each stands for its partitions, too
  Carried carried = Carried::whole;
};

// Judged at the destination: by what bears a name there. Fails with code_not_accepted where the role has powers beyond
// its own tables and something is called that does more than compute and has not been accepted.
base::Result<void> check_called_code(pg::Connection& source, pg::Connection& destination,
                                     const std::vector<CarriedTable>& carried, const AcceptedCode& accepted);

}  // namespace thalweg::instantiation
