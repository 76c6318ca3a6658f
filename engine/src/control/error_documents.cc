#include <optional>

#include "control/documents.h"

// The error queue's documents.

namespace thalweg::control {

namespace {

using nlohmann::json;
using telemetry::ShownColumn;
using telemetry::ShownValue;

const char* name_of(ShownValue::State state) {
  switch (state) {
    case ShownValue::State::absent:
      return "absent";
    case ShownValue::State::null:
      return "null";
    case ShownValue::State::unchanged:
      return "unchanged";
    case ShownValue::State::text:
      return "text";
    case ShownValue::State::raw:
      return "raw";
  }
  return "absent";
}

json value_document(const ShownValue& value) {
  return {{"state", name_of(value.state)},
          {"text", value.has_text() ? json(value.text) : json(nullptr)},
          {"bytes", value.bytes},
          {"cut", value.cut}};
}

// null: one of them is not known as the server writes it.
json differ(const ShownValue& value, const ShownValue& now) {
  const auto is_known = [](const ShownValue& shown) {
    return shown.state == ShownValue::State::null || shown.state == ShownValue::State::text;
  };
  if (!is_known(value) || !is_known(now)) return nullptr;
  return value.state != now.state || value.bytes != now.bytes || value.hash != now.hash || value.text != now.text;
}

// The number of a change; 0 is none.
json number_or_null(uint64_t number) { return number == 0 ? json(nullptr) : json(number); }

json entry_document(const telemetry::ParkedTransaction& parked) {
  return {{"id", parked.id},
          {"commit_lsn", base::to_string(parked.commit_lsn)},
          {"xid", parked.xid.value},
          {"lcrs", parked.lcrs},
          {"tables", parked.tables},
          {"code", parked.code},
          {"message", parked.message},
          {"sqlstate", parked.sqlstate},
          {"constraint", parked.constraint},
          {"constraint", parked.constraint},
          {"parked_at", parked.parked_at},
          {"edited", parked.edited},
          {"left_out", parked.left_out},
          {"failed_change", number_or_null(parked.failed_change)},
          {"edits_version", parked.edits_version}};
}

json cause_document(const telemetry::ParkedCause& cause) {
  return {{"id", cause.id},        {"code", cause.code},     {"sqlstate", cause.sqlstate},
          {"table", cause.table},  {"object", cause.object}, {"transactions", cause.transactions},
          {"oldest", cause.oldest}};
}

json execution_document(const ErrorExecutionStatus& execution) {
  json failures = json::array();
  for (const ExecutionFailure& failure : execution.failures) {
    failures.push_back({{"error_id", failure.error_id}, {"error", to_json(failure.error)}});
  }
  const telemetry::ParkedChoice& choice = execution.choice;
  return {{"error_id", choice.id ? json(*choice.id) : json(nullptr)},
          {"cause", choice.cause.empty() ? json(nullptr) : json(choice.cause)},
          {"role", choice.role.empty() ? json(nullptr) : json(choice.role)},
          {"state", name_of(execution.state)},
          {"executed", execution.executed},
          {"total", execution.total},
          {"failed_again", execution.failed},
          {"failures", std::move(failures)},
          {"left_out", execution.left_out},
          {"left_out_ids", execution.left_out_ids},
          {"started_at", rfc3339(execution.started_at)},
          {"finished_at", execution.finished_at ? json(rfc3339(*execution.finished_at)) : json(nullptr)},
          {"error", execution.error ? to_json(*execution.error) : json(nullptr)}};
}

json edit_document(const telemetry::ParkedEdit& edit) {
  json values = json::object();
  for (const auto& [column, value] : edit.values) values[column] = value ? json(*value) : json(nullptr);
  return {{"left_out", edit.left_out}, {"values", std::move(values)}, {"reason", edit.reason}};
}

json change_document(const telemetry::ShownChange& change) {
  json columns = json::array();
  for (const ShownColumn& column : change.columns) {
    columns.push_back({{"name", column.name},
                       {"identity", column.is_identity},
                       {"wanted", value_document(column.wanted)},
                       {"before", value_document(column.before)},
                       {"now", value_document(column.now)},
                       {"wanted_differs", differ(column.wanted, column.now)},
                       {"before_differs", differ(column.before, column.now)}});
  }
  return {{"number", change.number},
          {"operation", change.operation},
          {"schema", change.schema_name},
          {"table", change.table_name},
          {"columns", std::move(columns)},
          {"found_by", change.found_by},
          {"rows_found", change.rows_found ? json(*change.rows_found) : json(nullptr)},
          {"problem", change.problem.empty() ? json(nullptr) : json(change.problem)},
          {"edit", change.edit ? edit_document(*change.edit) : json(nullptr)}};
}

}  // namespace

json errors_document(const ParkedListView& list) {
  json causes = json::array();
  for (const telemetry::ParkedCause& cause : list.causes) causes.push_back(cause_document(cause));
  json errors = json::array();
  for (const telemetry::ParkedTransaction& parked : list.errors) errors.push_back(entry_document(parked));
  return {{"errors", std::move(errors)},
          {"total", list.total},
          {"roots", list.roots},
          {"causes", std::move(causes)},
          {"next_after", list.next_after ? json(*list.next_after) : json(nullptr)},
          {"execution", list.execution ? execution_document(*list.execution) : json(nullptr)}};
}

json dry_run_document(const DryRunView& tried) {
  return {{"succeeds", !tried.error},
          {"error", tried.error ? to_json(*tried.error) : json(nullptr)},
          {"changes", tried.changes},
          {"edited", tried.edited},
          {"left_out", tried.left_out},
          {"settled", tried.settled},
          {"failed_change", number_or_null(tried.failed_change)}};
}

json error_tree_document(const telemetry::ParkedTree& tree) {
  json dependants = json::array();
  for (const telemetry::ParkedDependant& dependant : tree.dependants) {
    json document = entry_document(dependant.transaction);
    document["parent"] = dependant.parent;
    document["behind"] = dependant.behind;
    document["behind_total"] = dependant.behind_total;
    dependants.push_back(std::move(document));
  }
  return {{"dependants", std::move(dependants)},
          {"total", tree.total},
          {"behind", tree.behind},
          {"behind_total", tree.behind_total},
          {"next_after", tree.next_after ? json(*tree.next_after) : json(nullptr)}};
}

json error_contents_document(const ParkedContentsView& opened) {
  json changes = json::array();
  for (const telemetry::ShownChange& change : opened.contents.changes) changes.push_back(change_document(change));
  return {{"error", entry_document(opened.error)},
          {"changes_total", opened.contents.changes_total},
          {"changes", std::move(changes)},
          {"next_after", opened.contents.next_after ? json(*opened.contents.next_after) : json(nullptr)}};
}

}  // namespace thalweg::control
