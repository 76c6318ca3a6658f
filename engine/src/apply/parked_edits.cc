#include "apply/parked_edits.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apply/parked_frames.h"
#include "pg/connection.h"

namespace thalweg::apply {

using base::ErrorCode;
using lcr::FrameKind;
using lcr::FrameView;
using nlohmann::json;
using telemetry::ParkedEdit;

namespace {

std::optional<uint64_t> number_of(const std::string& key) {
  uint64_t number = 0;
  const auto [end, problem] = std::from_chars(key.data(), key.data() + key.size(), number);
  if (problem != std::errc{} || end != key.data() + key.size() || number == 0) return std::nullopt;
  return number;
}

std::optional<ParkedEdit> edit_of(const json& document) {
  if (!document.is_object() || !document.contains("reason") || !document["reason"].is_string()) return std::nullopt;
  ParkedEdit edit{.reason = document["reason"].get<std::string>()};
  if (!document.contains("values")) {
    edit.left_out = document.value("left_out", json(false)) == true;
    return edit.left_out ? std::optional(std::move(edit)) : std::nullopt;
  }
  const json& values = document["values"];
  if (!values.is_object()) return std::nullopt;
  for (const auto& [column, value] : values.items()) {
    if (!value.is_null() && !value.is_string()) return std::nullopt;
    edit.values[column] = value.is_null() ? std::nullopt : std::optional(value.get<std::string>());
  }
  return edit;
}

base::Result<size_t> place_of(const std::string& column, const lcr::TableDescription& table) {
  const auto found = std::ranges::find(table.columns, column, &lcr::ColumnDescription::name);
  if (found != table.columns.end()) return static_cast<size_t>(found - table.columns.begin());
  return base::fail(ErrorCode::invalid_request,
                    fmt::format("{}: {} has no column \"{}\"", (json::json_pointer("/values") / column).to_string(),
                                pg::quote_table(table.schema_name, table.table_name), column));
}

bool has_new_values(const FrameView& frame) {
  return frame.kind() == FrameKind::insert || frame.kind() == FrameKind::update;
}

base::Result<void> check_values(const FrameView& frame, const ParkedEdit& edit,
                                std::span<const lcr::TableDescription> tables) {
  if (edit.left_out) return {};
  if (!has_new_values(frame)) {
    return base::fail(ErrorCode::invalid_request,
                      "/values: only an INSERT or UPDATE has new values; a DELETE or TRUNCATE can be left out");
  }
  const auto table = std::ranges::find_if(tables, [&](const lcr::TableDescription& description) {
    return description.relation == frame.relation() && description.version == frame.header().table_version;
  });
  if (table == tables.end()) {
    return base::fail(ErrorCode::corrupt_frame, "a change came before its table's description");
  }
  for (const auto& [column, value] : edit.values) THALWEG_TRY(place_of(column, *table));
  return {};
}

}  // namespace

base::Result<ParkedEdits> parse_edits(std::string_view text) {
  const auto unreadable = [] {
    return base::fail(ErrorCode::apply_failed, "thalweg.error_queue.edits of the transaction cannot be read");
  };
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object()) return unreadable();
  ParkedEdits edits;
  for (const auto& [key, value] : document.items()) {
    const auto number = number_of(key);
    auto edit = edit_of(value);
    if (!number || !edit) return unreadable();
    edits[*number] = std::move(*edit);
  }
  return edits;
}

std::string edit_json(const ParkedEdit& edit) {
  json document{{"reason", edit.reason}};
  if (edit.left_out) {
    document["left_out"] = true;
    return document.dump();
  }
  json values = json::object();
  for (const auto& [column, value] : edit.values) values[column] = value ? json(*value) : json(nullptr);
  document["values"] = std::move(values);
  return document.dump();
}

base::Result<std::vector<std::byte>> edited_frame(const FrameView& frame, const ParkedEdit& edit,
                                                  const lcr::TableDescription& table) {
  if (!has_new_values(frame)) {
    return base::fail(ErrorCode::apply_failed, "an edit has values for a change that has none");
  }
  std::vector<lcr::Value> values;
  frame.new_tuple().read(values);
  for (const auto& [column, value] : edit.values) {
    THALWEG_ASSIGN(const size_t place, place_of(column, table));
    if (place >= values.size()) {
      return base::fail(ErrorCode::corrupt_frame, "a tuple has another number of columns than its table");
    }
    values[place] =
        value ? lcr::Value{.mark = lcr::ValueMark::text, .bytes = std::as_bytes(std::span(*value))} : lcr::Value{};
  }
  const auto edited = lcr::make_tuple(values);
  lcr::RowFrame row = lcr::row_of(frame);
  row.new_tuple = edited;
  if (frame.kind() == FrameKind::update && row.old_tuple.empty()) {
    // Its key was the same before and after: an edit of the key must not look for another row.
    row.old_tuple = frame.new_tuple().bytes();
    row.flags |= lcr::kOldKey;
  }
  const size_t bytes = lcr::row_frame_bytes(row);
  if (bytes > lcr::kFrameLengthMax) return base::fail(ErrorCode::apply_failed, "the edited change is too large");
  std::vector<std::byte> out(bytes);
  lcr::write_row_frame(row, out);
  return out;
}

base::Result<void> check_edit(pg::Connection& connection, int64_t error_id, uint64_t number, const ParkedEdit& edit) {
  std::vector<lcr::TableDescription> tables;
  bool found = false;
  const auto visit = [&](const FrameView& frame, uint64_t at) -> base::Result<bool> {
    if (frame.kind() == FrameKind::table) {
      THALWEG_ASSIGN(auto table, frame.table());
      tables.push_back(std::move(table));
      return true;
    }
    found = at == number;
    if (found) THALWEG_TRY(check_values(frame, edit, tables));
    return false;
  };
  THALWEG_TRY(visit_parked_changes(connection, error_id, number, visit));
  if (found) return {};
  return unknown_change(error_id, number);
}

}  // namespace thalweg::apply
