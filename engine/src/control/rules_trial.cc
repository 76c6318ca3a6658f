#include "control/rules_trial.h"

#include <fmt/format.h>

#include <memory>
#include <set>
#include <utility>

#include "base/plain_text.h"
#include "control/desired_parts.h"
#include "control/documents.h"
#include "control/strict_json.h"

namespace thalweg::control {
namespace {

using nlohmann::json;

constexpr size_t kSampleMax = 100;
constexpr size_t kChangesMax = 100;
constexpr size_t kRecentMax = 100;
constexpr size_t kRecentWaitMaxMs = 5000;
constexpr size_t kNameBytesMax = 63;
constexpr size_t kSourceNameBytesMax = 1000;  // as a name in the desired document
constexpr size_t kShownBytesMax = 200;        // of a value

base::Result<TriedRow> read_row(ObjectReader& reader, std::string_view member, bool required) {
  TriedRow row;
  const json* const value = reader.member(member, required);
  if (!value) return row;
  if (!value->is_object()) return std::unexpected(invalid_at(reader.pointer(member), "must be an object"));
  for (const auto& [column, field] : value->items()) {
    if (field.is_structured()) {
      return std::unexpected(invalid_at(reader.pointer(member),
                                        "must have strings as PostgreSQL writes values, numbers, booleans or null"));
    }
    row[column] =
        field.is_null() ? std::nullopt : std::optional(field.is_string() ? field.get<std::string>() : field.dump());
  }
  return row;
}

base::Result<TriedChange> read_change(const json& value, const std::string& pointer) {
  ObjectReader reader(value, pointer);
  TriedChange change;
  const std::string operation = reader.string("operation", 1, kNameBytesMax);
  if (const auto known = operation_named(operation)) {
    change.operation = *known;
  } else {
    reader.refuse("operation", "must be INSERT, UPDATE, DELETE or TRUNCATE");
  }
  const bool has_old = change.operation == RuledOperation::update || change.operation == RuledOperation::remove;
  const bool has_new = change.operation == RuledOperation::insert || change.operation == RuledOperation::update;
  if (has_old) {
    THALWEG_ASSIGN(change.old_row, read_row(reader, "old", true));
  }
  if (has_new) {
    THALWEG_ASSIGN(change.new_row, read_row(reader, "new", true));
  }
  if (reader.member("tag", false)) change.tag = reader.string("tag", 0, kSourceNameBytesMax);
  if (reader.member("commit_micros", false)) {
    change.commit_time = {static_cast<int64_t>(reader.unsigned_integer("commit_micros"))};
  }
  THALWEG_TRY(reader.finish());
  return change;
}

base::Result<std::vector<TriedChange>> read_changes(ObjectReader& reader) {
  std::vector<TriedChange> changes;
  const json* const list = reader.member("changes", false);
  if (!list) return changes;
  const std::string pointer = reader.pointer("changes");
  if (!list->is_array() || list->size() > kChangesMax) {
    return std::unexpected(invalid_at(pointer, fmt::format("must be an array of at most {} changes", kChangesMax)));
  }
  for (size_t i = 0; i < list->size(); ++i) {
    THALWEG_ASSIGN(TriedChange change, read_change((*list)[i], fmt::format("{}/{}", pointer, i)));
    changes.push_back(std::move(change));
  }
  return changes;
}

base::Result<std::optional<RecentChanges>> read_recent(ObjectReader& reader) {
  const json* const value = reader.member("recent", false);
  if (!value) return std::nullopt;
  ObjectReader of_stream(*value, reader.pointer("recent"));
  RecentChanges recent{.stream = of_stream.string("stream", 1, kNameBytesMax),
                       .limit = of_stream.unsigned_integer("limit")};
  const uint64_t wait_ms = of_stream.unsigned_integer("wait_ms");
  if (recent.limit == 0 || recent.limit > kRecentMax) {
    of_stream.refuse("limit", fmt::format("must be 1 to {}", kRecentMax));
  }
  if (wait_ms > kRecentWaitMaxMs) of_stream.refuse("wait_ms", fmt::format("must be at most {}", kRecentWaitMaxMs));
  THALWEG_TRY(of_stream.finish());
  recent.patience = std::chrono::milliseconds(wait_ms);
  return recent;
}

// The beginning of a value, up to a character's end.
std::string beginning(const std::string& value) {
  if (value.size() <= kShownBytesMax) return value;
  return std::string(base::cut_at_character(value, kShownBytesMax)) + "…";
}

json row_json(const TriedRow& row) {
  json out = json::object();
  for (const auto& [column, value] : row) out[column] = value ? json(beginning(*value)) : json(nullptr);
  return out;
}

json to_json(const RuleOutcome& outcome) {
  return {{"set", outcome.is_positive ? "positive" : "negative"},
          {"rule", outcome.rule},
          {"outcome", outcome.outcome},
          {"before", outcome.before ? json(*outcome.before) : json(nullptr)}};
}

json to_json(const JudgedChange& judged) {
  const TriedChange& change = judged.change;
  json rules = json::array();
  for (const RuleOutcome& outcome : judged.rules) rules.push_back(to_json(outcome));
  json error = nullptr;
  if (judged.error) {
    error = {{"code", base::name_of(judged.error->code)},
             {"message", judged.error->message},
             {"sqlstate", judged.error->sqlstate}};
  }
  return {{"operation", name_of(change.operation)},
          {"old", change.old_row.empty() ? json(nullptr) : row_json(change.old_row)},
          {"new", change.new_row.empty() ? json(nullptr) : row_json(change.new_row)},
          {"tag", change.tag ? json(*change.tag) : json(nullptr)},
          {"commit_time", change.commit_time ? json(rfc3339(*change.commit_time)) : json(nullptr)},
          {"rules", std::move(rules)},
          {"verdict", judged.verdict},
          {"error", std::move(error)},
          {"origin", name_of(judged.origin)},
          {"old_not_sent", judged.old_not_sent},
          {"new_not_sent", judged.new_not_sent},
          {"hidden", judged.hidden}};
}

}  // namespace

base::Result<RulesTrialRequest> parse_rules_trial(std::string_view text) {
  THALWEG_ASSIGN(const json body, parse_strict(text));
  ObjectReader reader(body, "");
  RulesTrialRequest request;
  THALWEG_ASSIGN(request.source_conninfo.text, read_conninfo(reader, "source"));
  THALWEG_ASSIGN(base::Networks networks, read_networks(reader));
  request.source_conninfo.within = std::make_shared<const base::Networks>(std::move(networks));
  request.source_conninfo.side = base::ErrorSide::source;
  request.source_name = reader.string("source_name", 1, kSourceNameBytesMax);
  std::vector<TableRef> tables;
  std::set<TableRef> inserts_only;
  TableRules rules;
  THALWEG_TRY(read_tables(reader, tables, inserts_only, {.rules = &rules}));
  request.sample = reader.unsigned_integer("sample");
  if (request.sample > kSampleMax) reader.refuse("sample", fmt::format("must be at most {}", kSampleMax));
  if (tables.size() != 1 || rules.size() != 1) reader.refuse("tables", "must be one table, with rules");
  THALWEG_ASSIGN(request.changes, read_changes(reader));
  THALWEG_ASSIGN(request.recent, read_recent(reader));
  THALWEG_TRY(reader.finish());
  request.table = rules.begin()->first;
  request.rules = std::move(rules.begin()->second);
  return request;
}

json rules_trial_document(const RulesTrial& trial) {
  json changes = json::array();
  for (const JudgedChange& judged : trial.changes) changes.push_back(to_json(judged));
  json out = rules_check_document(trial.problems);
  out["changes"] = std::move(changes);
  out["recent_end"] = trial.recent_end ? json(*trial.recent_end) : json(nullptr);
  return out;
}

}  // namespace thalweg::control
