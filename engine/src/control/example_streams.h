#pragma once

#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"
#include "control/managed_streams.h"
#include "support/engine_directory.h"

// Streams for tests that show what the examples of engine/contract show.

namespace thalweg::control {

inline constexpr telemetry::LastChange kLast{.at_source = {1}, .at_destination = {2}};

inline nlohmann::json contract(const std::string& name) {
  return nlohmann::json::parse(*base::read_file(test::engine_directory() + "/contract/" + name));
}

inline constexpr std::string_view kActivities[] = {"busy",   "idle",       "flow_control", "network", "execute",
                                                   "commit", "dependency", "commit_order", "lock",    "disk"};

inline telemetry::TransactionRetry example_retry() {
  auto error = base::fail(base::ErrorCode::apply_conflict, "m").error();
  error.operation = base::RowOperation::insert;
  return {.number = 2, .times = 10, .at = {2}, .failed_at = {1}, .error = std::move(error)};
}

// Streams that show what the contract's examples show, so that the answers can be compared with the example files.
class ExampleStreams final : public ManagedStreams {
 public:
  base::Result<void> put_desired(DesiredState desired) override {
    std::lock_guard lock(mutex_);
    if (desired.revision < revision_) return base::fail(base::ErrorCode::desired_state_conflict, "older");
    revision_ = desired.revision;
    return {};
  }
  EngineStatus engine() const override {
    std::lock_guard lock(mutex_);
    return {.version = "0.1.0",
            .started_at = {1},
            .hostname = "host",
            .pid = 1,
            .desired_revision = revision_,
            .identity = IdentityView{.name = "alpha", .fingerprint = "9f86", .not_after = {1}},
            .propagation_listen = "10.0.0.1:8644"};
  }
  std::vector<StreamStatus> status() const override {
    StreamStatus copying;
    copying.id = "k3j2h1g4";
    copying.state = State::instantiating;
    DestinationStatus& warehouse = copying.destinations.emplace_back();
    warehouse.id = "warehouse";
    warehouse.instantiation =
        InstantiationStatus{.started_at = {1}, .finished_at = {}, .tables = {}, .warnings = {"w"}};
    warehouse.counted_since = {1};
    warehouse.in_effect = InEffect{.revision = 42, .from = {1}, .since = {1}};
    warehouse.effects = {{.from = {1}, .since = {1}}};
    warehouse.instantiation->tables.push_back({.table = {"public", "pgbench_accounts"}, .state = TableState::copying});
    warehouse.tables.push_back(
        {.state = TableState::copying,
         .changes = {.schema_name = "public", .table_name = "pgbench_accounts", .last_change = kLast},
         .trouble = {}});
    warehouse.tables.push_back(
        {.state = TableState::stopped,
         .changes = {.schema_name = "public", .table_name = "pgbench_history", .last_change = kLast},
         .trouble = TableTrouble{.kind = TableTroubleKind::partitions_changed,
                                 .reason = "r",
                                 .cure = "c",
                                 .cure_sql = {},
                                 .since = {1},
                                 .renamed_to = {},
                                 .resolutions = {TableResolution::copy}}});
    WaitStatus& wait = copying.waits.emplace_back();
    wait.side = "source";
    wait.since = {1};
    wait.blockers.push_back({.pid = 1, .user = "bob", .application_name = "psql", .state = "idle", .since = {}});
    copying.rule_counts =
        RuleCounts{.counted_since = {1},
                   .tables = {{.schema_name = "public", .table_name = "pgbench_accounts", .passed = 10, .dropped = 2}}};
    StreamStatus aborted;
    aborted.id = "m5n6p7q8";
    aborted.state = State::aborted;
    aborted.error = ReportedError{
        base::fail(base::ErrorCode::replica_identity_missing, "bytes \xff that are no text").error(), {2}};
    aborted.destinations.emplace_back().error = aborted.error;
    StreamStatus fanned;
    fanned.id = "f4n0u7aa";
    fanned.state = State::replicating;
    fanned.mode = {};  // several destinations
    DestinationStatus& reports = fanned.destinations.emplace_back();
    reports.id = "reports";
    reports.error = aborted.error;
    reports.counted_since = {1};
    reports.in_effect = warehouse.in_effect;
    reports.effects = warehouse.effects;
    reports.tables.push_back({.state = TableState::waiting,
                              .changes = {.schema_name = "public", .table_name = "t", .last_change = kLast},
                              .trouble = {}});
    reports.rule_counts = copying.rule_counts;
    reports.retrying = 1;
    reports.next_retry = example_retry();
    fanned.kind_change = KindChangeStatus{.to = CaptureKind::wal, .position = base::Lsn{1}, .waits_for = {"reports"}};
    return {copying, aborted, fanned};
  }
  EngineStats stats() const override {
    EngineStats out;
    for (const nlohmann::json* document : {&example_["streams"][0], &fan_out_}) {
      const nlohmann::json& stream = *document;
      StreamStats stats{
          .id = stream["id"].get<std::string>(), .components = {}, .latency = {{1024, 5}, {4096, 53}}, .tables = {}};
      for (const nlohmann::json& component : stream["components"]) stats.components.push_back(sample(component));
      stats.tables.push_back({.schema_name = "public", .table_name = "pgbench_accounts", .last_change = kLast});
      stats.tables.back().conflicts[0] = 3;
      for (const nlohmann::json& destination : stream["destinations"]) {
        stats.destinations.push_back({.id = destination["id"].get<std::string>(),
                                      .latency = {{1024, 5}},
                                      .tables = stats.tables,
                                      .error_queue_transactions = 0});
      }
      out.streams.push_back(std::move(stats));
    }
    return out;
  }
  base::Result<void> retry(const StreamTarget& target) override { return known(target); }
  base::Result<telemetry::LoggedConflicts> conflicts(const StreamTarget& target,
                                                     const telemetry::ConflictPart& part) override {
    THALWEG_TRY(known(target));
    asked_conflicts = part;
    telemetry::LoggedConflict conflict{.id = 12,
                                       .commit_lsn = {1},
                                       .committed_at = "2026-11-21T00:00:00.000000Z",
                                       .xid = {7},
                                       .change = 3,
                                       .schema_name = "public",
                                       .table_name = "t",
                                       .operation = "UPDATE",
                                       .kind = "update_exists",
                                       .sqlstate = "23505",
                                       .message = "m",
                                       .action = "discard",
                                       .columns = {},
                                       .has_row = true,
                                       .logged_at = "2026-11-21T00:00:01.000000Z"};
    conflict.columns.push_back({.name = "id", .is_identity = true, .wanted = "5", .there = "6"});
    conflict.columns.push_back({.name = "name", .wanted = std::optional<std::string>{}, .there = "here"});
    return telemetry::LoggedConflicts{.conflicts = {conflict}};
  }
  base::Result<std::vector<telemetry::LoggedCount>> conflict_counts(const StreamTarget& target) override {
    THALWEG_TRY(known(target));
    return std::vector<telemetry::LoggedCount>{{.schema_name = "public",
                                                .table_name = "t",
                                                .kind = "update_exists",
                                                .sqlstate = {},
                                                .action = "discard",
                                                .changes = 4,
                                                .newest = "2026-11-21T00:00:01.000000Z"}};
  }
  base::Result<ParkedListView> errors(const StreamTarget& target, const telemetry::ParkedPart& part) override {
    THALWEG_TRY(known(target));
    asked_part = part;
    ParkedListView list;
    list.errors.push_back({.id = 1,
                           .commit_lsn = {1},
                           .xid = {7},
                           .lcrs = 3,
                           .tables = {"public.t"},
                           .code = "apply_failed",
                           .message = "m",
                           .sqlstate = "23505",
                           .constraint = "t_pkey",
                           .parked_at = "2026-11-21T00:00:00Z",
                           .failed_change = 2});
    list.total = 15'000;
    list.roots = 1;
    list.next_after = 1;
    list.causes.push_back({.id = "5f3a",
                           .code = "apply_conflict",
                           .sqlstate = "23505",
                           .table = {},
                           .object = {},
                           .transactions = 2,
                           .oldest = {}});
    list.execution = {
        .choice = {.id = 1},
        .state = ExecutionState::failed,
        .executed = 886,
        .total = 14'000,
        .failed = 1,
        .failures = {{.error_id = 1, .error = base::fail(base::ErrorCode::apply_conflict, "again").error()}},
        .left_out = 1,
        .left_out_ids = {3},
        .started_at = {1},
        .finished_at = base::UnixMicros{2},
        .error = base::fail(base::ErrorCode::apply_conflict, "again").error()};
    return list;
  }
  telemetry::ParkedPart asked_part;
  telemetry::ConflictPart asked_conflicts;
  base::Result<telemetry::ParkedTree> error_tree(const StreamTarget& target, int64_t error_id,
                                                 const telemetry::TreePart& part) override {
    THALWEG_TRY(known(target));
    if (error_id == 404) return base::fail(base::ErrorCode::unknown_error_transaction, "none");
    asked_tree = part;
    telemetry::ParkedTree tree{.dependants = {}, .total = 12, .next_after = 23};
    tree.dependants.push_back(
        {.transaction = {.id = 4}, .parent = error_id, .behind = {2, error_id}, .behind_total = 2});
    return tree;
  }
  telemetry::TreePart asked_tree;
  base::Result<ParkedContentsView> error_contents(const StreamTarget& target, int64_t error_id,
                                                  const telemetry::ChangesPart& part) override {
    using telemetry::ShownValue;
    THALWEG_TRY(known(target));
    if (error_id == 404) return base::fail(base::ErrorCode::unknown_error_transaction, "none");
    const auto text = [](std::string value) {
      return ShownValue{
          .state = ShownValue::State::text, .text = value, .bytes = value.size(), .hash = 0, .cut = false};
    };
    ShownValue cut = text("beginning");
    cut.bytes = 600;  // of bytes in hex no 600 are shown
    cut.cut = true;
    ShownValue other = cut;
    other.hash = 1;
    ParkedContentsView opened;
    opened.error.id = error_id;
    opened.contents.changes_total = 12;
    telemetry::ShownChange& change = opened.contents.changes.emplace_back();
    asked_changes = part;
    change.number = part.only.value_or(part.after + 1);
    opened.contents.next_after = change.number;
    change.edit = telemetry::ParkedEdit{.values = {{"amount", "9.90"}}, .reason = "entered wrong"};
    change.operation = "UPDATE";
    change.schema_name = "public";
    change.table_name = "t";
    change.found_by = {"id"};
    change.rows_found = 1;
    change.columns.resize(2);
    change.columns[0].name = "id";
    change.columns[0].is_identity = true;
    change.columns[0].wanted = change.columns[0].now = text("1");
    change.columns[1].name = "big";
    change.columns[1].wanted = cut;
    change.columns[1].now = other;
    return opened;
  }
  telemetry::ChangesPart asked_changes;
  base::Result<telemetry::TransactionSamples> transactions(const std::string& stream) override {
    if (stream != "k3j2h1g4") return base::fail(base::ErrorCode::unknown_stream, "none");
    telemetry::TransactionSamples out;
    out.shown.push_back({.xid = {7},
                         .state = "OPEN",
                         .first_lsn = {1},
                         .commit_lsn = {},
                         .begun = std::chrono::steady_clock::now() - std::chrono::seconds(60),
                         .retry = example_retry()});
    return out;
  }
  base::Result<telemetry::MarkerTrail> markers(const std::string&) override {
    telemetry::MarkerTrail out;
    out.placed.push_back({.id = "m1", .label = "l", .state = telemetry::MarkerState::waiting, .placed_at = {1}});
    out.stages.push_back({.component = "CAPTURE", .stage = "CAPTURE", .passages = {{{1}, {1}, {2}}}});
    return out;
  }
  base::Result<void> place_marker(const std::string&, const std::string& id, const std::string&) override {
    if (id == "taken") return base::fail(base::ErrorCode::marker_refused, "taken");
    return {};
  }
  static telemetry::SearchStatus example_search() {
    return {.id = "s7x3c9v1",
            .state = telemetry::SearchState::done,
            .begun_at = {1},
            .ended_at = base::UnixMicros{2},
            .mined_bytes = 20,
            .total_bytes = 20,
            .from = {0x1A2B3C4D},
            .to = {0x2F40A8B0},
            .found = 2};
  }
  base::Result<telemetry::SearchList> searches(const std::string& stream) override {
    if (stream != "k3j2h1g4") return base::fail(base::ErrorCode::search_refused, "none");
    telemetry::SearchList out{.kept_from = {1}, .kept_from_time = base::UnixMicros{5}, .kept_until = {9}};
    out.searches = {example_search(), example_search()};
    out.searches[1].state = telemetry::SearchState::failed;
    out.searches[1].error = base::fail(base::ErrorCode::search_overtaken, "gone").error();
    return out;
  }
  base::Result<telemetry::SearchStatus> begin_search(const std::string& stream,
                                                     telemetry::SearchRequest request) override {
    if (stream != "k3j2h1g4") return base::fail(base::ErrorCode::search_busy, "another");
    asked_search = std::move(request);
    return example_search();
  }
  telemetry::SearchRequest asked_search;
  base::Result<telemetry::FoundPart> search(const std::string&, const std::string& id,
                                            const telemetry::SearchPart& part) override {
    if (id != "s7x3c9v1") return base::fail(base::ErrorCode::unknown_search, "none");
    asked_found = part;
    telemetry::FoundPart out{.status = example_search()};
    for (uint64_t number = part.after + 1; number <= part.after + 2; ++number) {
      telemetry::FoundChange change;
      change.number = number;
      change.xid = {771};
      change.schema = "public";
      change.table = "orders";
      change.columns.push_back({.name = "id", .type = "bigint", .is_key = true});
      change.columns.push_back({.name = "email", .type = "text"});
      change.columns.push_back({.name = "note", .type = "text"});
      change.columns[0].before = telemetry::FoundValue{.text = "5"};
      change.columns[0].after = telemetry::FoundValue{.text = std::string(3000, 'x')};
      change.columns[1].before = change.columns[1].after = telemetry::FoundValue{.is_masked = true};
      out.changes.push_back(std::make_shared<telemetry::FoundChange>(std::move(change)));
    }
    return out;
  }
  telemetry::SearchPart asked_found;
  base::Result<void> end_search(const std::string&, const std::string& id) override {
    if (id != "s7x3c9v1") return base::fail(base::ErrorCode::unknown_search, "none");
    return {};
  }
  base::Result<ExecutionState> execute_error(const StreamTarget& target,
                                             const telemetry::ParkedChoice& choice) override {
    THALWEG_TRY(known(target));
    asked_choice = choice;
    return ExecutionState::running;
  }
  telemetry::ParkedChoice asked_choice;
  std::string asked_role;
  base::Result<DryRunView> dry_run_error(const StreamTarget& target, int64_t error_id,
                                         const std::string& role) override {
    THALWEG_TRY(known(target));
    asked_role = role;
    if (error_id == 404) return base::fail(base::ErrorCode::unknown_error_transaction, "none");
    if (error_id == 1) return DryRunView{};
    return DryRunView{
        .error = base::fail(base::ErrorCode::apply_conflict, "again").error(), .left_out = 1, .failed_change = 2};
  }
  base::Result<void> edit_error(const StreamTarget& target, int64_t error_id, uint64_t change,
                                const std::optional<telemetry::ParkedEdit>& edit, const std::string& version) override {
    THALWEG_TRY(known(target));
    if (error_id == 404) return base::fail(base::ErrorCode::unknown_error_transaction, "none");
    edited_change = change;
    asked_edit = edit;
    asked_version = version;
    return {};
  }
  uint64_t edited_change = 0;
  std::optional<telemetry::ParkedEdit> asked_edit;
  std::string asked_version;
  base::Result<std::vector<RehearsalProblem>> rehearse(const RehearsalRequest& request) override {
    EXPECT_EQ(request.source_conninfo.text, "host=a");
    EXPECT_EQ(request.destination_conninfo.text, "host=b");
    EXPECT_EQ(request.source_conninfo.within->text(), std::vector<std::string>{"10.0.0.0/8"});
    EXPECT_EQ(request.destination_conninfo.within, request.source_conninfo.within);
    EXPECT_EQ(request.tables, (std::vector<TableRef>{{"public", "orders"}}));
    std::vector<RehearsalProblem> problems;
    const nlohmann::json document = contract("rehearsal.example.json");
    for (const nlohmann::json& problem : document["problems"]) {
      problems.push_back({.outcome = problem["outcome"],
                          .part = problem["part"],
                          .table = problem["table"],
                          .name = problem["name"],
                          .message = problem["message"],
                          .sqlstate = problem["sqlstate"],
                          .statement = problem["statement"],
                          .cure = problem["cure"],
                          .cure_sql = problem["cure_sql"]});
    }
    return problems;
  }
  base::Result<std::vector<RuleProblem>> check_rules(const RulesCheckRequest& request) override {
    EXPECT_EQ(request.source_conninfo.text, "host=a");
    EXPECT_EQ(request.source_conninfo.within->text(), std::vector<std::string>{"10.0.0.0/8"});
    EXPECT_EQ(request.tables, (std::vector<TableRef>{{"public", "orders"}}));
    EXPECT_EQ(request.rules.at({"public", "orders"}).positive->front().name, "north_only");
    std::vector<RuleProblem> problems;
    const nlohmann::json document = contract("rules-check.example.json");
    for (const nlohmann::json& entry : document["problems"]) {
      RuleProblem& problem = problems.emplace_back();
      problem = {.schema = entry["schema"],
                 .table = entry["table"],
                 .code = entry["code"],
                 .message = entry["message"],
                 .place = {},
                 .is_certain = entry["certain"]};
      if (!entry["rule"].is_null()) problem.rule = entry["rule"].get<std::string>();
      if (!entry["step"].is_null()) problem.step = entry["step"].get<size_t>();
      if (!entry["line"].is_null()) {
        problem.place = RulePlace{.line = entry["line"], .column = entry["column"], .offset = entry["offset"]};
      }
    }
    return problems;
  }
  base::Result<RulesTrial> test_rules(const RulesTrialRequest& request) override {
    EXPECT_EQ(request.source_conninfo.text, "host=a");
    EXPECT_EQ(request.source_conninfo.within->text(), std::vector<std::string>{"10.0.0.0/8"});
    EXPECT_EQ(request.source_name, "orders");
    EXPECT_EQ(request.table, (TableRef{"public", "orders"}));
    EXPECT_EQ(request.rules.positive->front().name, "north_only");
    EXPECT_EQ(request.sample, 1U);
    const TriedChange& change = request.changes.at(0);
    EXPECT_EQ(change.operation, RuledOperation::update);
    EXPECT_EQ(change.old_row, (TriedRow{{"id", "7"}, {"region", std::nullopt}}));
    EXPECT_EQ(change.new_row, (TriedRow{{"id", "7"}, {"region", "north"}}));
    JudgedChange stops{.change = {.operation = RuledOperation::insert, .new_row = {{"id", "8"}, {"region", "south"}}},
                       .rules = {{.rule = "north_only", .outcome = "FAILED"}},
                       .verdict = "STOPS THE STREAM",
                       .error = base::fail(base::ErrorCode::rule_failed, "m").error(),
                       .origin = ChangeOrigin::table};
    JudgedChange of_stream{.change = {.operation = RuledOperation::update,
                                      .old_row = {{"id", "9"}},
                                      .new_row = {{"id", "9"}, {"region", "north"}},
                                      .tag = "from_warehouse",
                                      .commit_time = base::UnixMicros{1769'847'300'000'000}},
                           .rules = {{.rule = "north_only", .outcome = "TRUE", .before = "UNDECIDABLE"}},
                           .verdict = "STOPS THE STREAM",
                           .error = base::fail(base::ErrorCode::rule_undecidable, "m").error(),
                           .origin = ChangeOrigin::stream,
                           .old_not_sent = {"region", "note", "card"},
                           .new_not_sent = {"note"},
                           .hidden = {"card"}};
    EXPECT_EQ(request.recent.value().stream, "orders7f3a");
    EXPECT_EQ(request.recent->limit, 20U);
    EXPECT_EQ(request.recent->patience, std::chrono::milliseconds(5000));
    return RulesTrial{.problems = {},
                      .changes = {{.change = change,
                                   .rules = {{.rule = "north_only", .outcome = "TRUE", .before = "NULL"}},
                                   .verdict = "BECOMES INSERT"},
                                  of_stream,
                                  stops},
                      .recent_end = "TIME"};
  }
  base::Result<std::string> request_identity(const std::string& name) override { return "request for " + name; }
  base::Result<IdentityView> install_identity(const std::string& certificate, const std::string&) override {
    if (certificate == "bad") return base::fail(base::ErrorCode::identity_refused, "no certificate");
    return IdentityView{.name = "alpha", .fingerprint = "9f86", .not_after = {1}};
  }
  base::Result<void> copy_table(const StreamTarget& target, const TableRef& table) override {
    if (table.table == "none") return base::fail(base::ErrorCode::unknown_table, "none");
    return known(target);
  }
  base::Result<void> accept_table(const StreamTarget& target, const TableRef& table) override {
    if (table.table == "stopped") return base::fail(base::ErrorCode::resolution_refused, "copy it");
    return known(target);
  }
  base::Result<void> drop_error(const StreamTarget& target, int64_t error_id) override {
    if (error_id == 404) return base::fail(base::ErrorCode::unknown_error_transaction, "none");
    return known(target);
  }

