#include "instantiation/rehearsal.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <iterator>
#include <map>
#include <set>

#include "instantiation/bookkeeping.h"
#include "instantiation/called_code.h"
#include "instantiation/catalogue.h"
#include "instantiation/comparison.h"
#include "instantiation/destination_schema.h"
#include "instantiation/dry_run.h"
#include "instantiation/refusal_cure.h"
#include "instantiation/requirement.h"
#include "instantiation/schema_plan.h"
#include "instantiation/sent_table.h"
#include "instantiation/stand_in.h"
#include "pg/connection.h"

namespace thalweg::instantiation {
namespace {

constexpr size_t kDependantsShown = 10;

constexpr const char* kBounds = "SET statement_timeout = '60s'; SET lock_timeout = '20s'";
// A server whose client has gone ends the statement then, whatever a function in it catches. Not on every system.
constexpr const char* kEndsWithClient = "SET client_connection_check_interval = '2s'";

base::Result<pg::Connection> open(const base::Conninfo& conninfo, const RehearsalOptions& options) {
  THALWEG_ASSIGN(pg::Connection connection, pg::Connection::open(conninfo, {.application_name = "thalweg rehearsal",
                                                                            .abandon = options.abandon,
                                                                            .lifetime = options.time_max}));
  THALWEG_TRY(connection.script(kBounds));
  if (auto set = connection.script(kEndsWithClient); !set && connection.broken()) return std::unexpected(set.error());
  return connection;
}

std::string without_quotes(std::string text) {
  std::erase(text, '"');
  return text;
}

// Nothing has been copied yet: a table may be dropped, and its stream does not have to have it.
std::string cure_before_start(base::ErrorCode code) {
  switch (code) {
    case base::ErrorCode::destination_table_differs:
      return "Change the destination's table as the message says, or drop it and let the engine create it.";
    case base::ErrorCode::missing_table:
      return "Create the table, or take it out of the stream.";
    default:
      return std::string(base::cure_of(code));
  }
}

Problem problem_of(const base::Error& error, std::string part, const TableName& about) {
  return {.outcome = Outcome::refused,
          .part = std::move(part),
          .table = about.quoted(),
          .name = about.name,
          .message = error.message,
          .sqlstate = error.sqlstate,
          .statement = {},
          .cure = cure_before_start(error.code),
          .cure_sql = {}};
}

// Owner: one thread. Used once.
class Rehearsal {
 public:
  Rehearsal(const RehearsalOptions& options, pg::Connection source, pg::Connection destination)
      : options_(options),
        source_(std::move(source)),
        destination_(std::move(destination)),
        source_catalogue_(source_),
        destination_catalogue_(destination_) {}

  base::Result<std::vector<Problem>> run();

 private:
  base::Result<void> read_source();
  base::Result<TableShape> sent_shape(const TableShape& shape);
  base::Result<void> check_fits(const TableShape& shape, const TableShape* existing);
  base::Result<void> compare_tables();
  base::Result<void> compare_types();
  base::Result<void> compare_requirements();
  base::Result<void> leave_out_called_code();
  void leave_out(const TableShape& table, const CalledCode& call);
  base::Result<void> try_statements();
  base::Result<std::vector<Statement>> plan();
  bool is_tried(const Statement& statement) const;

