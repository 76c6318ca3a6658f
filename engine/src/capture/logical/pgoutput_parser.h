#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "lcr/frame.h"

// pgoutput's messages, protocol version 2 (PostgreSQL documentation, "Logical Replication Message Formats"), and the
// one that thalweg_output adds (docs/formats/output-batch.md).

namespace thalweg::capture {

enum class MessageKind : char {
  begin = 'B',
  commit = 'C',
  origin = 'O',
  relation = 'R',
  type = 'Y',
  insert = 'I',
  update = 'U',
  remove = 'D',
  truncate = 'T',
  message = 'M',
  stream_start = 'S',
  stream_stop = 'E',
  stream_commit = 'c',
  stream_abort = 'A',
  committed_subtransactions = 'k',  // thalweg_output's
};

// One message. Which fields count depends on the kind; the others keep what an earlier message left.
struct PgoutputMessage {
  MessageKind kind = MessageKind::begin;
  // begin, stream_start, stream_commit, stream_abort, committed_subtransactions: the top-level transaction. Changes in
  // a stream block: the (sub)transaction that made them. Changes outside: the transaction that the last begin named.
  base::Xid xid;
  base::Xid subxid;                         // stream_abort; the same as xid where all of it is rolled back
  base::Lsn commit_lsn;                     // begin, commit, stream_commit
  base::Lsn end_lsn;                        // commit, stream_commit
  base::UnixMicros commit_time;             // begin, commit, stream_commit
  base::RelationId relation;                // insert, update, remove
  uint16_t old_flags = 0;                   // update, remove: lcr::kOldKey or lcr::kOldRow, 0 without an old tuple
  std::span<const std::byte> old_tuple;     // update, remove; checked TupleData inside the parsed bytes
  std::span<const std::byte> new_tuple;     // insert, update
  uint16_t truncate_flags = 0;              // truncate: lcr::kCascade, lcr::kRestartIdentity
  std::vector<base::RelationId> truncated;  // truncate
  std::vector<base::Xid> subxids;           // committed_subtransactions: those of xid that committed with it
  lcr::TableDescription table;              // relation; version 0
  std::string_view prefix;                  // message: whose it is, inside the parsed bytes
  std::string_view content;                 // message
  // origin: its name, inside the parsed bytes. None: nobody knows it, which pgoutput never says.
  std::optional<std::string_view> origin;
};

// Total: any bytes give a message or protocol_violation, and no read leaves them. Knows where in the stream it is, so a
// message at the wrong place is a violation too. Owner: the capture's agent. Allocates only for relation,
// truncate and committed_subtransactions.
class PgoutputParser {
 public:
  // The message in `bytes`, valid until the next call and while `bytes` lives. After a violation the parser is done.
  base::Result<const PgoutputMessage*> parse(std::span<const std::byte> bytes);

  // Between begin and commit, or in a stream block.
  bool in_transaction() const { return place_ != Place::outside; }
  bool in_stream() const { return place_ == Place::stream; }
  // The top-level transaction of the block that is open.
  base::Xid open_xid() const { return open_xid_; }

 private:
  enum class Place : uint8_t { outside, transaction, stream };

  PgoutputMessage message_;
  Place place_ = Place::outside;
  base::Xid open_xid_;
};

}  // namespace thalweg::capture
