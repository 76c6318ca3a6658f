#include "simulation/wal.h"

#include <algorithm>
#include <functional>

namespace thalweg::simulation {

namespace {

class Bytes {
 public:
  explicit Bytes(char kind) { text_ += kind; }
  Bytes& u8(uint64_t value) { return integer(value, 1); }
  Bytes& u16(uint64_t value) { return integer(value, 2); }
  Bytes& u32(uint64_t value) { return integer(value, 4); }
  Bytes& u64(uint64_t value) { return integer(value, 8); }
  Bytes& text(const char* value) {
    text_ += value;
    return u8(0);
  }
  Bytes& raw(const std::string& value) {
    text_ += value;
    return *this;
  }
  const std::string& get() const { return text_; }

 private:
  Bytes& integer(uint64_t value, int size) {
    for (int i = size - 1; i >= 0; --i) text_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  std::string text_;
};

// A value that is longer than this lies outside of its row.
bool stays_outside(const Value& before, const Value& after) {
  constexpr size_t kToastedBytes = 64;
  return after && before == after && after->size() > kToastedBytes;
}

// The row's values; only those of the key, or with a mark for those outside of the row that are as they were.
void put_tuple(Bytes& out, const TableShape& shape, const Row& row, bool key_only, const Row* before) {
  out.u16(row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    if (!row[i] || (key_only && static_cast<int>(i) != shape.key)) {
      out.raw("n");
    } else if (before != nullptr && static_cast<int>(i) == shape.toasted && stays_outside((*before)[i], row[i])) {
      out.raw("u");
    } else {
      out.raw("b").u32(row[i]->size()).raw(*row[i]);
    }
  }
}

}  // namespace

bool leaves_value_out(const Change& update) {
  const int toasted = shapes()[static_cast<size_t>(update.table)].toasted;
  if (toasted < 0) return false;
  const auto column = static_cast<size_t>(toasted);
  return stays_outside(update.before[column], update.after[column]);
}

LogicalDecoding::Open& LogicalDecoding::find(uint32_t xid) {
  const auto found = std::ranges::find(open_, xid, &Open::xid);
  if (found != open_.end()) return *found;
  open_.push_back({.xid = xid, .changes = {}, .streamed = false, .streamed_subxids = {}, .described = {}});
  return open_.back();
}

void LogicalDecoding::erase(uint32_t xid) {
  std::erase_if(open_, [xid](const Open& open) { return open.xid == xid; });
}

void LogicalDecoding::decode(const WalRecord& record) {
  switch (record.kind) {
    case WalRecord::Kind::change:
    case WalRecord::Kind::message:
      return change(record);
    case WalRecord::Kind::commit:
      return commit(record);
    case WalRecord::Kind::abort:
    case WalRecord::Kind::abort_subtransaction:
      return abort(record);
  }
}

void LogicalDecoding::change(const WalRecord& record) {
  find(record.xid).changes.push_back(record);
  if (record.lsn < options_.start) return;
  size_t buffered = 0;
  for (const Open& open : open_) buffered += open.changes.size();
  if (buffered <= options_.buffered_max) return;
  stream(*std::ranges::max_element(open_, {}, [](const Open& open) { return open.changes.size(); }));
}

bool LogicalDecoding::sends_whole_old_rows(int table) const {
  const auto at = static_cast<size_t>(table);
  return shapes()[at].key < 0 || options_.full_identity[at];
}

void LogicalDecoding::put_relation(int table, uint32_t stream_xid, std::vector<int>& described) {
  if (std::ranges::find(described, table) != described.end()) return;
  described.push_back(table);
  const TableShape& shape = shapes()[static_cast<size_t>(table)];
  const bool is_full = sends_whole_old_rows(table);
  Bytes out('R');
  if (stream_xid != 0) out.u32(stream_xid);
  out.u32(shape.oid).text("public").text(shape.name.c_str()).raw(is_full ? "f" : "d").u16(shape.columns.size());
  for (size_t i = 0; i < shape.columns.size(); ++i) {
    const bool is_key = is_full || static_cast<int>(i) == shape.key;
    out.u8(is_key ? 1 : 0).text(shape.columns[i].name.c_str()).u32(shape.columns[i].type).u32(0xFFFFFFFF);
  }
  send_(0, out.get());
}

// `stream_xid`: the subtransaction, in a stream block; else 0.
void LogicalDecoding::put_change(const WalRecord& record, uint32_t stream_xid, std::vector<int>& described) {
  if (record.kind == WalRecord::Kind::message) {
    Bytes out('M');
    if (stream_xid != 0) out.u32(stream_xid);
    out.u8(1).u64(record.lsn).text(record.prefix.c_str()).u32(record.content.size()).raw(record.content);
    return send_(record.lsn, out.get());
  }
  for (const Change& change : record.changes) put_relation(change.table, stream_xid, described);
  const Change& first = record.changes.front();
  const TableShape& shape = shapes()[static_cast<size_t>(first.table)];
  constexpr char kLetters[] = {'I', 'U', 'D', 'T'};
  Bytes out(kLetters[static_cast<int>(first.kind)]);
  if (stream_xid != 0) out.u32(stream_xid);
  if (first.kind == Change::Kind::truncate) {
    out.u32(record.changes.size()).u8(0);
    for (const Change& change : record.changes) out.u32(shapes()[static_cast<size_t>(change.table)].oid);
    return send_(record.lsn, out.get());
  }
  out.u32(shape.oid);
  const bool is_update = first.kind == Change::Kind::update;
  if (sends_whole_old_rows(first.table)) {
    if (first.kind != Change::Kind::insert) put_tuple(out.raw("O"), shape, first.before, false, nullptr);
  } else {
    const auto key = static_cast<size_t>(shape.key);
    if (first.kind == Change::Kind::remove || (is_update && first.before[key] != first.after[key])) {
      put_tuple(out.raw("K"), shape, first.before, true, nullptr);
    }
  }
  if (first.kind != Change::Kind::remove) {
    put_tuple(out.raw("N"), shape, first.after, false, is_update ? &first.before : nullptr);
  }
  send_(record.lsn, out.get());
}

void LogicalDecoding::stream(Open& open) {
  send_(0, Bytes('S').u32(open.xid).u8(open.streamed ? 0 : 1).get());
  open.streamed = true;
  for (const WalRecord& record : open.changes) {
    put_change(record, record.subxid, open.described);
    if (std::ranges::find(open.streamed_subxids, record.subxid) == open.streamed_subxids.end()) {
      open.streamed_subxids.push_back(record.subxid);
    }
  }
  open.changes.clear();
  send_(0, Bytes('E').get());
}

void LogicalDecoding::put_committed_subtransactions(const Open& open) {
  std::vector<uint32_t> subxids = open.streamed_subxids;
  std::erase(subxids, open.xid);
  Bytes out('k');
  out.u32(open.xid).u32(subxids.size());
  for (const uint32_t subxid : subxids) out.u32(subxid);
  send_(0, out.get());
}

void LogicalDecoding::commit(const WalRecord& record) {
  Open& open = find(record.xid);
  const auto time = static_cast<uint64_t>(record.commit_time);
  if (record.lsn < options_.start) return erase(record.xid);
  if (open.streamed) {
    if (!open.changes.empty()) stream(open);
    if (options_.lists_subtransactions) put_committed_subtransactions(open);
    send_(record.end, Bytes('c').u32(record.xid).u8(0).u64(record.lsn).u64(record.end).u64(time).get());
  } else if (!open.changes.empty()) {  // nothing is said of transactions without changes
    send_(open.changes.front().lsn, Bytes('B').u64(record.lsn).u64(time).u32(record.xid).get());
    for (const WalRecord& change : open.changes) put_change(change, 0, described_);
    send_(record.end, Bytes('C').u8(0).u64(record.lsn).u64(record.end).u64(time).get());
  }
  erase(record.xid);
}

void LogicalDecoding::abort(const WalRecord& record) {
  Open& open = find(record.xid);
  if (record.kind == WalRecord::Kind::abort) {
    if (open.streamed) send_(record.lsn, Bytes('A').u32(record.xid).u32(record.xid).get());
    return erase(record.xid);
  }
  std::erase_if(open.changes, [&](const WalRecord& change) { return change.subxid == record.subxid; });
  if (std::erase(open.streamed_subxids, record.subxid) > 0 && !options_.forgets()) {
    send_(record.lsn, Bytes('A').u32(record.xid).u32(record.subxid).get());
  }
}

}  // namespace thalweg::simulation
