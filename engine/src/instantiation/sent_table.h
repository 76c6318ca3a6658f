#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "instantiation/shape.h"
#include "pg/connection.h"
#include "transform/step.h"

// A source's table with transformations, as its rows come to a destination.

namespace thalweg::instantiation {

struct SentTable {
  TableShape shape;       // the source's, with the columns that are sent; generated ones last
  std::string select;     // that many expressions over the source's rows, of the copied columns and in their order
  bool computes = false;  // some of them can fail for a row
};

// `source_name`: the attribute `source` of expressions, where rows are read. Fails with transformation_refused.
base::Result<SentTable> sent_table(pg::Connection& source, const TableShape& shape, const transform::Steps& steps,
                                   const std::string& source_name = {});

// After it: messages about columns that an update may come without, so that the stream would stop in front of it.
base::Result<std::vector<std::string>> values_that_may_lack(pg::Connection& source, const TableShape& shape,
                                                            const transform::Steps& steps);

// Fails with transformation_refused if a constant is not of its column's type. Call it after sent_table().
base::Result<void> check_constants(pg::Connection& source, const TableShape& shape, const transform::Steps& steps);

// After sent_table(). `there`: its name at the destination. `destination`: null where the engine would have to make the
// table. It makes tables as they are at the source: fails with destination_table_differs where columns have other
// names, are left out, or would be NULL against a constraint.
base::Result<void> check_takes_columns(const TableShape& source, const transform::Steps& steps, const TableName& there,
                                       const TableShape* destination);

// Transformations are bound to names. `now` is the name of the table that was `before`, and is to be copied under it:
// fails with transformation_refused where `before` has steps and `now` has others, or none.
base::Result<void> check_left_behind(const TableName& before, const transform::Steps& steps_before,
                                     const TableName& now, const transform::Steps& steps_now);

}  // namespace thalweg::instantiation
