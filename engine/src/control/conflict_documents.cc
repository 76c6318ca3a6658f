#include "control/conflict_documents.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/ids.h"
#include "control/strict_json.h"

namespace thalweg::control {
namespace {

using nlohmann::json;
using telemetry::ConflictPart;
using telemetry::LoggedColumn;
using telemetry::LoggedConflict;

constexpr size_t kWordBytesMax = 64;
constexpr size_t kIdentifierBytesMax = 256;  // NAMEDATALEN is 64 unless somebody built a server of their own
constexpr std::string_view kNoConflict = "error";

uint64_t read_count(ObjectReader& reader, std::string_view member, uint64_t least, uint64_t most, uint64_t otherwise) {
  if (reader.member(member, false) == nullptr) return otherwise;
  const uint64_t number = reader.unsigned_integer(member);
  if (!reader.failed() && (number < least || number > most)) {
    reader.refuse(member, fmt::format("must be a whole number from {} to {}", least, most));
  }
  return number;
}

void add_value(json& out, std::string_view member, const LoggedColumn::Value& value) {
  if (value) out[member] = *value ? json(**value) : json(nullptr);
}

// A member is missing where the change does not tell the value.
json column_document(const LoggedColumn& column) {
  json out = {{"name", column.name}, {"is_identity", column.is_identity}};
  add_value(out, "before", column.before);
  add_value(out, "wanted", column.wanted);
  add_value(out, "there", column.there);
  return out;
}

json conflict_document(const LoggedConflict& conflict) {
  json columns = json::array();
  for (const LoggedColumn& column : conflict.columns) columns.push_back(column_document(column));
  return {{"id", conflict.id},
          {"commit_lsn", base::to_string(conflict.commit_lsn)},
          {"committed_at", conflict.committed_at},
          {"xid", conflict.xid.value},
          {"change", conflict.change},
          {"schema", conflict.schema_name},
          {"table", conflict.table_name},
          {"operation", conflict.operation},
          {"kind", conflict.kind},
          {"sqlstate", conflict.sqlstate},
          {"message", conflict.message},
          {"action", conflict.action},
          {"columns", std::move(columns)},
          {"has_row", conflict.has_row},
          {"logged_at", conflict.logged_at}};
}

}  // namespace

base::Result<ConflictPart> parse_conflict_part(std::string_view text) {
  THALWEG_ASSIGN(const json body, parse_strict(text));
  ObjectReader reader(body, "");
  ConflictPart part;
  part.before = static_cast<int64_t>(read_count(reader, "before", 0, INT64_MAX, 0));
  part.limit = read_count(reader, "limit", 1, telemetry::kConflictListMax, part.limit);
  part.characters_max = read_count(reader, "characters", 1, telemetry::kLoggedCharactersMax, part.characters_max);
  if (reader.member("kind", false) != nullptr) {
    part.kind = reader.string("kind", 1, kWordBytesMax);
    if (!reader.failed() && part.kind != kNoConflict &&
        std::ranges::find(telemetry::kConflictKindNames, part.kind) == telemetry::kConflictKindNames.end()) {
      reader.refuse("kind",
                    fmt::format("must be one of {}, {}", fmt::join(telemetry::kConflictKindNames, ", "), kNoConflict));
    }
  }
  if (reader.member("schema", false) != nullptr || reader.member("table", false) != nullptr) {
    part.schema_name = reader.string("schema", 1, kIdentifierBytesMax);
    part.table_name = reader.string("table", 1, kIdentifierBytesMax);
  }
  THALWEG_TRY(reader.finish());
  return part;
}

json conflicts_document(const telemetry::LoggedConflicts& page) {
  json listed = json::array();
  for (const LoggedConflict& conflict : page.conflicts) listed.push_back(conflict_document(conflict));
  const bool goes_on = page.more && !page.conflicts.empty();
  return {{"conflicts", std::move(listed)}, {"next_before", goes_on ? json(page.conflicts.back().id) : json(nullptr)}};
}

json conflict_counts_document(const std::vector<telemetry::LoggedCount>& counts) {
  json listed = json::array();
  for (const telemetry::LoggedCount& count : counts) {
    listed.push_back({{"schema", count.schema_name},
                      {"table", count.table_name},
                      {"kind", count.kind},
                      {"sqlstate", count.sqlstate},
                      {"action", count.action},
                      {"changes", count.changes},
                      {"newest", count.newest}});
  }
  return {{"counts", std::move(listed)}};
}

}  // namespace thalweg::control
