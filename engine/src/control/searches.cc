#include "control/searches.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/plain_text.h"
#include "control/documents.h"
#include "control/strict_json.h"

namespace thalweg::control {
namespace {

using nlohmann::json;
using telemetry::FoundChange;
using telemetry::FoundValue;
using telemetry::SearchRequest;

constexpr uint64_t kLimitMax = 10'000;
constexpr size_t kNameBytesMax = 63;
constexpr size_t kKeyColumnsMax = 32;  // INDEX_MAX_KEYS
constexpr size_t kKeyBytesMax = 8192;  // of a value: no index has a larger one
constexpr size_t kShownBytesMax = 1024;
constexpr size_t kPageBytesMax = size_t{8} << 20;

bool read_digits(std::string_view text, int64_t& number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc{} && end == text.data() + text.size() && text.front() != '-';
}

// "2026-11-30T10:00:00.25Z", or "+00:00" instead of the "Z".
std::optional<base::UnixMicros> parse_time(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00";
  for (const std::string_view zone : {"Z", "+00:00"}) {
    if (!text.ends_with(zone)) continue;
    text.remove_suffix(zone.size());
    if (text.size() < kForm.size()) return std::nullopt;
    for (size_t i = 0; i < kForm.size(); ++i) {
      if (kForm[i] != '0' && text[i] != kForm[i]) return std::nullopt;
    }
    std::array<int64_t, 6> parts{};
    constexpr std::array<std::pair<size_t, size_t>, 6> kPlaces{{{0, 4}, {5, 2}, {8, 2}, {11, 2}, {14, 2}, {17, 2}}};
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!read_digits(text.substr(kPlaces[i].first, kPlaces[i].second), parts[i])) return std::nullopt;
    }
    int64_t micros = 0;
    std::string fraction(text.substr(kForm.size()));
    if (!fraction.empty()) {
      if (fraction.size() < 2 || fraction.size() > 10 || fraction.front() != '.') return std::nullopt;
      fraction.resize(7, '0');
      if (!read_digits(std::string_view(fraction).substr(1), micros)) return std::nullopt;
    }
    const std::chrono::year_month_day day{std::chrono::year(static_cast<int>(parts[0])),
                                          std::chrono::month(static_cast<unsigned>(parts[1])),
                                          std::chrono::day(static_cast<unsigned>(parts[2]))};
    if (!day.ok() || parts[3] > 23 || parts[4] > 59 || parts[5] > 60) return std::nullopt;
    const auto time = std::chrono::sys_days(day) + std::chrono::hours(parts[3]) + std::chrono::minutes(parts[4]) +
                      std::chrono::seconds(parts[5]) + std::chrono::microseconds(micros);
    return base::UnixMicros{std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count()};
  }
  return std::nullopt;
}

// Null is as if it was not there.
bool has(ObjectReader& reader, std::string_view member) {
  const json* const value = reader.member(member, false);
  return value != nullptr && !value->is_null();
}

void read_position(ObjectReader& reader, std::string_view member, std::optional<base::Lsn>& out) {
  if (!has(reader, member)) return;
  out = base::parse_lsn(reader.string(member, 1, kNameBytesMax));
  if (!out) reader.refuse(member, "must be a position, such as 16/B374D848");
}

void read_time(ObjectReader& reader, std::string_view member, std::optional<base::UnixMicros>& out) {
  if (!has(reader, member)) return;
  out = parse_time(reader.string(member, 1, kNameBytesMax));
  if (!out) reader.refuse(member, "must be a time in UTC, such as 2026-11-30T10:00:00Z");
}

base::Result<void> read_table(ObjectReader& reader, SearchRequest& out) {
  if (!has(reader, "table")) return {};
  ObjectReader table(*reader.member("table", false), reader.pointer("table"));
  const std::string schema = table.string("schema", 1, kNameBytesMax);
  out.table = std::pair(schema, table.string("table", 1, kNameBytesMax));
  return table.finish();
}

base::Result<void> read_key(ObjectReader& reader, SearchRequest& out) {
  if (!has(reader, "key")) return {};
  const json& key = *reader.member("key", false);
  const std::string pointer = reader.pointer("key");
  if (!out.table) return std::unexpected(invalid_at(pointer, "needs a table"));
  if (!key.is_object() || key.empty() || key.size() > kKeyColumnsMax) {
    return std::unexpected(invalid_at(pointer, fmt::format("must be an object of 1 to {} columns", kKeyColumnsMax)));
  }
  ObjectReader columns(key, pointer);
  for (const auto& [column, value] : key.items()) {
    if (value.is_null()) {
      columns.member(column, true);
      out.key[column] = std::nullopt;
    } else {
      out.key[column] = columns.string(column, 0, kKeyBytesMax);
    }
  }
  return columns.finish();
}

json value_json(const std::optional<FoundValue>& value, size_t bytes_max) {
  if (!value) return nullptr;
  if (!value->text) return {{"text", nullptr}, {"cut", false}, {"masked", value->is_masked}};
  const std::string_view shown = base::cut_at_character(*value->text, bytes_max);
  return {{"text", shown}, {"cut", value->is_cut || shown.size() < value->text->size()}, {"masked", false}};
}

