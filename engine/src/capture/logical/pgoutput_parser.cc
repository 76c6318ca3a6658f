#include "capture/logical/pgoutput_parser.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "lcr/bytes.h"

namespace thalweg::capture {

namespace {

using base::ErrorCode;
using lcr::ByteReader;

constexpr uint16_t kColumnsMax = 1664;  // PostgreSQL's MaxTupleAttributeNumber
constexpr size_t kNameBytesMax = 1024;  // PostgreSQL's is 63, a build may have more
constexpr uint8_t kKeyColumn = 1;
constexpr uint8_t kTruncateCascade = 1;
constexpr uint8_t kTruncateRestartIdentity = 2;

std::unexpected<base::Error> violation(char kind, std::string_view what) {
  return base::fail(ErrorCode::protocol_violation,
                    fmt::format("A pgoutput message of kind {} ({}): {}.", static_cast<int>(kind),
                                kind >= ' ' && kind <= '~' ? kind : '?', what));
}

// Reads the fields of one message. Failure sticks in `reader`, so that a message is checked once, at its end.
class Fields {
 public:
  explicit Fields(std::span<const std::byte> bytes) : bytes_(bytes), reader_(bytes) {}

  uint8_t u8() { return reader_.integer<uint8_t>(); }
  uint16_t u16() { return reader_.integer<uint16_t>(); }
  uint32_t u32() { return reader_.integer<uint32_t>(); }
  base::Xid xid() { return {u32()}; }
  base::RelationId relation() { return {u32()}; }
  base::Lsn lsn() { return {reader_.integer<uint64_t>()}; }
  base::UnixMicros time() {
    // Any 64 bits may come: the sum wraps instead of overflowing.
    return {static_cast<int64_t>(reader_.integer<uint64_t>() + static_cast<uint64_t>(base::kPostgresEpochMicros))};
  }

  std::string_view text() {
    const auto rest = bytes_.last(reader_.remaining());
    const void* end = rest.empty() ? nullptr : std::memchr(rest.data(), 0, rest.size());
    if (end == nullptr) {
      reader_.take(reader_.remaining() + 1);  // no terminator: fail
      return {};
    }
    const size_t length = static_cast<size_t>(static_cast<const std::byte*>(end) - rest.data());
    const std::string_view found = reader_.text(length);
    reader_.take(1);
    return found;
  }

  std::span<const std::byte> take(size_t size) { return reader_.take(size); }

  std::span<const std::byte> tuple() {
    const auto rest = bytes_.last(reader_.remaining());
    const auto length = lcr::check_tuple(rest);
    if (!length) {
      reader_.take(reader_.remaining() + 1);
      return {};
    }
    return reader_.take(*length);
  }

  // Whether everything was there, and nothing more.
  bool complete() const { return !reader_.failed() && reader_.remaining() == 0; }
  bool failed() const { return reader_.failed(); }
  size_t remaining() const { return reader_.remaining(); }

