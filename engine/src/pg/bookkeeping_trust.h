#pragma once

#include <initializer_list>
#include <string_view>

#include "base/error.h"
#include "pg/connection.h"

// Schema `thalweg` of a destination may have been made by somebody else, who may create schemas there. Our role, which
// often has powers that they lack, would run the code in it (triggers, defaults, policies) and believe its rows.

namespace thalweg::pg {

// Whether the schema has all of these tables. Asked before a session touches any of them. Fails with
// bookkeeping_not_trusted where a role that ours does not trust owns the schema or something in it, may create or write
// there, or owns what its tables call. Trusted are superusers, our role, its members, the roles that an administrator
// has granted to it, the members of the schema's owner where that is one of these, and the database's owner unless our
// role is a superuser. One statement looks at the catalogue for the tables and for who has a hand in them: nothing
// comes between. (Not to_regclass: that answers from the session's cache of names.)
base::Result<bool> trusted_bookkeeping(Connection& connection, std::initializer_list<std::string_view> tables);
// Within a transaction: changes of the schema happen one after the other, whichever engine makes them.
base::Result<void> lock_bookkeeping(Connection& connection);
// Where it is missing: CREATE SCHEMA IF NOT EXISTS asks for the right to create one even where it exists. Somebody else
// may be quicker, so ask once more whether it can be trusted before the transaction ends.
base::Result<void> create_bookkeeping_schema(Connection& connection);

}  // namespace thalweg::pg
