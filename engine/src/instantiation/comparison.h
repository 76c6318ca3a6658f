#pragma once

#include "base/error.h"
#include "instantiation/shape.h"

// Whether tables can be in a stream at all, and whether two sides fit. Pure functions.

namespace thalweg::instantiation {

// Fails with unsupported_table, or with replica_identity_missing unless only inserts are wanted of it.
base::Result<void> check_source_table(const TableShape& table, bool inserts_only);

// follows: the engine has made the table and makes its key once the rows are there.
enum class KeyAtDestination { needed, follows };

// Fails with destination_table_differs and says what differs.
base::Result<void> check_same_table(const TableShape& source, const TableShape& destination,
                                    KeyAtDestination key = KeyAtDestination::needed);

// Fails with missing_type where only somebody else can make the type: code in C, or an extension.
base::Result<void> check_creatable(const TypeShape& type);

// Fails with destination_table_differs: another kind of type, a composite of other fields, a domain or range over
// another type, a domain with rules that the source's values may break, an enum that lacks labels which they may have.
// The parts of an extension's type are not compared: the extension defines them.
base::Result<void> check_same_type(const TypeShape& source, const TypeShape& destination);

}  // namespace thalweg::instantiation
