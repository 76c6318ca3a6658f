#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "instantiation/shape.h"
#include "pg/connection.h"

// Functions, operators and types that are used by definitions which the engine is about to carry to a destination,
// where they run as the role that applies: types lead to code, too, by the checks of domains, casts and the functions
// of ranges. called_code.inc has the queries; the control plane's preflight runs the same ones before it asks for
// consent.

namespace thalweg::instantiation {

// Definitions that somebody has accepted, by table: their digests (SHA-256, hexadecimal), as called_code.inc makes
// them.
using AcceptedCode = std::map<TableName, std::set<std::string>>;

enum class Carried {
  whole,       // the table is to be made
  later,       // the stream has made it: it gets the constraints and indexes that it lacks, and new partitions
  partitions,  // somebody else has made it: it gets new partitions
};

// The parts of one table of the source that are to be made.
struct CarriedTable {
  TableName table;
  std::vector<uint32_t> relations;  // pg_class.oid at the source; each stands for its partitions, too
  Carried carried = Carried::whole;
};
// `there`: the table as the destination has it, or nullptr. `created`: the stream has made it.
CarriedTable carried_table(const TableShape& shape, const TableShape* there, bool created);

struct CalledCode {
  TableName table;
  // "constraint c", "function", "public.f(integer)". A type's kind says how it is used, for the question at the
  // destination: "type, computed", "column type".
  std::string part, kind, name;
  std::string use() const;  // "calls public.f(integer)", "uses the type public.d"
};
// Calls by the definitions, at the destination, that do more than compute and that nobody has accepted; empty if the
// role has no powers beyond its own tables. Runs none of the code.
base::Result<std::vector<CalledCode>> code_to_accept(pg::Connection& source, pg::Connection& destination,
                                                     const std::vector<CarriedTable>& carried,
                                                     const AcceptedCode& accepted);

// Judges the objects that bear the called names at the destination. Fails with code_not_accepted if the role has powers
// beyond its own tables and a definition, not yet accepted, calls code that does more than compute. Runs none of the
// code.
base::Result<void> check_called_code(pg::Connection& source, pg::Connection& destination,
                                     const std::vector<CarriedTable>& carried, const AcceptedCode& accepted);

}  // namespace thalweg::instantiation