 private:
  std::span<const std::byte> bytes_;
  ByteReader reader_;
};

bool is_name(std::string_view name) { return !name.empty() && name.size() <= kNameBytesMax; }

// pgoutput leaves the name of pg_catalog out.
std::string_view schema_of(std::string_view name) { return name.empty() ? "pg_catalog" : name; }

bool read_relation(Fields& in, lcr::TableDescription& table) {
  table.relation = in.relation();
  table.version = 0;
  table.schema_name = schema_of(in.text());
  table.table_name = in.text();
  table.replica_identity = static_cast<char>(in.u8());
  const uint16_t columns = in.u16();
  if (in.failed() || columns > kColumnsMax || table.relation.value == 0) return false;
  if (!is_name(table.schema_name) || !is_name(table.table_name)) return false;
  if (std::string_view{"dnfi"}.find(table.replica_identity) == std::string_view::npos) return false;
  table.columns.clear();
  for (uint16_t i = 0; i < columns && !in.failed(); ++i) {
    const bool is_key = (in.u8() & kKeyColumn) != 0;
    std::string name{in.text()};
    const base::TypeId type{in.u32()};
    const auto modifier = static_cast<int32_t>(in.u32());
    if (!is_name(name)) return false;
    table.columns.push_back({.name = std::move(name), .type = type, .type_modifier = modifier, .is_key = is_key});
  }
  return true;
}

bool read_row(Fields& in, MessageKind kind, PgoutputMessage& out) {
  out.relation = in.relation();
  out.old_flags = 0;
  out.old_tuple = {};
  out.new_tuple = {};
  char mark = static_cast<char>(in.u8());
  if (kind != MessageKind::insert && (mark == 'K' || mark == 'O')) {
    out.old_flags = mark == 'K' ? lcr::kOldKey : lcr::kOldRow;
    out.old_tuple = in.tuple();
    if (kind == MessageKind::update) mark = static_cast<char>(in.u8());
  } else if (kind == MessageKind::remove) {
    return false;
  }
  if (kind != MessageKind::remove) {
    if (mark != 'N') return false;
    out.new_tuple = in.tuple();
  }
  return !in.failed() && out.relation.value != 0;
}

bool read_truncate(Fields& in, PgoutputMessage& out) {
  const uint32_t count = in.u32();
  const uint8_t options = in.u8();
  if (in.failed() || count == 0 || in.remaining() != size_t{count} * sizeof(uint32_t)) return false;
  out.truncate_flags = static_cast<uint16_t>(((options & kTruncateCascade) != 0 ? lcr::kCascade : 0) |
                                             ((options & kTruncateRestartIdentity) != 0 ? lcr::kRestartIdentity : 0));
  out.truncated.clear();
  for (uint32_t i = 0; i < count; ++i) out.truncated.push_back(in.relation());
  return true;
}

bool read_subxids(Fields& in, PgoutputMessage& out) {
  const uint32_t count = in.u32();
  if (in.failed() || in.remaining() != size_t{count} * sizeof(uint32_t)) return false;
  out.subxids.clear();
  for (uint32_t i = 0; i < count; ++i) out.subxids.push_back(in.xid());
  return true;
}

void read_logical_message(Fields& in, PgoutputMessage& out) {
  in.u8();  // whether it belongs to the transaction
  in.lsn();
  out.prefix = in.text();
  const auto content = in.take(in.u32());
  out.content = {reinterpret_cast<const char*>(content.data()), content.size()};
}

void read_commit(Fields& in, PgoutputMessage& out) {
  in.u8();  // flags, none defined
  out.commit_lsn = in.lsn();
  out.end_lsn = in.lsn();
  out.commit_time = in.time();
}

bool is_change(MessageKind kind) {
  return kind == MessageKind::insert || kind == MessageKind::update || kind == MessageKind::remove ||
         kind == MessageKind::truncate || kind == MessageKind::relation || kind == MessageKind::type;
}

}  // namespace

base::Result<const PgoutputMessage*> PgoutputParser::parse(std::span<const std::byte> bytes) {
  if (bytes.empty()) return violation('\0', "it is empty");
  const char letter = static_cast<char>(bytes[0]);
  const auto kind = static_cast<MessageKind>(letter);
  Fields in(bytes.subspan(1));
  PgoutputMessage& out = message_;
  out.kind = kind;

  if (is_change(kind)) {
    if (place_ == Place::outside) return violation(letter, "it stands outside a transaction");
    out.xid = place_ == Place::stream ? in.xid() : open_xid_;
    if (!out.xid) return violation(letter, "it names no transaction");
  }
  bool valid = true;
  Place place = place_;
  switch (kind) {
    case MessageKind::insert:
    case MessageKind::update:
    case MessageKind::remove:
      valid = read_row(in, kind, out);
      break;
    case MessageKind::truncate:
      valid = read_truncate(in, out);
      break;
    case MessageKind::relation:
      valid = read_relation(in, out.table);
      break;
    case MessageKind::type:
      in.u32();
      in.text();
      in.text();
      break;
    case MessageKind::origin:
      valid = place_ != Place::outside;
      in.lsn();
      out.origin = in.text();
      break;
    case MessageKind::message:
      if (place_ == Place::stream) in.xid();
      read_logical_message(in, out);
      break;
    case MessageKind::begin:
      valid = place_ == Place::outside;
      out.commit_lsn = in.lsn();
      out.commit_time = in.time();
      out.xid = in.xid();
      place = Place::transaction;
      break;
    case MessageKind::commit:
      valid = place_ == Place::transaction;
      out.xid = open_xid_;
      read_commit(in, out);
      place = Place::outside;
      break;
    case MessageKind::stream_start:
      valid = place_ == Place::outside;
      out.xid = in.xid();
      in.u8();  // whether it is the transaction's first block
      place = Place::stream;
      break;
    case MessageKind::stream_stop:
      valid = place_ == Place::stream;
      out.xid = open_xid_;
      place = Place::outside;
      break;
    case MessageKind::stream_commit:
      valid = place_ == Place::outside;
      out.xid = in.xid();
      read_commit(in, out);
      break;
    case MessageKind::stream_abort:
      valid = place_ == Place::outside;
      out.xid = in.xid();
      out.subxid = in.xid();
      valid = valid && out.subxid;
      break;
    case MessageKind::committed_subtransactions:
      out.xid = in.xid();
      valid = place_ == Place::outside && read_subxids(in, out);
      break;
    default:
      return violation(letter, "neither protocol version 2 nor thalweg_output has it");
  }
  if (!valid) return violation(letter, "its content or its place is not valid");
  if (!in.complete()) return violation(letter, in.failed() ? "it ends too early" : "it goes on too long");
  if (kind != MessageKind::origin && kind != MessageKind::message && !out.xid) {
    return violation(letter, "it names no transaction");
  }
  if (place != place_) {
    place_ = place;
    open_xid_ = place == Place::outside ? base::Xid{} : out.xid;
  }
  return &message_;
}

}  // namespace thalweg::capture
