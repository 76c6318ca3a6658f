#include "control/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>
#include <utility>

#include "base/log.h"
#include "control/conflict_documents.h"
#include "control/documents.h"
#include "control/metrics.h"
#include "control/searches.h"
#include "control/strict_json.h"

namespace thalweg::control {
namespace {

using base::Error;
using base::ErrorCode;
using telemetry::ChangesPart;
using telemetry::kParkedChangesShownMax;
using telemetry::kParkedListMax;
using telemetry::ParkedChoice;
using telemetry::ParkedPart;
using telemetry::TreePart;

constexpr size_t kIdentityNameBytesMax = 63;  // a DNS label
constexpr size_t kNameBytesMax = 63;          // NAMEDATALEN - 1
constexpr size_t kMarkerIdBytesMax = 64;
constexpr size_t kMarkerLabelBytesMax = 400;
constexpr size_t kPemBytesMax = 64 * 1024;
constexpr size_t kStreamIdBytesMax = 32;
constexpr size_t kSearchIdBytesMax = 32;
constexpr size_t kDestinationIdBytesMax = 16;
constexpr size_t kHashBytesMax = 16;  // in hex
constexpr size_t kReasonBytesMax = 4000;
constexpr auto kNumbersEnd = uint64_t{1} << 62;  // of changes: they fit PostgreSQL's bigint

int http_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_request:
      return 400;
    case ErrorCode::unauthorized:
      return 401;
    case ErrorCode::unknown_destination:
    case ErrorCode::unknown_stream:
    case ErrorCode::unknown_table:
    case ErrorCode::unknown_error_transaction:
    case ErrorCode::unknown_search:
    case ErrorCode::not_found:
      return 404;
    case ErrorCode::request_too_large:
      return 413;
    case ErrorCode::database_unreachable:
    case ErrorCode::connection_lost:
    case ErrorCode::database_busy:
    case ErrorCode::authentication_failed:
    case ErrorCode::engine_stopping:
    case ErrorCode::search_busy:
    case ErrorCode::disk_full:
    case ErrorCode::file_error:
    case ErrorCode::state_directory_failed:
      return 503;
    default:
      return 409;
  }
}

ApiAnswer document_answer(const nlohmann::json& document) { return {.body = to_text(document)}; }

// 202 with an empty object, or 204 without a body.
ApiAnswer done_answer(const base::Result<void>& result, int status) {
  if (!result) return failure_answer(result.error());
  return {.status = status, .body = status == 204 ? "" : "{}"};
}

ApiAnswer no_such_path(const ApiRequest& request) {
  return failure_answer(ErrorCode::not_found, fmt::format("There is no {} {}", request.method, request.path));
}

bool parse_number(std::string_view text, auto& number) {
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc{} && end == text.data() + text.size();
}

// {"reason": "...", "left_out": true}, or {"reason": "...", "values": {"column": "text form" or null}}.
base::Result<telemetry::ParkedEdit> parse_edit(std::string_view body) {
  THALWEG_ASSIGN(const nlohmann::json document, parse_strict(body));
  ObjectReader reader(document, "");
  telemetry::ParkedEdit edit;
  edit.reason = reader.string("reason", 1, kReasonBytesMax);
  edit.left_out = reader.boolean("left_out", false);
  const nlohmann::json* const values = reader.member("values", !edit.left_out);
  if (values != nullptr && (edit.left_out || !values->is_object() || values->empty())) {
    reader.refuse("values", "must be an object of columns, of a change that is not left out");
  }
  THALWEG_TRY(reader.finish());
  if (values == nullptr) return edit;
  ObjectReader columns(*values, "/values");
  for (const auto& [column, value] : values->items()) {
    if (value.is_null()) {
      columns.member(column, true);
      edit.values[column] = std::nullopt;
    } else {
      edit.values[column] = columns.string(column, 0, body.size());
    }
  }
  THALWEG_TRY(columns.finish());
  return edit;
}

