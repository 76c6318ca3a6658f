#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "lcr/frame.h"
#include "metadata/source_table.h"
#include "pg/connection.h"

// The frames of a parked transaction, read back from thalweg.error_queue_chunk.

namespace thalweg::apply {

// Calls visit(frame) for each of these whole frames, until it fails. `bytes` is aligned as frames have to be.
template <typename Visit>
base::Result<void> visit_frames(std::span<const std::byte> bytes, Visit visit) {
  while (!bytes.empty()) {
    THALWEG_ASSIGN(const auto frame, lcr::FrameView::decode(bytes));
    bytes = bytes.subspan(frame.header().length);
    THALWEG_TRY(visit(frame));
  }
  return {};
}

// Calls visit(frame) for each frame in order, the tables' descriptions first, until it returns false or fails. A frame
// lives as long as its call. One piece of the transaction is in memory at a time. The connection is in no pipeline.
base::Result<void> visit_parked_frames(pg::Connection& connection, int64_t error_id,
                                       const std::function<base::Result<bool>(const lcr::FrameView&)>& visit);

// Visits in the same way the tables' descriptions, and then the changes from number `from` on, each with its number in
// the transaction, from 1 (a description: 0). Pieces between them are not read where the engine that parked the
// transaction has noted where they begin.
base::Result<void> visit_parked_changes(
    pg::Connection& connection, int64_t error_id, uint64_t from,
    const std::function<base::Result<bool>(const lcr::FrameView&, uint64_t number)>& visit);

// unknown_error_transaction.
std::unexpected<base::Error> unknown_parked(int64_t error_id);
std::unexpected<base::Error> unknown_change(int64_t error_id, uint64_t number);

// Current names of a stream's tables at the destination. A table is identified by its relation: since a transaction was
// parked, its table may have been renamed, and the name given to another one.
class TableNames {
 public:
  static base::Result<TableNames> read(pg::Connection& connection, std::string_view stream_id);
  // Tables of unknown relation, which an older engine copied, keep the name that they have. Of two records with one
  // relation, one of which stands for an earlier name, the one without trouble counts.
  void apply_to(lcr::TableDescription& description) const;
  // The following are of a description that apply_to() has seen. Whether the name is that of another table of the
  // stream.
  bool is_anothers(const lcr::TableDescription& description) const;
  // Whether it was taken out of the stream, and nothing of the stream has its name: that may be anybody's table by now.
  // Never where the stream has no records.
  bool is_taken_out(const lcr::TableDescription& description) const;
  bool operator==(const TableNames&) const = default;

 private:
  using Name = std::pair<std::string, std::string>;  // schema and table

  struct Names {
    Name in_stream;
    Name there;  // at the destination
    bool operator==(const Names&) const = default;
  };

  std::map<base::RelationId, Names> names_;
  std::map<Name, Name> of_unknown_relation_;  // by the stream's name, that at the destination
};

// The table that a TABLE frame describes, under its name of now. `id`: see SourceTable.
base::Result<std::shared_ptr<metadata::SourceTable>> described_table(const lcr::FrameView& frame, uint64_t id,
                                                                     const TableNames& names);

}  // namespace thalweg::apply
