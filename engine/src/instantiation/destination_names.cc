#include "instantiation/destination_names.h"

#include <array>
#include <string_view>

#include <fmt/format.h>

namespace thalweg::instantiation {
namespace {

// PostgreSQL quotes a name only where it must: which words are reserved differs from version to version.
std::array<std::string, 4> written(const TableName& name) {
  const std::string schema = pg::quote_identifier(name.schema);
  const std::string table = pg::quote_identifier(name.name);
  return {name.schema + "." + name.name, name.schema + "." + table, schema + "." + name.name, schema + "." + table};
}

// The last place at which the name stands between the two. As it is where there is none.
std::string replaced(const std::string& text, std::string_view before, const TableName& name, std::string_view after,
                     const std::string& by) {
  for (const std::string& form : written(name)) {
    const std::string found = fmt::format("{}{}{}", before, form, after);
    const size_t at = text.rfind(found);
    if (at == std::string::npos) continue;
    return fmt::format("{}{}{}{}{}", text.substr(0, at), before, by, after, text.substr(at + found.size()));
  }
  return text;
}

std::string in_literal(const std::string& text) {
  std::string doubled;
  for (const char character : text) doubled += character == '\'' ? "''" : std::string(1, character);
  return doubled;
}

// nextval('public.t_id_seq'::regclass)
std::string with_sequence(const std::string& expression, const TableName& sequence, const TableName& other) {
  const TableName literal{in_literal(sequence.schema), in_literal(sequence.name)};
  return replaced(expression, "'", literal, "'::regclass", in_literal(other.quoted()));
}

// Of the table's own definition: the head is all that stands before the first USING.
std::string with_table(const std::string& index, const TableName& table, const TableName& other) {
  const size_t head = index.find(" USING ");
  if (head == std::string::npos) return index;
  return replaced(index.substr(0, head), " ON ", table, "", other.quoted()) + index.substr(head);
}

}  // namespace

void DestinationNames::add_parts(const TableShape& table) {
  const TableName there = of(table.name);
  if (there.schema == table.name.schema) return;
  const auto follow = [&](const TableName& part) {
    if (part.schema == table.name.schema) names_.try_emplace(part, TableName{there.schema, part.name});
  };
  for (const TableShape& partition : table.partitions) follow(partition.name);
  for (const SequenceShape& sequence : table.sequences) {
    if (!sequence.owner_column.empty()) follow(sequence.name);
  }
}

const TableName& DestinationNames::of(const TableName& table) const {
  const auto found = names_.find(table);
  return found == names_.end() ? table : found->second;
}

TableShape named_there(TableShape table, const DestinationNames& names) {
  if (names.empty()) return table;
  const TableName here = table.name;
  table.name = names.of(here);
  if (table.parent) table.parent = names.of(*table.parent);
  for (SequenceShape& sequence : table.sequences) {
    const TableName there = names.of(sequence.name);
    for (ColumnShape& column : table.columns) {
      if (there != sequence.name)
        column.default_expression = with_sequence(column.default_expression, sequence.name, there);
    }
    sequence.name = there;
  }
  for (ConstraintShape& constraint : table.constraints) {
    if (!constraint.references) continue;
    const TableName there = names.of(*constraint.references);
    if (there == *constraint.references) continue;
    constraint.definition = with_reference(constraint.definition, *constraint.references, there);
    constraint.references = there;
  }
  for (IndexShape& index : table.indexes) {
    if (table.name != here) index.definition = with_table(index.definition, here, table.name);
  }
  for (TableShape& partition : table.partitions) partition = named_there(std::move(partition), names);
  return table;
}

std::string with_reference(const std::string& definition, const TableName& table, const TableName& other) {
  return replaced(definition, " REFERENCES ", table, "(", other.quoted());
}

}  // namespace thalweg::instantiation