base::Result<int64_t> parse_error_id(std::string_view text) {
  int64_t id = 0;
  if (!parse_number(text, id)) {
    return base::fail(ErrorCode::invalid_request, "The error's id is not a number that fits");
  }
  return id;
}

// Whether a text is a hash as the queue's list has it for causes, and versions of edits.
bool is_hash(std::string_view text) {
  return !text.empty() && text.size() <= kHashBytesMax &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'f') || (c >= '0' && c <= '9'); });
}

constexpr std::string_view kAsSuffix = "-as";
constexpr size_t kRoleBytesMax = 256;

// `verb`, or as another role. That has a path of its own, because older engines do not read the body.
bool is_done_by(std::string_view path, std::string_view verb) {
  return path.starts_with(verb) && (path.size() == verb.size() || path.substr(verb.size()) == kAsSuffix);
}

// The role that the body names; empty where the path asks for none.
base::Result<std::string> read_role(const ApiRequest& request, std::string_view path) {
  if (!path.ends_with(kAsSuffix)) return std::string{};
  THALWEG_ASSIGN(const nlohmann::json body, parse_strict(request.body));
  ObjectReader reader(body, "");
  std::string role = reader.string("role", 1, kRoleBytesMax);
  THALWEG_TRY(reader.finish());
  return role;
}

struct QueryParameter {
  std::string_view name;
  std::string_view value;
};

// Takes the first one off a query that is not empty.
QueryParameter take_parameter(std::string_view& query) {
  const size_t end = std::min(query.find('&'), query.size());
  const std::string_view pair = query.substr(0, end);
  query.remove_prefix(std::min(end + 1, query.size()));
  const std::string_view name = pair.substr(0, pair.find('='));
  return {.name = name, .value = pair.substr(std::min(name.size() + 1, pair.size()))};
}

// "after=17&limit=100&roots=1&cause=5f3a", each of them or none.
base::Result<ParkedPart> parse_part(std::string_view query) {
  ParkedPart part;
  while (!query.empty()) {
    const auto [name, value] = take_parameter(query);
    if (name == "after" && parse_number(value, part.after)) continue;
    if (name == "limit" && parse_number(value, part.limit) && part.limit > 0 && part.limit <= kParkedListMax) continue;
    if (name == "roots" && value == "1") {
      part.roots_only = true;
      continue;
    }
    if (name == "cause" && is_hash(value)) {
      part.cause = value;
      continue;
    }
    return base::fail(
        ErrorCode::invalid_request,
        fmt::format("The parameters are after (an id), limit (1 to {}), roots=1 and cause", kParkedListMax));
  }
  return part;
}

// "after=100&limit=50&whole=1", each of them or none.
base::Result<ChangesPart> parse_changes_part(std::string_view query) {
  ChangesPart part;
  while (!query.empty()) {
    const auto [name, value] = take_parameter(query);
    if (name == "after" && parse_number(value, part.after) && part.after < kNumbersEnd) continue;
    if (name == "limit" && parse_number(value, part.limit) && part.limit > 0 && part.limit <= kParkedChangesShownMax)
      continue;
    if (name == "whole" && value == "1") {
      part.whole = true;
      continue;
    }
    return base::fail(ErrorCode::invalid_request,
                      fmt::format("The parameters are after (a change's number), limit (1 to {}) and whole=1",
                                  kParkedChangesShownMax));
  }
  return part;
}

// "after=23&limit=50", each of them or none.
base::Result<TreePart> parse_tree_part(std::string_view query) {
  TreePart part;
  while (!query.empty()) {
    const auto [name, value] = take_parameter(query);
    if (name == "after" && parse_number(value, part.after)) continue;
    if (name == "limit" && parse_number(value, part.limit) && part.limit > 0 && part.limit <= kParkedListMax) continue;
    return base::fail(ErrorCode::invalid_request,
                      fmt::format("The parameters are after (an LSN as a number) and limit (1 to {})", kParkedListMax));
  }
  return part;
}

