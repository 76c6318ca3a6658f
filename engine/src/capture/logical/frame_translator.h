#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "capture/change_tap.h"
#include "capture/logical/pgoutput_parser.h"
#include "capture/logical/streamed_subtransactions.h"
#include "capture/row_filter.h"
#include "lcr/frame.h"

namespace thalweg::capture {

// Where frames go: memory for the next one, then its publication.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // Waits as long as it takes; empty when the capture has to end. Gives up what was reserved and not enqueued.
  virtual std::span<std::byte> reserve(size_t frame_bytes) = 0;
  virtual void enqueue() = 0;
};

// The transaction that a message belongs to, or the streamed block.
struct MessagePlace {
  base::Xid open_xid;  // the top-level one
  bool in_stream = false;
};

// Turns pgoutput messages into LCR frames. Tuples are copied once, from the parsed bytes into the sink's memory.
// A table is described to the sink before its first row, not when pgoutput names it: pgoutput names partitions, too,
// whose rows come as their root's (maybe_send_schema of src/backend/replication/pgoutput/pgoutput.c: the root, then the
// partition, then the row). The sink is told of each by a PARTITION frame before such a row. Versions of tables count
// from 1 for each translator: a new connection describes every table again.
//
// The frames of a subtransaction that was rolled back are followed by its ABORT frame in any case: the source tells
// which subtransactions of a streamed transaction committed, and a streamed commit without that is refused.
//
// A change of a table with rules is written, then judged, and enqueued only if it passes; that of one with
// transformations is enqueued as they want it. Whether they fit a table that an open transaction has changed cannot be
// said: its changes are withheld, and if it commits with them the capture ends, to read it again as a committed one.
// Owner: the capture's agent.
class FrameTranslator {
 public:
  // `filters` and `tap` outlive it. Null: no table has rules; nobody wants to see changes. `names_origins`: an ORIGIN
  // frame is behind each BEGIN.
  explicit FrameTranslator(FrameSink& sink, RowFilters* filters = nullptr, ChangeTap* tap = nullptr,
                           bool names_origins = false)
      : sink_(sink), filters_(filters), tap_(tap), names_origins_(names_origins) {}

  // False when the sink wants no more. `lsn` is the message's WAL position, zero where the source gave none.
  // Fails with protocol_violation when a row does not fit the last description of its table, or a streamed transaction
  // commits of which it was not said which subtransactions do; with replica_identity_missing when an UPDATE does not
  // say which row it is of; with rule_refused, rule_undecidable and rule_failed where a table has rules,
  // with transformation_refused where it has transformations, and with database_busy where it has and its changes are
  // to be read again.
  base::Result<bool> translate(const PgoutputMessage& message, const MessagePlace& place, base::Lsn lsn);
  base::Result<bool> translate(const PgoutputMessage& message, const PgoutputParser& parser, base::Lsn lsn) {
    return translate(message, MessagePlace{.open_xid = parser.open_xid(), .in_stream = parser.in_stream()}, lsn);
  }
  bool progress(base::Lsn lsn, base::UnixMicros server_time);
  // From here on the source vouches for messages that name truncated partitions: nobody else can send one.
  void trust_truncated_partitions() { trusts_truncated_partitions_ = true; }

  // Of the transaction that came whole last.
  bool has_origin() const { return transaction_.tag.has_value(); }

  struct Counts {
    uint64_t lcrs = 0;          // row changes and truncates
    uint64_t transactions = 0;  // commits
    uint64_t bytes = 0;         // frames, all kinds
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Table {
    lcr::TableDescription description;
    uint16_t columns = 0;
    bool has_key = false;        // columns that identify a row without the old one
    bool announced = false;      // its TABLE frame is out since the last description
    bool is_filter_new = false;  // it was made after the last description
    base::Xid undecided;         // the streamed (sub)transaction for which that cannot be said of its transformations
    // The filter of this version, once it is announced. Null: it has no rules, no transformations.
    std::unique_ptr<RowFilter> filter;
    std::unique_ptr<transform::RowTransformation> transformation;
  };

  void note_transaction(TransactionFacts transaction);
  bool put_origin(std::optional<std::string_view> origin);
  bool put(std::span<const std::byte> frame);
  bool put_abort(base::Xid xid, base::Xid subxid);
  bool put_aborts_of_others(const PgoutputMessage& message);
  base::Result<bool> put_streamed_commit(base::Xid xid, const lcr::TransactionMark& mark);
  // `described`: by the message right before; another relation than the row's is the partition that has the row.
  base::Result<bool> put_row(const PgoutputMessage& message, const MessagePlace& place, base::RelationId described);
  bool put_partition(const PgoutputMessage& message, const MessagePlace& place);
  base::Result<bool> put_truncated_partition(const PgoutputMessage& message, const MessagePlace& place);
  // A row's frame as its table's rules want it: in memory that is reserved for it, or nothing at all.
  base::Result<bool> put_filtered(const lcr::RowFrame& row, Table& table);
  // Writes a row's frame as it is sent.
  base::Result<bool> put_row_frame(const lcr::RowFrame& row, Table& table);
  base::Result<bool> put_truncate(const PgoutputMessage& message, const MessagePlace& place);
  // The truncated relations whose rules let the truncate pass.
  base::Result<std::vector<base::RelationId>> truncated(const lcr::FrameView& truncate,
                                                        std::span<const base::RelationId> relations);
  void describe(const lcr::TableDescription& described);
  base::Result<void> make_filter(Table& table, const ChangePlace& change);
  base::Result<void> check_size(const lcr::RowFrame& row, const Table& table) const;
  enum class Announced : uint8_t { yes, withheld, ended };  // ended: the sink wants no more
  // The table's TABLE frame, and its filter, unless they are there already. Withheld: the change must not be sent.
  base::Result<Announced> announce(Table& table, const ChangePlace& change);
  base::Result<void> check_withheld(base::Xid xid);
  ChangePlace place_of(const PgoutputMessage& message, const MessagePlace& place) const;
  base::Error placed(base::Error error, base::Xid xid) const;
  Table* find(base::RelationId relation);

  FrameSink& sink_;
  RowFilters* const filters_;
  ChangeTap* const tap_;
  const bool names_origins_;
  bool trusts_truncated_partitions_ = false;
  TransactionFacts transaction_;  // whose changes come
  base::Xid begun_;               // the transaction that came whole last
  base::Lsn commit_lsn_;          // its commit
  bool awaits_origin_ = false;    // its BEGIN was the last message
  bool is_tapped_ = false;        // as of the transaction's beginning, or the block's: somebody wants changes
  std::unordered_map<base::RelationId, Table> tables_;
  Table* last_table_ = nullptr;      // into tables_, whose nodes do not move
  base::Lsn lsn_;                    // of the last message that had one
  base::RelationId described_last_;  // by the message before this one; zero where that was no description
  StreamedSubtransactions subtransactions_;
  // Of open streamed transactions, those whose changes were withheld; itself, where they are the top level's.
  std::map<uint32_t, std::set<uint32_t>> withheld_;
  base::Xid settled_;  // the streamed transaction whose committed subtransactions came last; its commit is next
  Counts counts_;
};

}  // namespace thalweg::capture
