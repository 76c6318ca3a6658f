#include "instantiation/called_code.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "pg/text_array.h"

namespace thalweg::instantiation {
namespace {

constexpr std::string_view kQuestions =
#include "instantiation/called_code.inc"
    ;
constexpr size_t kShown = 10;

// Of several that semicolons part.
constexpr std::string_view question(size_t number) {
  std::string_view rest = kQuestions;
  for (; number > 0; --number) rest.remove_prefix(rest.find(';') + 1);
  return rest.substr(0, rest.find(';'));
}
const std::string kCalled(question(0));   // at the source: oid, part, kind, name
const std::string kHarmful(question(1));  // at the destination: kind, name
const std::string kPowers(question(2));   // there, too: role, powers

bool is_carried(Carried carried, std::string_view part) {
  if (carried == Carried::whole || part == "partition key") return true;
  return carried == Carried::later && (part.starts_with("constraint ") || part.starts_with("index "));
}

struct Call {
  TableName table;
  std::string part, kind, name;
};

base::Result<std::vector<Call>> read_calls(pg::Connection& source, const std::vector<CarriedTable>& carried,
                                           const AcceptedCode& accepted) {
  std::map<int64_t, const CarriedTable*> by_relation;
  std::vector<std::string> relations;
  for (const CarriedTable& table : carried) {
    for (const uint32_t relation : table.relations) {
      by_relation[relation] = &table;
      relations.push_back(std::to_string(relation));
    }
  }
  std::vector<Call> calls;
  if (relations.empty()) return calls;
  THALWEG_ASSIGN(const pg::Rows rows, source.query(kCalled, {pg::text_array(relations)}));
  for (size_t row = 0; row < rows.size(); ++row) {
    const CarriedTable& of = *by_relation.at(rows.integer(row, 0));
    Call call{of.table, std::string(rows.text(row, 1)), std::string(rows.text(row, 2)), std::string(rows.text(row, 3))};
    if (!is_carried(of.carried, call.part)) continue;
    const auto known = accepted.find(of.table);
    if (known != accepted.end() && known->second.contains(call.name)) continue;
    calls.push_back(std::move(call));
  }
  return calls;
}

}  // namespace

base::Result<void> check_called_code(pg::Connection& source, pg::Connection& destination,
                                     const std::vector<CarriedTable>& carried, const AcceptedCode& accepted) {
  THALWEG_ASSIGN(const std::vector<Call> calls, read_calls(source, carried, accepted));
  if (calls.empty()) return {};
  THALWEG_ASSIGN(const pg::Rows role, destination.query(kPowers, {}));
  if (role.size() == 0 || role.text(0, 1) == "{}") return {};
  std::set<std::pair<std::string, std::string>> named;
  for (const Call& call : calls) named.emplace(call.kind, call.name);
  std::vector<std::string> kinds;
  std::vector<std::string> names;
  for (const auto& [kind, name] : named) {
    kinds.push_back(kind);
    names.push_back(name);
  }
  THALWEG_ASSIGN(const pg::Rows rows, destination.query(kHarmful, {pg::text_array(kinds), pg::text_array(names)}));
  std::set<std::pair<std::string, std::string>> harmful;
  for (size_t row = 0; row < rows.size(); ++row) harmful.emplace(rows.text(row, 0), rows.text(row, 1));
  std::string told;
  std::string first;
  size_t found = 0;
  for (const Call& call : calls) {
    if (!harmful.contains({call.kind, call.name})) continue;
    if (found == 0) first = call.table.quoted();
    if (++found <= kShown) {
      told += fmt::format("{}{} ({}) calls {}", found > 1 ? ", " : "", call.table.quoted(), call.part, call.name);
    }
  }
  if (found == 0) return {};
  if (found > kShown) told += fmt::format(" and {} more", found - kShown);
  base::Error error =
      base::fail(base::ErrorCode::code_not_accepted,
                 fmt::format("The source's definitions would run code at the destination as {}, who has {}, that "
                             "nobody has accepted: {}.",
                             role.text(0, 0), role.text(0, 1), told))
          .error();
  error.table = first;
  return std::unexpected(std::move(error));
}

}  // namespace thalweg::instantiation