// "version=5f3a", or none: then empty.
base::Result<std::string> parse_version(std::string_view query) {
  if (query.empty()) return std::string{};
  const auto [name, value] = take_parameter(query);
  if (name == "version" && is_hash(value) && query.empty()) return std::string(value);
  return base::fail(ErrorCode::invalid_request, "The parameter is version, as the queue shows it");
}

bool is_id(std::string_view text, size_t bytes_max) {
  return !text.empty() && text.size() <= bytes_max &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

// Takes the part before the next '/' off a path, which then begins with that '/' or is empty.
std::string_view take_part(std::string_view& path) {
  const size_t end = std::min(path.find('/'), path.size());
  const std::string_view part = path.substr(0, end);
  path.remove_prefix(end);
  return part;
}

}  // namespace

ApiAnswer failure_answer(const Error& error) {
  return {.status = http_status(error.code), .body = to_text(failure_document(error))};
}

ApiAnswer failure_answer(ErrorCode code, std::string message) {
  return failure_answer(base::fail(code, std::move(message)).error());
}

size_t body_bytes_max(std::string_view path) {
  const bool names_tables = path == "/v1/desired" || path == "/v1/rehearsal" || path.starts_with("/v1/rules/");
  return names_tables ? kDesiredBytesMax : 4 * kPemBytesMax;
}

ApiAnswer Api::answer(const ApiRequest& request) {
  std::string what = "unknown";
  try {
    return dispatch(request);
  } catch (const std::exception& exception) {
    what = exception.what();
  } catch (...) {
  }
  base::log_event(base::LogLevel::error, "request_failed",
                  {{"method", request.method}, {"path", request.path}, {"what", what}});
  return failure_answer(ErrorCode::engine_stopping, "The engine could not answer: " + what);
}

ApiAnswer Api::dispatch(const ApiRequest& request) {
  constexpr std::string_view kStreams = "/v1/streams/";
  if (request.path.starts_with(kStreams)) {
    return dispatch_stream(request, std::string_view(request.path).substr(kStreams.size()));
  }
  const auto is = [&](std::string_view method, std::string_view path) {
    return request.method == method && request.path == path;
  };
  if (is("GET", "/healthz")) return document_answer({{"status", "ok"}});
  if (is("GET", "/metrics")) {
    return {.body = metrics_text(streams_.engine(), streams_.status(), streams_.stats()),
            .type = "text/plain; version=0.0.4"};
  }
  if (is("PUT", "/v1/desired")) return put_desired(request);
  if (is("GET", "/v1/desired")) return document_answer({{"revision", streams_.engine().desired_revision}});
  if (is("GET", "/v1/status")) return document_answer(status_document(streams_.engine(), streams_.status()));
  if (is("GET", "/v1/stats")) return document_answer(stats_document(streams_.stats()));
  if (is("GET", "/v1/stats/history")) return history(request);
  if (is("POST", "/v1/rehearsal")) return rehearse(request);
  if (is("POST", "/v1/rules/check")) return check_rules(request);
  if (is("POST", "/v1/rules/test")) return test_rules(request);
  if (is("POST", "/v1/identity/request")) return request_identity(request);
  if (is("PUT", "/v1/identity")) return install_identity(request);
  return no_such_path(request);
}