 private:
  static base::Result<void> known(const StreamTarget& target) {
    const bool is_one = target.stream == "k3j2h1g4" && target.destination == "warehouse";
    if (is_one || (target.stream == "f4n0u7aa" && target.destination == "reports")) return {};
    const bool is_stream = target.stream == "k3j2h1g4" || target.stream == "f4n0u7aa";
    if (is_stream && target.destination.empty()) return {};
    if (is_stream) return base::fail(base::ErrorCode::unknown_destination, "none");
    return base::fail(base::ErrorCode::unknown_stream, "none");
  }
  // Keeps pointers into example_: it lives as long as the object and is never changed.
  telemetry::ComponentSample sample(const nlohmann::json& component) const {
    auto view = [](const nlohmann::json& text) {
      return text.is_null() ? std::string_view{} : std::string_view(text.get_ref<const std::string&>());
    };
    telemetry::ComponentSample out{.type = view(component["type"]),
                                   .name = view(component["name"]),
                                   .sub_component = view(component["sub_component"]),
                                   .server = component.value("server", 0),
                                   .state = view(component["state"]),
                                   .time_ns = {},
                                   .counters = {},
                                   .gauges = {},
                                   .destination = component.value("destination", "")};
    if (!component["time_ns"].is_null()) {
      out.time_ns.emplace();
      for (size_t i = 0; i < telemetry::kActivityCount; ++i)
        (*out.time_ns)[i] = component["time_ns"][std::string(kActivities[i])].get<uint64_t>();
    }
    for (const auto& [name, value] : component["counters"].items())
      out.counters.emplace_back(interned(name), value.get<uint64_t>());
    for (const auto& [name, value] : component["gauges"].items())
      out.gauges.emplace_back(interned(name), value.get<int64_t>());
    return out;
  }
  std::string_view interned(const std::string& name) const {
    std::lock_guard lock(mutex_);
    return *names_.insert(name).first;
  }

  const nlohmann::json example_ = contract("stats.example.json");
  const nlohmann::json fan_out_ = contract("stats.fanout.example.json");
  mutable std::mutex mutex_;
  mutable std::set<std::string> names_;
  uint64_t revision_ = 42;
};

}  // namespace thalweg::control
