#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "pg/connection.h"

// The external form in which the values of tables can travel. PostgreSQL's binary form is the cheap one, but not every
// type has one, and some types' receive functions refuse what their own send functions make.

namespace thalweg::pg {

struct ValueForms {
  // Some value has no binary form that another database takes, or one that means another object there: a type without
  // send or receive function (aclitem), tsquery, int2vector and oidvector (their empty values are refused), and the
  // types that name objects by OID (regclass and its kin). All of it has to come as text.
  bool needs_text = false;
  // Binary values of arrays or composites hold OIDs of types that differ from one database to the next. They can be
  // rewritten (metadata::rewrite_oids); who passes values on as they are needs text here, too.
  bool holds_type_oids = false;
};

// Of all columns that are copied (not generated) of the relations that `relations` gives: a query of pg_class.oid with
// parameter $1. Looks into arrays, domains, composites, ranges and multiranges. One round trip. Fails as the query
// does.
base::Result<ValueForms> value_forms(Connection& connection, const std::string& relations, std::string_view parameter);
// The same by relation, its pg_class.oid. One without columns is not in it.
base::Result<std::map<uint32_t, ValueForms>> value_forms_by_relation(Connection& connection,
                                                                     const std::string& relations,
                                                                     std::string_view parameter);

}  // namespace thalweg::pg