// `path`: behind /v1/streams/.
ApiAnswer Api::dispatch_stream(const ApiRequest& request, std::string_view path) {
  StreamTarget target;
  target.stream = take_part(path);
  if (!is_id(target.stream, kStreamIdBytesMax)) return no_such_path(request);
  if (path == "/transactions" && request.method == "GET") {
    auto samples = streams_.transactions(target.stream);
    if (!samples) return failure_answer(samples.error());
    return document_answer(transactions_document(*samples, std::chrono::steady_clock::now()));
  }
  if (path == "/markers" && request.method == "POST") return place_marker(request, target.stream);
  if (path == "/markers" && request.method == "GET") {
    auto trail = streams_.markers(target.stream);
    return trail ? document_answer(markers_document(*trail)) : failure_answer(trail.error());
  }
  if (path == "/retry" && request.method == "POST") return done_answer(streams_.retry(target), 202);
  constexpr std::string_view kSearches = "/searches";
  if (path.starts_with(kSearches)) return dispatch_searches(request, target.stream, path.substr(kSearches.size()));
  constexpr std::string_view kDestinations = "/destinations/";
  if (!path.starts_with(kDestinations)) return no_such_path(request);
  path.remove_prefix(kDestinations.size());
  target.destination = take_part(path);
  if (!is_id(target.destination, kDestinationIdBytesMax)) return no_such_path(request);
  return dispatch_destination(request, target, path);
}

// `path`: behind /searches.
ApiAnswer Api::dispatch_searches(const ApiRequest& request, const std::string& stream, std::string_view path) {
  if (path.empty() && request.method == "GET") {
    const auto list = streams_.searches(stream);
    return list ? document_answer(searches_document(*list)) : failure_answer(list.error());
  }
  if (path.empty() && request.method == "POST") {
    auto wanted = parse_search(request.body);
    if (!wanted) return failure_answer(wanted.error());
    const auto begun = streams_.begin_search(stream, std::move(*wanted));
    if (!begun) return failure_answer(begun.error());
    return {.status = 202, .body = to_text(search_status_document(*begun))};
  }
  if (!path.starts_with('/')) return no_such_path(request);
  const std::string id(path.substr(1));
  if (!is_id(id, kSearchIdBytesMax)) return no_such_path(request);
  if (request.method == "DELETE") return done_answer(streams_.end_search(stream, id), 204);
  if (request.method != "GET") return no_such_path(request);
  const auto query = parse_search_query(request.query);
  if (!query) return failure_answer(query.error());
  const auto found = streams_.search(stream, id, query->part);
  return found ? document_answer(search_document(*found, query->is_whole)) : failure_answer(found.error());
}

// `path`: behind the destination's id.
ApiAnswer Api::dispatch_destination(const ApiRequest& request, const StreamTarget& target, std::string_view path) {
  if (path == "/retry" && request.method == "POST") return done_answer(streams_.retry(target), 202);
  if (path == "/tables/copy" && request.method == "POST") return resolve(request, target, &ManagedStreams::copy_table);
  if (path == "/tables/accept" && request.method == "POST")
    return resolve(request, target, &ManagedStreams::accept_table);
  constexpr std::string_view kConflicts = "/conflicts";
  if (path.starts_with(kConflicts)) return dispatch_conflicts(request, target, path.substr(kConflicts.size()));
  constexpr std::string_view kErrors = "/errors";
  if (!path.starts_with(kErrors)) return no_such_path(request);
  return dispatch_errors(request, target, path.substr(kErrors.size()));
}

// `path`: behind /conflicts.
ApiAnswer Api::dispatch_conflicts(const ApiRequest& request, const StreamTarget& target, std::string_view path) {
  if (path.empty() && request.method == "GET") {
    const auto counts = streams_.conflict_counts(target);
    return counts ? document_answer(conflict_counts_document(*counts)) : failure_answer(counts.error());
  }
  if (path != "/search" || request.method != "POST") return no_such_path(request);
  const auto part = parse_conflict_part(request.body);
  if (!part) return failure_answer(part.error());
  const auto conflicts = streams_.conflicts(target, *part);
  return conflicts ? document_answer(conflicts_document(*conflicts)) : failure_answer(conflicts.error());
}

