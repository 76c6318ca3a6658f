#include "instantiation/called_code.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "pg/text_array.h"

namespace thalweg::instantiation {
namespace {

constexpr std::string_view kQuestions =
#include "instantiation/called_code.inc"
    ;
constexpr size_t kShown = 10;

// The number-th question of several that semicolons part.
constexpr std::string_view question(size_t number) {
  std::string_view rest = kQuestions;
  for (; number > 0; --number) rest.remove_prefix(rest.find(';') + 1);
  return rest.substr(0, rest.find(';'));
}
constexpr std::string_view kCalled = question(0);   // at the source: oid, part, kind, name, digest
constexpr std::string_view kHarmful = question(1);  // at the destination: kind, name
constexpr std::string_view kPowers = question(2);   // there, too: role, powers

bool is_carried(Carried carried, std::string_view part) {
  if (carried == Carried::whole || part == "partition key") return true;
  return carried == Carried::later && (part.starts_with("constraint ") || part.starts_with("index "));
}

struct Role {
  std::string name;
  std::vector<std::string> powers;
};

base::Result<Role> role_of(pg::Connection& destination) {
  THALWEG_ASSIGN(const pg::Rows role, destination.query(std::string(kPowers), {}));
  if (role.size() == 0) return base::fail(base::ErrorCode::database_error, "The session's role does not exist.");
  return Role{std::string(role.text(0, 0)), pg::parse_text_array(role.text(0, 1))};
}

base::Result<std::vector<CalledCode>> calls_not_accepted(pg::Connection& source,
                                                         const std::vector<CarriedTable>& carried,
                                                         const AcceptedCode& accepted) {
  std::map<int64_t, const CarriedTable*> by_relation;
  std::vector<std::string> relations;
  for (const CarriedTable& table : carried) {
    for (const uint32_t relation : table.relations) {
      by_relation[relation] = &table;
      relations.push_back(std::to_string(relation));
    }
  }
  std::vector<CalledCode> calls;
  if (relations.empty()) return calls;
  THALWEG_ASSIGN(const pg::Rows rows, source.query(std::string(kCalled), {pg::text_array(relations)}));
  for (size_t row = 0; row < rows.size(); ++row) {
    const CarriedTable& of = *by_relation.at(rows.integer(row, 0));
    if (!is_carried(of.carried, rows.text(row, 1))) continue;
    const auto digests = accepted.find(of.table);
    if (digests != accepted.end() && digests->second.contains(std::string(rows.text(row, 4)))) continue;
    calls.push_back(
        {of.table, std::string(rows.text(row, 1)), std::string(rows.text(row, 2)), std::string(rows.text(row, 3))});
  }
  return calls;
}

// Takes away what merely computes at the destination.
base::Result<void> keep_harmful(pg::Connection& destination, std::vector<CalledCode>& calls) {
  std::set<std::pair<std::string, std::string>> named;
  for (const CalledCode& call : calls) named.emplace(call.kind, call.name);
  std::vector<std::string> kinds;
  std::vector<std::string> names;
  for (const auto& [kind, name] : named) {
    kinds.push_back(kind);
    names.push_back(name);
  }
  THALWEG_ASSIGN(const pg::Rows rows,
                 destination.query(std::string(kHarmful), {pg::text_array(kinds), pg::text_array(names)}));
  std::set<std::pair<std::string, std::string>> harmful;
  for (size_t row = 0; row < rows.size(); ++row) harmful.emplace(rows.text(row, 0), rows.text(row, 1));
  std::erase_if(calls, [&](const CalledCode& call) { return !harmful.contains({call.kind, call.name}); });
  return {};
}

base::Error refusal(const std::vector<CalledCode>& calls, std::string_view role,
                    const std::vector<std::string>& powers) {
  std::vector<std::string> uses;
  for (const CalledCode& call : calls) {
    if (uses.size() == kShown) break;
    uses.push_back(fmt::format("{} ({}) {}", call.table.quoted(), call.part, call.use()));
  }
  const std::string more = calls.size() > kShown ? fmt::format(" and {} more", calls.size() - kShown) : "";
  base::Error error =
      base::fail(base::ErrorCode::code_not_accepted,
                 fmt::format("Definitions of the source's would run code at the destination that nobody has accepted, "
                             "as {}, who has {}: {}{}.",
                             role, fmt::join(powers, ", "), fmt::join(uses, ", "), more))
          .error();
  error.table = calls.front().table.quoted();
  return error;
}

}  // namespace

std::string CalledCode::use() const {
  return fmt::format("{} {}", kind.contains("type") ? "uses the type" : "calls", name);
}

CarriedTable carried_table(const TableShape& shape, const TableShape* there, bool created) {
  if (there == nullptr) return {.table = shape.name, .relations = {shape.oid}, .carried = Carried::whole};
  if (created) return {.table = shape.name, .relations = {shape.oid}, .carried = Carried::later};
  CarriedTable table{.table = shape.name, .relations = {}, .carried = Carried::partitions};
  for (const TableShape& partition : shape.partitions) {
    const bool is_there =
        std::ranges::find(there->partitions, partition.name, &TableShape::name) != there->partitions.end();
    if (!is_there) table.relations.push_back(partition.oid);
  }
  return table;
}

base::Result<std::vector<CalledCode>> code_to_accept(pg::Connection& source, pg::Connection& destination,
                                                     const std::vector<CarriedTable>& carried,
                                                     const AcceptedCode& accepted) {
  THALWEG_ASSIGN(std::vector<CalledCode> calls, calls_not_accepted(source, carried, accepted));
  if (calls.empty()) return calls;
  THALWEG_ASSIGN(const Role role, role_of(destination));
  if (role.powers.empty()) return std::vector<CalledCode>{};
  THALWEG_TRY(keep_harmful(destination, calls));
  return calls;
}

base::Result<void> check_called_code(pg::Connection& source, pg::Connection& destination,
                                     const std::vector<CarriedTable>& carried, const AcceptedCode& accepted) {
  THALWEG_ASSIGN(const std::vector<CalledCode> calls, code_to_accept(source, destination, carried, accepted));
  if (calls.empty()) return {};
  THALWEG_ASSIGN(const Role role, role_of(destination));
  return std::unexpected(refusal(calls, role.name, role.powers));
}

}  // namespace thalweg::instantiation
