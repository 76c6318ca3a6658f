#include "instantiation/sent_table.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "rules/source_table.h"
#include "rules/sql_text.h"
#include "transform/plan.h"
#include "transform/sql_mask.h"

namespace thalweg::instantiation {
namespace {

using transform::MaskKind;
using transform::SentColumn;

struct Planned {
  std::vector<const ColumnShape*> copied;  // of the source
  std::vector<SentColumn> sent;
};

// Columns of the primary key and of the index that is the replica identity: rows are found by either.
base::Result<std::set<std::string>> key_columns(pg::Connection& source, const TableShape& shape) {
  std::set<std::string> columns;
  if (const ConstraintShape* const key = shape.primary_key()) columns.insert(key->columns.begin(), key->columns.end());
  if (shape.replica_identity != 'i') return columns;
  THALWEG_ASSIGN(const pg::Rows rows,
                 source.query("SELECT a.attname FROM pg_catalog.pg_index i JOIN pg_catalog.pg_attribute a "
                              "ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) "
                              "WHERE i.indrelid = $1::oid AND i.indisreplident",
                              {std::to_string(shape.oid)}));
  for (size_t i = 0; i < rows.size(); ++i) columns.emplace(rows.text(i, 0));
  return columns;
}

base::Result<Planned> planned(const TableShape& shape, const std::set<std::string>& keys,
                              const transform::Steps& steps) {
  Planned out;
  std::vector<transform::SourceColumn> columns;
  for (const ColumnShape& column : shape.columns) {
    if (!column.is_copied()) continue;
    out.copied.push_back(&column);
    columns.push_back({.name = column.name,
                       .type = column.type_id,
                       .modifier = column.type_modifier,
                       .is_key = keys.contains(column.name)});
  }
  THALWEG_ASSIGN(out.sent, transform::plan(steps, columns, shape.name.quoted()));
  return out;
}

// SQL_ASCII counts bytes, where the capture counts the characters of what such databases usually hold: the masks would
// differ, and bytes could cut a character in two.
base::Result<void> check_characters(pg::Connection& source, const TableShape& shape, const Planned& plan) {
  const auto counts = [](const SentColumn& sent) {
    return sent.mask && (sent.mask->kind == MaskKind::partial || sent.mask->kind == MaskKind::digits);
  };
  const auto column = std::ranges::find_if(plan.sent, counts);
  if (column == plan.sent.end()) return {};
  THALWEG_ASSIGN(const pg::Rows encoding, source.query("SHOW server_encoding"));
  if (encoding.text(0, 0) != "SQL_ASCII") return {};
  base::Error error =
      base::fail(base::ErrorCode::transformation_refused,
                 fmt::format("Column {} of {} is to be masked in part or by digits, and the source's encoding is "
                             "SQL_ASCII, which does not say what a character is. Mask it with NULL, a constant or a "
                             "hash.",
                             pg::quote_identifier(column->name), shape.name.quoted()))
          .error();
  error.table = shape.name.quoted();
  return std::unexpected(std::move(error));
}

bool computes(const Planned& plan) {
  return std::ranges::any_of(plan.sent, [](const SentColumn& sent) { return sent.computed.has_value(); });
}

// The table as expressions see it: read only if there are any.
base::Result<rules::RuleTable> seen_table(pg::Connection& source, const TableShape& shape, const Planned& plan) {
  if (!computes(plan)) return rules::RuleTable{};
  THALWEG_ASSIGN(auto table, rules::read_table(source, shape.name.schema, shape.name.name));
  if (table) return std::move(*table);
  return base::fail(base::ErrorCode::missing_table,
                    fmt::format("{} does not exist at the source.", shape.name.quoted()), base::ErrorSide::source);
}

ColumnShape made_column(const std::string& name, base::TypeId type, const std::string& type_name) {
  ColumnShape column;
  column.name = name;
  column.type = column.plain_type = type_name;
  column.type_id = type;
  return column;
}

}  // namespace

base::Result<std::vector<std::string>> values_that_may_lack(pg::Connection& source, const TableShape& shape,
                                                            const transform::Steps& steps) {
  THALWEG_ASSIGN(const Planned plan, planned(shape, {}, steps));
  THALWEG_ASSIGN(const rules::RuleTable seen, seen_table(source, shape, plan));
  std::vector<std::string> messages;
  for (const SentColumn& sent : plan.sent) {
    if (!sent.computed) continue;
    THALWEG_ASSIGN(const rules::RowExpression expression, transform::compile(sent, seen, {}));
    if (!transform::may_lack_value(expression, seen)) continue;
    messages.push_back(
        fmt::format("The expression of column {} of {} needs a value that an UPDATE does not bring if it is long and "
                    "stays as it was while another that the expression reads changes: PostgreSQL stores it apart. {}.",
                    pg::quote_identifier(sent.name), shape.name.quoted(), transform::cure_of_lack(seen)));
  }
  return messages;
}

base::Result<SentTable> sent_table(pg::Connection& source, const TableShape& shape, const transform::Steps& steps,
                                   const std::string& source_name) {
  THALWEG_ASSIGN(const std::set<std::string> keys, key_columns(source, shape));
  THALWEG_ASSIGN(const Planned plan, planned(shape, keys, steps));
  THALWEG_TRY(check_characters(source, shape, plan));
  SentTable table{.shape = shape, .select = {}, .computes = computes(plan)};
  THALWEG_ASSIGN(const rules::RuleTable seen, seen_table(source, shape, plan));
  const rules::AttributeValues attributes{.schema = shape.name.schema, .table = shape.name.name, .source = source_name};
  table.shape.columns.clear();
  for (const SentColumn& sent : plan.sent) {
    table.select += table.select.empty() ? "" : ", ";
    if (sent.computed) {
      THALWEG_TRY(transform::compile(sent, seen, source_name));
      table.select += rules::to_sql(sent.computed->expression, attributes);
    }
    if (sent.added) {
      table.shape.columns.push_back(made_column(sent.name, sent.added->type, sent.added->type_name));
      if (!sent.computed) table.select += transform::sql_constant(source, sent.added->value, sent.added->type_name);
      continue;
    }
    const ColumnShape& from = *plan.copied[sent.source];
    table.shape.columns.push_back(from);
    table.shape.columns.back().name = sent.name;
    if (sent.computed) {
      // No cast makes a NULL.
      table.shape.columns.back() = made_column(sent.name, sent.computed->type, sent.computed->type_name);
      table.shape.columns.back().not_null = from.not_null;
    }
    for (ConstraintShape& constraint : table.shape.constraints) {
      const auto of_source = std::ranges::find(shape.constraints, constraint.name, &ConstraintShape::name);
      for (size_t i = 0; i < constraint.columns.size(); ++i) {
        if (of_source->columns[i] == from.name) constraint.columns[i] = sent.name;
      }
    }
    if (sent.computed) continue;
    const std::string name = pg::quote_identifier(from.name);
    table.select += sent.mask ? transform::sql_mask(source, *sent.mask, name, from.type) : name;
  }
  std::ranges::copy_if(shape.columns, std::back_inserter(table.shape.columns),
                       [](const ColumnShape& column) { return !column.is_copied(); });
  return table;
}

base::Result<void> check_constants(pg::Connection& source, const TableShape& shape, const transform::Steps& steps) {
  THALWEG_ASSIGN(const Planned plan, planned(shape, {}, steps));
  for (const SentColumn& sent : plan.sent) {
    const std::string name = pg::quote_identifier(sent.name);
    if (sent.added && !sent.computed) {
      THALWEG_TRY(
          transform::check_constant(source, sent.added->value, sent.added->type_name, shape.name.quoted(), name));
    } else if (sent.mask && sent.mask->kind == MaskKind::constant) {
      THALWEG_TRY(transform::check_constant(source, sent.mask->value, plan.copied[sent.source]->type,
                                            shape.name.quoted(), name));
    }
  }
  return {};
}

base::Result<void> check_takes_columns(const TableShape& source, const transform::Steps& steps, const TableName& there,
                                       const TableShape* destination) {
  const std::string name = there.quoted();
  const auto refuse = [&](std::string message) -> base::Result<void> {
    base::Error error = base::fail(base::ErrorCode::destination_table_differs, std::move(message)).error();
    error.table = name;
    return std::unexpected(std::move(error));
  };
  THALWEG_ASSIGN(const Planned plan, planned(source, {}, steps));
  const auto keeps_its_name = [&](const SentColumn& sent) {
    return !sent.added && !sent.computed && plan.copied[sent.source]->name == sent.name;
  };
  const bool is_as_at_source = plan.sent.size() == plan.copied.size() && std::ranges::all_of(plan.sent, keeps_its_name);
  if (destination == nullptr && !is_as_at_source) {
    return refuse(fmt::format(
        "{} does not exist at the destination, and transformations drop, rename, add or cast columns of it: create it "
        "there.",
        name));
  }
  const TableShape& target = destination == nullptr ? source : *destination;
  for (const SentColumn& sent : plan.sent) {
    if (!sent.mask || sent.mask->kind != MaskKind::null) continue;
    const ColumnShape* const column = target.column(sent.name);
    if (column == nullptr || !column->not_null) continue;
    return refuse(fmt::format("Column {} of {} is masked with NULL, and NOT NULL at the {}.",
                              pg::quote_identifier(sent.name), name,
                              destination == nullptr ? "source, as which it would be made: create the table at the "
                                                       "destination"
                                                     : "destination"));
  }
  return {};
}

base::Result<void> check_left_behind(const TableName& before, const transform::Steps& steps_before,
                                     const TableName& now, const transform::Steps& steps_now) {
  if (before == now || steps_before.empty() || steps_before == steps_now) return {};
  base::Error error =
      base::fail(base::ErrorCode::transformation_refused,
                 fmt::format("{} is the table that was {}, whose transformations do not go with it. Give {} the same "
                             "ones before you copy either.",
                             now.quoted(), before.quoted(), now.quoted()))
          .error();
  error.table = now.quoted();
  return std::unexpected(std::move(error));
}

}  // namespace thalweg::instantiation