// `path`: behind /errors.
ApiAnswer Api::dispatch_errors(const ApiRequest& request, const StreamTarget& target, std::string_view path) {
  if (path.empty() && request.method == "GET") {
    const auto part = parse_part(request.query);
    if (!part) return failure_answer(part.error());
    auto errors = streams_.errors(target, *part);
    return errors ? document_answer(errors_document(*errors)) : failure_answer(errors.error());
  }
  const auto execute = [&](const ParkedChoice& choice) -> ApiAnswer {
    const auto state = streams_.execute_error(target, choice);
    if (!state) return failure_answer(state.error());
    return {.status = 202, .body = to_text({{"state", name_of(*state)}})};
  };
  if (request.method == "POST" && is_done_by(path, "/execute")) {
    auto role = read_role(request, path);
    return role ? execute({.role = std::move(*role)}) : failure_answer(role.error());
  }
  constexpr std::string_view kCauses = "/causes/";
  if (path.starts_with(kCauses)) {
    path.remove_prefix(kCauses.size());
    const std::string_view cause = take_part(path);
    if (!is_done_by(path, "/execute") || request.method != "POST" || !is_hash(cause)) return no_such_path(request);
    auto role = read_role(request, path);
    return role ? execute({.cause = std::string(cause), .role = std::move(*role)}) : failure_answer(role.error());
  }
  if (!path.starts_with('/')) return no_such_path(request);
  path.remove_prefix(1);
  const std::string_view number = take_part(path);
  const bool executes = is_done_by(path, "/execute") && request.method == "POST";
  const bool tries = is_done_by(path, "/dry-run") && request.method == "POST";
  const bool shows = path.empty() && request.method == "GET";
  const bool grows = path == "/dependants" && request.method == "GET";
  constexpr std::string_view kChanges = "/changes/";
  if (path.starts_with(kChanges)) {
    const auto changed = parse_error_id(number);
    if (!changed) return failure_answer(changed.error());
    return dispatch_change(request, target, *changed, path.substr(kChanges.size()));
  }
  if (!executes && !tries && !shows && !grows && !(path.empty() && request.method == "DELETE"))
    return no_such_path(request);
  auto id = parse_error_id(number);
  if (!id) return failure_answer(id.error());
  if (grows) {
    const auto part = parse_tree_part(request.query);
    if (!part) return failure_answer(part.error());
    const auto tree = streams_.error_tree(target, *id, *part);
    return tree ? document_answer(error_tree_document(*tree)) : failure_answer(tree.error());
  }
  if (shows) {
    const auto part = parse_changes_part(request.query);
    if (!part) return failure_answer(part.error());
    auto contents = streams_.error_contents(target, *id, *part);
    return contents ? document_answer(error_contents_document(*contents)) : failure_answer(contents.error());
  }
  if (!tries && !executes) return done_answer(streams_.drop_error(target, *id), 204);
  auto role = read_role(request, path);
  if (!role) return failure_answer(role.error());
  if (executes) return execute({.id = *id, .role = std::move(*role)});
  auto tried = streams_.dry_run_error(target, *id, *role);
  return tried ? document_answer(dry_run_document(*tried)) : failure_answer(tried.error());
}

// One change of a parked transaction, by its number.
ApiAnswer Api::dispatch_change(const ApiRequest& request, const StreamTarget& target, int64_t error_id,
                               std::string_view number) {
  uint64_t change = 0;
  if (!parse_number(number, change) || change >= kNumbersEnd) return no_such_path(request);
  if (request.method == "GET") {
    auto contents = streams_.error_contents(target, error_id, {.only = change});
    return contents ? document_answer(error_contents_document(*contents)) : failure_answer(contents.error());
  }
  const bool restores = request.method == "DELETE";
  if (!restores && request.method != "PUT") return no_such_path(request);
  const auto version = parse_version(request.query);
  if (!version) return failure_answer(version.error());
  if (restores) return done_answer(streams_.edit_error(target, error_id, change, std::nullopt, *version), 204);
  auto edit = parse_edit(request.body);
  if (!edit) return failure_answer(edit.error());
  return done_answer(streams_.edit_error(target, error_id, change, *edit, *version), 204);
}

