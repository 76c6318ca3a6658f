#include "daemon/tapped_rows.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace thalweg::daemon {
namespace {

using control::RuledOperation;

std::string hex(std::span<const std::byte> bytes) {
  std::string out = "\\x";
  for (const std::byte byte : bytes) out += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return out;
}

RuledOperation operation_of(lcr::FrameKind kind) {
  if (kind == lcr::FrameKind::insert) return RuledOperation::insert;
  return kind == lcr::FrameKind::update ? RuledOperation::update : RuledOperation::remove;
}

// Rows of one change.
class Shower {
 public:
  Shower(pg::Connection& source, const capture::TappedTable& table) : source_(source), table_(table) {}

  // `key_only`: the source has sent nothing else of the row.
  base::Result<control::TriedRow> row(const lcr::TupleView& tuple, bool key_only, std::vector<std::string>& not_sent) {
    control::TriedRow row;
    std::vector<lcr::Value> values;
    if (tuple.exists()) tuple.read(values);
    std::vector<size_t> binary;
    for (size_t i = 0; i < table_.description.columns.size(); ++i) {
      const lcr::ColumnDescription& column = table_.description.columns[i];
      const bool is_sent =
          i < values.size() && values[i].mark != lcr::ValueMark::unchanged && (!key_only || column.is_key);
      if (!is_sent) {
        not_sent.push_back(column.name);
      } else if (!table_.is_hidden[i]) {
        std::optional<std::string>& text = row[column.name];
        if (values[i].mark == lcr::ValueMark::binary) binary.push_back(i);
        if (values[i].mark == lcr::ValueMark::text) {
          text.emplace(reinterpret_cast<const char*>(values[i].bytes.data()), values[i].bytes.size());
        }
      }
    }
    THALWEG_TRY(read(values, binary, row));
    return row;
  }

 private:
  base::Result<void> read(const std::vector<lcr::Value>& values, const std::vector<size_t>& binary,
                          control::TriedRow& row) {
    if (binary.empty()) return {};
    std::string list;
    std::vector<pg::Parameter> parameters;
    for (const size_t i : binary) {
      parameters.push_back({.bytes = values[i].bytes, .type = table_.description.columns[i].type, .is_binary = true});
      list += fmt::format("{}${}", list.empty() ? "" : ", ", parameters.size());
    }
    const auto rows = source_.query("SELECT " + list, parameters);
    if (!rows && source_.broken()) return std::unexpected(rows.error());
    for (size_t at = 0; at < binary.size(); ++at) {
      const size_t i = binary[at];
      row[table_.description.columns[i].name] = rows ? std::string(rows->text(0, at)) : hex(values[i].bytes);
    }
    return {};
  }

  pg::Connection& source_;
  const capture::TappedTable& table_;
};

}  // namespace

base::Result<control::JudgedChange> shown(pg::Connection& source, const capture::TappedChange& change) {
  const auto frame = lcr::FrameView::trusted(change.frame.data());
  control::JudgedChange out{.change = {.operation = operation_of(frame.kind())},
                            .rules = {},
                            .verdict = {},
                            .origin = control::ChangeOrigin::stream};
  Shower shower(source, *change.table);
  if (frame.kind() != lcr::FrameKind::insert) {
    THALWEG_ASSIGN(out.change.old_row, shower.row(frame.old_tuple(), frame.has(lcr::kOldKey), out.old_not_sent));
  }
  if (frame.kind() != lcr::FrameKind::remove) {
    THALWEG_ASSIGN(out.change.new_row, shower.row(frame.new_tuple(), false, out.new_not_sent));
  }
  for (size_t i = 0; i < change.table->is_hidden.size(); ++i) {
    if (change.table->is_hidden[i]) out.hidden.push_back(change.table->description.columns[i].name);
  }
  return out;
}

}  // namespace thalweg::daemon
