#include "apply/applier/parking.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "apply/applier/truncation_note.h"
#include "apply/parked_failure.h"
#include "apply/ranges.h"
#include "apply/transaction_frames.h"
#include "lcr/bytes.h"
#include "pg/text_array.h"

namespace thalweg::apply {

namespace {

constexpr size_t kChunkBytes = 8 * 1024 * 1024;

const std::string kInsert =
    "INSERT INTO thalweg.error_queue (stream_id, commit_lsn, end_lsn, commit_micros, xid, lcrs, tables, code, message, "
    "sqlstate, failure, hashes, read_hashes, table_hashes, parent_hashes, referenced_hashes) VALUES ($1, $2, $3, $4, "
    "$5, $6, $7, $8, $9, $10, " +
    failure_of("$9", "$11") + ", $12, $13, $14, $15, $16)";
constexpr std::array kInsertTypes{base::TypeId{25}, base::TypeId{3220}, base::TypeId{3220}, base::TypeId{20},
                                  base::TypeId{20}, base::TypeId{20},   base::TypeId{1009}, base::TypeId{25},
                                  base::TypeId{25}, base::TypeId{25},   base::TypeId{25},   base::TypeId{17},
                                  base::TypeId{17}, base::TypeId{17},   base::TypeId{17},   base::TypeId{17}};
const std::string kInsertChunk =
    "INSERT INTO thalweg.error_queue_chunk (error_id, chunk, frames, first_change) SELECT id, $3, $4, $5 FROM "
    "thalweg.error_queue WHERE stream_id = $1 AND commit_lsn = $2";
constexpr std::array kInsertChunkTypes{base::TypeId{25}, base::TypeId{3220}, base::TypeId{23}, base::TypeId{17},
                                       base::TypeId{20}};

pg::Parameter binary(std::span<const std::byte> bytes) {
  return {.bytes = bytes, .type = {}, .is_null = false, .is_binary = true};
}

// Tables that a frame changes.
void add_tables(const Transaction& transaction, const lcr::FrameView& frame,
                std::vector<const metadata::SourceTable*>& tables) {
  const auto add = [&](const metadata::SourceTable* table) {
    if (table != nullptr && std::ranges::find(tables, table) == tables.end()) tables.push_back(table);
  };
  if (frame.kind() != lcr::FrameKind::truncate) {
    add(transaction.tables.find(frame.relation(), frame.header().table_version));
    return;
  }
  for (const base::RelationId relation : frame.truncated_relations()) add(transaction.tables.latest(relation));
}

// It is in the queue: the source's partitions with other files are no trouble of their own.
void add_truncations(const Transaction& transaction, const lcr::FrameView& frame, std::vector<std::string>& notes) {
  const base::Xid xid = frame.subxid() ? frame.subxid() : transaction.xid;
  for (const base::RelationId relation : frame.truncated_relations()) {
    const metadata::SourceTable* const source = transaction.tables.latest(relation);
    if (source == nullptr || source->recorded_by.empty()) continue;
    notes.push_back(truncation_note(*source, xid, transaction.commit_lsn));
  }
}

}  // namespace

std::vector<std::byte> encode_hashes(std::span<const uint64_t> hashes) {
  std::vector<std::byte> out(hashes.size() * 8);
  lcr::ByteWriter writer(out);
  for (const uint64_t hash : hashes) writer.integer(hash);
  return out;
}

std::vector<uint64_t> decode_hashes_hex(std::string_view text) {
  const auto bytes = bytes_from_hex(text);
  lcr::ByteReader reader(bytes);
  std::vector<uint64_t> hashes;
  while (reader.remaining() >= 8) hashes.push_back(reader.integer<uint64_t>());
  return hashes;
}

base::Result<std::optional<StatementFailure>> park(DestinationSession& session, const std::string& stream_id,
                                                   const Transaction& transaction, const base::Error& why) {
  std::vector<const metadata::SourceTable*> tables;
  std::vector<std::string> truncations;
  {
    TransactionFrames frames(transaction);
    THALWEG_TRY(frames.for_each(
        [&](const lcr::FrameView& frame) -> base::Result<void> {
          add_tables(transaction, frame, tables);
          if (frame.kind() == lcr::FrameKind::truncate) add_truncations(transaction, frame, truncations);
          return {};
        },
        []() -> base::Result<void> { return {}; }));
  }
  std::vector<std::string> names;
  for (const auto* table : tables) names.push_back(table->quoted_name);
  const auto hashes = encode_hashes(transaction.writes);
  const auto read_hashes = encode_hashes(transaction.reads);
  const auto table_hashes = encode_hashes(transaction.table_hashes);
  const auto parent_hashes = encode_hashes(transaction.parent_hashes);
  const auto referenced_hashes = encode_hashes(transaction.referenced_hashes);
  const std::string commit_lsn = base::to_string(transaction.commit_lsn);
  const std::string end_lsn = base::to_string(transaction.end_lsn);
  const std::string micros = std::to_string(transaction.commit_time.value);
  const std::string xid = std::to_string(transaction.xid.value);
  const std::string lcrs = std::to_string(transaction.lcrs);
  const std::string table_names = pg::text_array(names);
  const std::string failure = failure_json(transaction.failure, why);
  const std::array parameters{pg::text_parameter(stream_id),
                              pg::text_parameter(commit_lsn),
                              pg::text_parameter(end_lsn),
                              pg::text_parameter(micros),
                              pg::text_parameter(xid),
                              pg::text_parameter(lcrs),
                              pg::text_parameter(table_names),
                              pg::text_parameter(base::name_of(why.code)),
                              pg::text_parameter(why.message),
                              pg::text_parameter(why.sqlstate),
                              pg::text_parameter(failure),
                              binary(hashes),
                              binary(read_hashes),
                              binary(table_hashes),
                              binary(parent_hashes),
                              binary(referenced_hashes)};
  THALWEG_TRY(session.run(session.prepared(kInsert, kInsertTypes), parameters, {.rows = 1}));
  for (const std::string& note : truncations) THALWEG_TRY(session.run(note));

  // The tables' descriptions first: the queue entry has to be readable by itself.
  std::vector<std::byte> chunk;
  int chunks = 0;
  uint64_t changes = 0;
  uint64_t first_change = 1;  // of the chunk
  const auto send_chunk = [&]() -> base::Result<void> {
    const std::string number = std::to_string(chunks++);
    const std::string first = std::to_string(std::exchange(first_change, changes + 1));
    const std::array chunk_parameters{pg::text_parameter(stream_id), pg::text_parameter(commit_lsn),
                                      pg::text_parameter(number), binary(chunk), pg::text_parameter(first)};
    THALWEG_TRY(session.run(session.prepared(kInsertChunk, kInsertChunkTypes), chunk_parameters, {.rows = 1}));
    chunk.clear();
    return {};
  };
  for (const auto* table : tables) chunk.insert(chunk.end(), table->frame.begin(), table->frame.end());
  TransactionFrames frames(transaction);
  THALWEG_TRY(frames.for_each(
      [&](const lcr::FrameView& frame) -> base::Result<void> {
        if (lcr::is_change(frame.kind())) ++changes;
        chunk.insert(chunk.end(), frame.bytes().begin(), frame.bytes().end());
        return chunk.size() >= kChunkBytes ? send_chunk() : base::Result<void>{};
      },
      []() -> base::Result<void> { return {}; }));
  THALWEG_TRY(send_chunk());
  return session.sync();
}

base::Result<ParkedSet> load_parked(pg::Connection& connection, const std::string& stream_id, uint64_t& count) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query("SELECT hashes, read_hashes, table_hashes, parent_hashes, referenced_hashes "
                                  "FROM thalweg.error_queue WHERE stream_id = $1",
                                  {stream_id}));
  ParkedSet parked;
  for (size_t row = 0; row < rows.size(); ++row) {
    const auto writes = decode_hashes_hex(rows.text(row, 0));
    const auto reads = decode_hashes_hex(rows.text(row, 1));
    const auto tables = decode_hashes_hex(rows.text(row, 2));
    const auto parents = decode_hashes_hex(rows.text(row, 3));
    const auto referenced = decode_hashes_hex(rows.text(row, 4));
    parked.add({.writes = writes,
                .reads = reads,
                .tables = {.touched = tables, .parents = parents, .referenced = referenced}});
  }
  count = rows.size();
  return parked;
}

}  // namespace thalweg::apply
