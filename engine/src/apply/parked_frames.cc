#include "apply/parked_frames.h"

#include <algorithm>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include "apply/ranges.h"
#include "pg/bookkeeping_trust.h"

namespace thalweg::apply {

std::unexpected<base::Error> unknown_parked(int64_t error_id) {
  return base::fail(base::ErrorCode::unknown_error_transaction,
                    "the error queue has no transaction " + std::to_string(error_id));
}

std::unexpected<base::Error> unknown_change(int64_t error_id, uint64_t number) {
  return base::fail(base::ErrorCode::unknown_error_transaction,
                    fmt::format("transaction {} of the error queue has no change {}", error_id, number));
}

namespace {

using Visit = std::function<base::Result<bool>(const lcr::FrameView&)>;

// False: there is no such piece, or the visit ended in it.
base::Result<bool> visit_chunk(pg::Connection& connection, int64_t error_id, int64_t chunk, const Visit& visit) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query(
                     "SELECT frames FROM thalweg.error_queue_chunk WHERE error_id = $1::bigint AND chunk = $2::integer",
                     {std::to_string(error_id), std::to_string(chunk)}));
  if (rows.size() == 0) return false;
  const auto bytes = bytes_from_hex(rows.text(0, 0));
  std::span<const std::byte> rest = bytes;
  while (!rest.empty()) {
    THALWEG_ASSIGN(const auto frame, lcr::FrameView::decode(rest));
    rest = rest.subspan(frame.header().length);
    THALWEG_ASSIGN(const bool more, visit(frame));
    if (!more) return false;
  }
  return true;
}

struct Piece {
  int64_t chunk = 0;
  uint64_t first_change = 1;
};

// The piece with the change, if those of the transaction are known by their first changes. Else the first one, as where
// an older engine made the table: the innermost name is the table's column if there is one, else the default's.
base::Result<Piece> piece_of(pg::Connection& connection, int64_t error_id, uint64_t change) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query(
                     "SELECT chunk, first_change FROM (SELECT c.chunk, (SELECT known.first_change FROM (SELECT "
                     "NULL::bigint AS first_change) older, LATERAL (SELECT first_change FROM "
                     "thalweg.error_queue_chunk e WHERE (e.error_id, e.chunk) = (c.error_id, c.chunk)) known) FROM "
                     "thalweg.error_queue_chunk c WHERE error_id = $1::bigint) piece WHERE first_change <= $2::bigint "
                     "ORDER BY chunk DESC LIMIT 1",
                     {std::to_string(error_id), std::to_string(change)}));
  if (rows.size() == 0) return Piece{};
  return Piece{.chunk = rows.integer(0, 0), .first_change = static_cast<uint64_t>(rows.integer(0, 1))};
}

}  // namespace

base::Result<void> visit_parked_frames(pg::Connection& connection, int64_t error_id, const Visit& visit) {
  bool more = true;
  for (int64_t chunk = 0; more; ++chunk) {
    THALWEG_ASSIGN(more, visit_chunk(connection, error_id, chunk, visit));
  }
  return {};
}

base::Result<void> visit_parked_changes(
    pg::Connection& connection, int64_t error_id, uint64_t from,
    const std::function<base::Result<bool>(const lcr::FrameView&, uint64_t number)>& visit) {
  uint64_t number = 0;
  const auto take = [&](const lcr::FrameView& frame) -> base::Result<bool> {
    if (frame.kind() == lcr::FrameKind::table) return visit(frame, 0);
    if (!lcr::is_change(frame.kind()) || ++number < from) return true;
    return visit(frame, number);
  };
  THALWEG_ASSIGN(bool more, visit_chunk(connection, error_id, 0, take));  // with the descriptions
  int64_t chunk = 1;
  if (more && number + 1 < from) {
    THALWEG_ASSIGN(const Piece piece, piece_of(connection, error_id, from));
    if (piece.chunk > chunk) {
      chunk = piece.chunk;
      number = piece.first_change - 1;
    }
  }
  for (; more; ++chunk) {
    THALWEG_ASSIGN(more, visit_chunk(connection, error_id, chunk, take));
  }
  return {};
}

base::Result<TableNames> TableNames::read(pg::Connection& connection, std::string_view stream_id) {
  TableNames found;
  THALWEG_ASSIGN(const bool exists, pg::trusted_bookkeeping(connection, {"stream_table"}));
  if (!exists) return found;
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query("SELECT coalesce((to_jsonb(t) -> 'identity' ->> 'relation')::bigint, 0), "
                                  "schema_name, table_name, coalesce(to_jsonb(t) ->> 'destination_schema', "
                                  "schema_name), coalesce(to_jsonb(t) ->> 'destination_table', table_name) "
                                  "FROM thalweg.stream_table t WHERE stream_id = $1 "
                                  "ORDER BY to_jsonb(t) ->> 'trouble' IS NULL",
                                  {stream_id}));
  for (size_t row = 0; row < rows.size(); ++row) {
    const base::RelationId relation{static_cast<uint32_t>(rows.integer(row, 0))};
    Names names{.in_stream = Name(rows.text(row, 1), rows.text(row, 2)),
                .there = Name(rows.text(row, 3), rows.text(row, 4))};
    if (relation.value == 0) {
      found.of_unknown_relation_[names.in_stream] = std::move(names.there);
    } else {
      found.names_[relation] = std::move(names);
    }
  }
  return found;
}

void TableNames::apply_to(lcr::TableDescription& description) const {
  const auto known = names_.find(description.relation);
  const auto by_name = of_unknown_relation_.find({description.schema_name, description.table_name});
  if (known == names_.end() && by_name == of_unknown_relation_.end()) return;
  std::tie(description.schema_name, description.table_name) =
      known == names_.end() ? by_name->second : known->second.there;
}

bool TableNames::is_anothers(const lcr::TableDescription& description) const {
  if (names_.contains(description.relation)) return false;
  const Name name{description.schema_name, description.table_name};
  return std::ranges::any_of(names_, [&](const auto& entry) { return entry.second.in_stream == name; });
}

bool TableNames::is_taken_out(const lcr::TableDescription& description) const {
  if (names_.empty() && of_unknown_relation_.empty()) return false;
  const Name name{description.schema_name, description.table_name};
  return !names_.contains(description.relation) && !is_anothers(description) &&
         std::ranges::none_of(of_unknown_relation_, [&](const auto& entry) { return entry.second == name; });
}

base::Result<std::shared_ptr<metadata::SourceTable>> described_table(const lcr::FrameView& frame, uint64_t id,
                                                                     const TableNames& names) {
  auto source = std::make_shared<metadata::SourceTable>();
  THALWEG_ASSIGN(source->description, frame.table());
  names.apply_to(source->description);
  source->id = id;
  source->quoted_name = pg::quote_table(source->description.schema_name, source->description.table_name);
  return source;
}

}  // namespace thalweg::apply