  const RehearsalOptions& options_;
  pg::Connection source_, destination_;
  Catalogue source_catalogue_, destination_catalogue_;
  DestinationNames names_;          // with the parts of tables
  std::vector<TableShape> shapes_;  // of tables that the destination lacks
  std::vector<TypeShape> types_;    // that tables need
  // By their names at the destination: tables that cannot be made, whose reason is a problem already.
  std::set<TableName> hopeless_;
  std::set<std::pair<TableName, std::string>> hopeless_parts_;
  std::vector<Problem> problems_;
};

base::Result<void> Rehearsal::read_source() {
  THALWEG_ASSIGN(Catalogue::Tables found, source_catalogue_.tables(options_.tables));
  std::set<uint32_t> seen;
  for (const TableName& name : options_.tables) {
    const auto table = found.find(name);
    if (table == found.end()) {
      const auto gone =
          base::fail(base::ErrorCode::missing_table, fmt::format("{} does not exist at the source.", name.quoted()),
                     base::ErrorSide::source);
      problems_.push_back(problem_of(gone.error(), "table", name));
    } else if (const auto fit = check_source_table(table->second, options_.inserts_only.contains(name)); !fit) {
      problems_.push_back(problem_of(fit.error(), "table", name));
    } else if (const auto sent = sent_shape(table->second); !sent) {
      problems_.push_back(problem_of(sent.error(), "table", name));
    } else {
      THALWEG_TRY(source_catalogue_.types_of(*sent, seen, types_));
      shapes_.push_back(std::move(table->second));
    }
  }
  names_ = options_.names;
  for (const TableShape& shape : shapes_) names_.add_parts(shape);
  return {};
}

base::Result<TableShape> Rehearsal::sent_shape(const TableShape& shape) {
  const auto steps = options_.transformations.find(shape.name);
  if (steps == options_.transformations.end()) return shape;
  THALWEG_ASSIGN(SentTable sent, sent_table(source_, shape, steps->second));
  return std::move(sent.shape);
}

// `existing`: null where the table would be made.
base::Result<void> Rehearsal::check_fits(const TableShape& shape, const TableShape* existing) {
  if (const auto steps = options_.transformations.find(shape.name); steps != options_.transformations.end()) {
    THALWEG_TRY(check_takes_columns(shape, steps->second, names_.of(shape.name), existing));
  }
  if (existing == nullptr) return {};
  THALWEG_ASSIGN(const TableShape sent, sent_shape(shape));
  return check_same_table(named_there(sent, names_), *existing);
}

base::Result<void> Rehearsal::compare_tables() {
  std::vector<TableName> wanted;
  for (const TableName& name : options_.tables) wanted.push_back(names_.of(name));
  THALWEG_ASSIGN(const Catalogue::Tables there, destination_catalogue_.tables(wanted));
  std::erase_if(shapes_, [&](const TableShape& shape) {
    const auto found = there.find(names_.of(shape.name));
    const TableShape* const existing = found == there.end() ? nullptr : &found->second;
    if (const auto fit = check_fits(shape, existing); !fit) {
      problems_.push_back(problem_of(fit.error(), "table", shape.name));
      return true;
    }
    return existing != nullptr;
  });
  return {};
}

base::Result<void> Rehearsal::compare_types() {
  std::vector<TypeShape> missing;
  for (TypeShape& type : types_) {
    THALWEG_ASSIGN(const std::optional<TypeShape> there, destination_catalogue_.find_type(type.name));
    if (there) {
      if (const auto same = check_same_type(type, *there); !same) {
        Problem problem = problem_of(same.error(), "type", type.name);
        problem.cure_sql = missing_labels_sql(type, *there, destination_);
        if (!problem.cure_sql.empty()) problem.cure = "Add the labels at the destination.";
        problems_.push_back(std::move(problem));
      }
    } else if (!type.create_sql.empty()) {
      missing.push_back(std::move(type));
    } else if (type.extension.empty()) {  // what an extension brings is missing with the extension
      problems_.push_back(problem_of(check_creatable(type).error(), "type", type.name));
    }
  }
  types_ = std::move(missing);
  return {};
}

base::Result<void> Rehearsal::compare_requirements() {
  THALWEG_ASSIGN(const std::vector<Requirement> requirements, read_requirements(source_, shapes_));
  THALWEG_ASSIGN(const std::vector<Lack> lacks, find_lacks(destination_, requirements));
  std::map<std::string, std::vector<const Lack*>> by_cure;
  for (const Lack& lack : lacks) by_cure[lack.statement].push_back(&lack);
  for (const auto& [statement, group] : by_cure) {
    const Requirement& first = *group.front()->requirement;
    Problem problem{.outcome = Outcome::left_out,
                    .part = first.is_extension() ? "extension" : "function",
                    .table = group.size() == 1 ? first.table.quoted() : "",
                    .name = first.is_extension() ? first.extension : first.function,
                    .message = {},
                    .sqlstate = {},
                    .statement = {},
                    .cure = group.front()->cure,
                    .cure_sql = statement};
    std::string dependants;
    for (size_t i = 0; i < group.size(); ++i) {
      const TableName& table = group[i]->requirement->table;
      const std::string& part = group[i]->requirement->part;
      const auto shape = std::ranges::find(shapes_, table, &TableShape::name);
      const ConstraintShape* key = shape == shapes_.end() ? nullptr : shape->primary_key();
      if (part.empty() || (key && key->name == part)) {
        problem.outcome = Outcome::refused;
        hopeless_.insert(names_.of(table));
      } else {
        hopeless_parts_.emplace(names_.of(table), part);
      }
      if (i >= kDependantsShown) continue;
      dependants += (i > 0 ? ", " : "") + table.quoted();
      if (!part.empty()) dependants += fmt::format(" ({})", pg::quote_identifier(part));
    }
    if (group.size() > kDependantsShown) dependants += fmt::format(" and {} more", group.size() - kDependantsShown);
    problem.message =
        fmt::format("The destination lacks the {} {}. It is needed by {}.", problem.part, problem.name, dependants);
    problems_.push_back(std::move(problem));
  }
  return {};
}

base::Result<void> Rehearsal::leave_out_called_code() {
  std::vector<CarriedTable> carried;
  for (const TableShape& shape : shapes_) carried.push_back(carried_table(shape, nullptr, false));
  THALWEG_ASSIGN(const std::vector<CalledCode> calls, code_to_accept(source_, destination_, carried, {}));
  for (const CalledCode& call : calls) {
    const auto shape = std::ranges::find(shapes_, call.table, &TableShape::name);
    if (shape == shapes_.end() || hopeless_.contains(names_.of(call.table))) continue;
    leave_out(*shape, call);
    for (const TableShape& partition : shape->partitions) leave_out(partition, call);
    problems_.push_back({.outcome = Outcome::not_tried,
                         .part = call.part,
                         .table = call.table.quoted(),
                         .name = call.name,
                         .message = fmt::format("{} ({}) {}", call.table.quoted(), call.part, call.use()),
                         .sqlstate = {},
                         .statement = {},
                         .cure = {},
                         .cure_sql = {}});
  }
  return {};
}

// A part that a table can do without has a statement of its own, and is left out alone; any other takes the table with
// it. A type is left out with its tables.
void Rehearsal::leave_out(const TableShape& table, const CalledCode& call) {
  const TableName& there = names_.of(table.name);
  for (const std::string_view kind : {"default of ", "constraint "}) {
    if (!call.part.starts_with(kind)) continue;
    hopeless_parts_.emplace(there, call.part.substr(kind.size()));
    return;
  }
  if (call.part.starts_with("index ")) {
    const std::string index = without_quotes(call.part.substr(6));
    for (const IndexShape& shape : table.indexes) {
      if (without_quotes(table.name.schema + "." + shape.name) == index) hopeless_parts_.emplace(there, shape.name);
    }
    for (const ConstraintShape& shape : table.constraints) {
      if (without_quotes(table.name.schema + "." + shape.name) == index) hopeless_parts_.emplace(there, shape.name);
    }
    return;
  }
  hopeless_.insert(there);
  if (!call.part.starts_with("type ")) return;
  const std::string type = without_quotes(call.part.substr(5));
  for (const TypeShape& shape : types_) {
    if (without_quotes(shape.name.schema + "." + shape.name.name) == type) hopeless_.insert(shape.name);
  }
}

bool Rehearsal::is_tried(const Statement& statement) const {
  if (statement.references && hopeless_.contains(*statement.references)) return false;
  return !hopeless_.contains(statement.table) && !hopeless_parts_.contains({statement.table, statement.name});
}

base::Result<std::vector<Statement>> Rehearsal::plan() {
  for (TableShape& shape : shapes_) shape = named_there(std::move(shape), names_);
  std::vector<const TableShape*> tables;
  for (const TableShape& shape : shapes_) {
    tables.push_back(&shape);
    for (const TableShape& partition : shape.partitions) tables.push_back(&partition);
  }
  THALWEG_ASSIGN(Present present, DestinationSchema(destination_, destination_catalogue_).look(tables));
  for (const TableShape* table : tables) {
    for (const IndexShape& index : table->indexes) {
      if (!present.relations.contains({table->name.schema, index.name})) continue;
      hopeless_parts_.insert({table->name, index.name});
      problems_.push_back({.outcome = Outcome::left_out,
                           .part = "index",
                           .table = table->name.quoted(),
                           .name = index.name,
                           .message = fmt::format("The destination has something else of the name {}.",
                                                  TableName{table->name.schema, index.name}.quoted()),
                           .sqlstate = {},
                           .statement = index.definition,
                           .cure = "Rename what is there.",
                           .cure_sql = {}});
    }
  }
  std::vector<Statement> plan;
  const auto add = [&](std::vector<Statement> more) {
    std::ranges::copy_if(more, std::back_inserter(plan),
                         [&](const Statement& statement) { return is_tried(statement); });
  };
  for (const TypeShape& type : types_) add(plan_type(type, present));
  for (const TableShape& shape : shapes_) add(plan_table(shape, present));
  for (const TableShape* table : tables) {
    add(plan_primary_key(*table, nullptr));
    add(plan_constraints(*table, nullptr));
    add(plan_indexes(*table, present));
    add(plan_replica_identity(*table, nullptr));
  }
  for (const TableShape* table : tables) add(plan_foreign_keys(*table, nullptr));
  return plan;
}

base::Result<void> Rehearsal::try_statements() {
  THALWEG_ASSIGN(std::vector<Statement> statements, plan());
  std::vector<Statement> denied;
  THALWEG_TRY(use_stand_ins(destination_, statements, denied));
  THALWEG_ASSIGN(const pg::Rows role, destination_.query("SELECT pg_catalog.quote_ident(current_user)"));
  for (const Statement& statement : denied) {
    problems_.push_back(
        {.outcome = Outcome::left_out,
         .part = std::string(name_of(statement.part)),
         .table = statement.table.quoted(),
         .name = statement.name,
         .message = fmt::format("permission denied for table {}", statement.references->quoted()),
         .sqlstate = "42501",
         .statement = statement.sql,
         .cure = "Grant REFERENCES on the table to the user.",
         .cure_sql = fmt::format("GRANT REFERENCES ON {} TO {}", statement.references->quoted(), role.text(0, 0))});
  }
  THALWEG_TRY(destination_.script("BEGIN; SET LOCAL session_replication_role = replica"));
  THALWEG_TRY(Bookkeeping(destination_, "").create_tables());
  const auto refusals = dry_run(destination_, statements);
  if (!destination_.broken()) THALWEG_TRY(destination_.script("ROLLBACK"));
  if (!refusals) return std::unexpected(refusals.error());
  for (const Refusal& refusal : *refusals) {
    if (is_stand_in(statements[refusal.statement])) continue;
    const Statement statement = without_stand_in(statements[refusal.statement]);
    const Cure cure = cure_of_refusal(refusal, source_.server_version(), destination_.server_version());
    problems_.push_back({.outcome = statement.is_essential() ? Outcome::refused : Outcome::left_out,
                         .part = std::string(name_of(statement.part)),
                         .table = statement.table.quoted(),
                         .name = statement.name,
                         .message = refusal.message,
                         .sqlstate = refusal.sqlstate,
                         .statement = statement.sql,
                         .cure = cure.words,
                         .cure_sql = cure.sql});
    if (cure.ends_the_rehearsal) break;
  }
  return {};
}

base::Result<std::vector<Problem>> Rehearsal::run() {
  THALWEG_TRY(source_catalogue_.open());
  THALWEG_TRY(destination_catalogue_.open());
  THALWEG_TRY(read_source());
  THALWEG_TRY(compare_tables());
  THALWEG_TRY(compare_types());
  THALWEG_TRY(compare_requirements());
  THALWEG_TRY(leave_out_called_code());
  THALWEG_TRY(try_statements());
  return std::move(problems_);
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::refused:
      return "refused";
    case Outcome::left_out:
      return "left_out";
    case Outcome::not_tried:
      return "not_tried";
  }
  return "";
}

base::Result<std::vector<Problem>> rehearse(const RehearsalOptions& options) {
  const auto end = std::chrono::steady_clock::now() + options.time_max;
  auto found = [&]() -> base::Result<std::vector<Problem>> {
    auto opening = std::async(std::launch::async, [&] { return open(options.source_conninfo, options); });
    auto destination = open(options.destination_conninfo, options);
    THALWEG_ASSIGN(pg::Connection source, opening.get());
    if (!destination) return std::unexpected(destination.error());
    return Rehearsal(options, std::move(source), std::move(*destination)).run();
  }();
  const bool is_over = std::chrono::steady_clock::now() >= end;
  // A session whose time is over is lost, or was not there yet.
  const bool has_no_session = !found && (found.error().code == base::ErrorCode::connection_lost ||
                                         found.error().code == base::ErrorCode::database_unreachable);
  if (!is_over || !has_no_session) return found;
  return base::fail(base::ErrorCode::database_busy,
                    fmt::format("The databases have not answered all questions within {} s: whether the tables can be "
                                "made is not known",
                                std::chrono::duration_cast<std::chrono::seconds>(options.time_max).count()),
                    found.error().side);
}

}  // namespace thalweg::instantiation