size_t shown_bytes(const FoundChange& change, size_t bytes_max) {
  size_t bytes = 0;
  for (const telemetry::FoundColumn& column : change.columns) {
    for (const auto* value : {&column.before, &column.after}) {
      if (*value && (*value)->text) bytes += std::min((*value)->text->size(), bytes_max);
    }
  }
  return bytes;
}

json change_json(const FoundChange& change, size_t bytes_max) {
  json columns = json::array();
  for (const telemetry::FoundColumn& column : change.columns) {
    columns.push_back({{"name", column.name},
                       {"type", column.type},
                       {"key", column.is_key},
                       {"before", value_json(column.before, bytes_max)},
                       {"after", value_json(column.after, bytes_max)}});
  }
  return {{"number", change.number},
          {"xid", change.xid.value},
          {"commit_lsn", base::to_string(change.commit_lsn)},
          {"commit_time", rfc3339(change.commit_time)},
          {"lsn", base::to_string(change.lsn)},
          {"origin", change.origin ? json(*change.origin) : json(nullptr)},
          {"schema", change.schema},
          {"table", change.table},
          {"operation", name_of(change.operation)},
          {"before_is", name_of(change.before_is)},
          {"columns", std::move(columns)}};
}

json error_json(const base::Error& error) {
  json out = to_json(error);
  out["lsn"] = error.lsn ? json(base::to_string(error.lsn)) : json(nullptr);
  out["xid"] = error.xid ? json(error.xid.value) : json(nullptr);
  return out;
}

}  // namespace

base::Result<SearchRequest> parse_search(std::string_view text) {
  THALWEG_ASSIGN(const json body, parse_strict(text));
  ObjectReader reader(body, "");
  SearchRequest request;
  read_position(reader, "from", request.from);
  read_position(reader, "to", request.to);
  read_time(reader, "from_time", request.from_time);
  read_time(reader, "to_time", request.to_time);
  if (!reader.failed()) THALWEG_TRY(read_table(reader, request));
  if (!reader.failed()) THALWEG_TRY(read_key(reader, request));
  if (has(reader, "xid")) {
    const uint64_t xid = reader.unsigned_integer("xid");
    if (xid == 0 || xid > UINT32_MAX) reader.refuse("xid", "must be a transaction's id without its epoch");
    request.xid = base::Xid{static_cast<uint32_t>(xid)};
  }
  if (has(reader, "limit")) {
    request.limit = reader.unsigned_integer("limit");
    if (request.limit == 0 || request.limit > kLimitMax) {
      reader.refuse("limit", fmt::format("must be 1 to {}", kLimitMax));
    }
  }
  THALWEG_TRY(reader.finish());
  return request;
}

base::Result<SearchQuery> parse_search_query(std::string_view query) {
  SearchQuery out;
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view name = pair.substr(0, equals);
    const std::string_view value = pair.substr(std::min(equals + 1, pair.size()));
    int64_t number = 0;
    const bool is_number = !value.empty() && read_digits(value, number);
    if (name == "after" && is_number) {
      out.part.after = static_cast<uint64_t>(number);
    } else if (name == "limit" && is_number && number > 0 &&
               number <= static_cast<int64_t>(telemetry::kFoundShownMax)) {
      out.part.limit = static_cast<uint64_t>(number);
    } else if (name == "whole" && value == "1") {
      out.is_whole = true;
    } else {
      return base::fail(base::ErrorCode::invalid_request,
                        fmt::format("The parameters are after (a change's number), limit (1 to {}) and whole=1",
                                    telemetry::kFoundShownMax));
    }
  }
  return out;
}

json search_status_document(const telemetry::SearchStatus& status) {
  return {{"id", status.id},
          {"state", name_of(status.state)},
          {"truncated", status.is_truncated},
          {"begun_at", rfc3339(status.begun_at)},
          {"ended_at", status.ended_at ? json(rfc3339(*status.ended_at)) : json(nullptr)},
          {"mined_bytes", status.mined_bytes},
          {"total_bytes", status.total_bytes},
          {"from", base::to_string(status.from)},
          {"to", base::to_string(status.to)},
          {"found", status.found},
          {"error", status.error ? error_json(*status.error) : json(nullptr)}};
}

json searches_document(const telemetry::SearchList& list) {
  json searches = json::array();
  for (const telemetry::SearchStatus& status : list.searches) searches.push_back(search_status_document(status));
  return {{"kept_from", base::to_string(list.kept_from)},
          {"kept_from_time", list.kept_from_time ? json(rfc3339(*list.kept_from_time)) : json(nullptr)},
          {"kept_until", base::to_string(list.kept_until)},
          {"kept_bytes", list.kept_bytes},
          {"searches", std::move(searches)}};
}

json search_document(const telemetry::FoundPart& found, bool is_whole) {
  const size_t bytes_max = is_whole ? telemetry::kFoundTextBytesMax : kShownBytesMax;
  json out = search_status_document(found.status);
  json changes = json::array();
  std::optional<uint64_t> next_after = found.next_after;
  size_t bytes = 0;
  for (const auto& change : found.changes) {
    bytes += shown_bytes(*change, bytes_max);
    if (bytes > kPageBytesMax && !changes.empty()) {
      next_after = change->number - 1;
      break;
    }
    changes.push_back(change_json(*change, bytes_max));
  }
  out["changes"] = std::move(changes);
  out["next_after"] = next_after ? json(*next_after) : json(nullptr);
  return out;
}

}  // namespace thalweg::control