ApiAnswer Api::put_desired(const ApiRequest& request) {
  auto desired = parse_desired(request.body);
  if (!desired) return failure_answer(desired.error());
  const uint64_t revision = desired->revision;
  if (auto stored = streams_.put_desired(std::move(*desired)); !stored) return failure_answer(stored.error());
  return document_answer({{"revision", revision}});
}

ApiAnswer Api::request_identity(const ApiRequest& request) {
  auto body = parse_strict(request.body);
  if (!body) return failure_answer(body.error());
  ObjectReader reader(*body, "");
  const std::string name = reader.string("name", 1, kIdentityNameBytesMax);
  if (auto read = reader.finish(); !read) return failure_answer(read.error());
  auto csr = streams_.request_identity(name);
  return csr ? document_answer({{"csr", *csr}}) : failure_answer(csr.error());
}

ApiAnswer Api::install_identity(const ApiRequest& request) {
  auto body = parse_strict(request.body);
  if (!body) return failure_answer(body.error());
  ObjectReader reader(*body, "");
  const std::string certificate = reader.string("certificate", 1, kPemBytesMax);
  const std::string ca = reader.string("ca", 1, kPemBytesMax);
  if (auto read = reader.finish(); !read) return failure_answer(read.error());
  auto identity = streams_.install_identity(certificate, ca);
  return identity ? document_answer(identity_document(*identity)) : failure_answer(identity.error());
}

ApiAnswer Api::history(const ApiRequest& request) {
  constexpr std::string_view kSince = "since=";
  int64_t since = std::numeric_limits<int64_t>::min();
  if (!request.query.empty()) {
    const std::string_view query = request.query;
    const char* const last = query.data() + query.size();
    const char* const first = query.data() + std::min(kSince.size(), query.size());
    auto [end, problem] = std::from_chars(first, last, since);
    if (!query.starts_with(kSince) || problem != std::errc{} || end != last) {
      return failure_answer(ErrorCode::invalid_request,
                            "The only parameter is since, in whole microseconds since 1970");
    }
  }
  return {.body = stats_history_.answer({since})};
}

ApiAnswer Api::rehearse(const ApiRequest& request) {
  auto body = parse_rehearsal(request.body);
  if (!body) return failure_answer(body.error());
  auto problems = streams_.rehearse(*body);
  return problems ? document_answer(rehearsal_document(*problems)) : failure_answer(problems.error());
}

ApiAnswer Api::check_rules(const ApiRequest& request) {
  auto body = parse_rules_check(request.body);
  if (!body) return failure_answer(body.error());
  auto problems = streams_.check_rules(*body);
  return problems ? document_answer(rules_check_document(*problems)) : failure_answer(problems.error());
}

ApiAnswer Api::test_rules(const ApiRequest& request) {
  auto body = parse_rules_trial(request.body);
  if (!body) return failure_answer(body.error());
  auto trial = streams_.test_rules(*body);
  return trial ? document_answer(rules_trial_document(*trial)) : failure_answer(trial.error());
}

ApiAnswer Api::resolve(const ApiRequest& request, const StreamTarget& target, Resolution resolution) {
  auto body = parse_strict(request.body);
  if (!body) return failure_answer(body.error());
  ObjectReader reader(*body, "");
  const TableRef table{.schema = reader.string("schema", 1, kNameBytesMax),
                       .table = reader.string("table", 1, kNameBytesMax)};
  if (auto read = reader.finish(); !read) return failure_answer(read.error());
  return done_answer((streams_.*resolution)(target, table), 202);
}

ApiAnswer Api::place_marker(const ApiRequest& request, const std::string& stream) {
  auto body = parse_strict(request.body);
  if (!body) return failure_answer(body.error());
  ObjectReader reader(*body, "");
  const std::string id = reader.string("id", 1, kMarkerIdBytesMax);
  const std::string label = reader.string("label", 0, kMarkerLabelBytesMax);
  if (auto read = reader.finish(); !read) return failure_answer(read.error());
  return done_answer(streams_.place_marker(stream, id, label), 202);
}

}  // namespace thalweg::control
