#include "shipment/source_identity.h"

#include <bit>
#include <charconv>
#include <string>

#include <fmt/format.h>

namespace thalweg::shipment {

namespace {

// In bytes, as pg_settings has it: SHOW would say "16MB". IsValidWalSegSize of src/include/access/xlog_internal.h.
base::Result<uint32_t> segment_bytes_of(pg::Connection& connection) {
  constexpr int64_t kMin = int64_t{1} << 20;
  constexpr int64_t kMax = int64_t{1} << 30;
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.script("SELECT setting FROM pg_catalog.pg_settings WHERE name = 'wal_segment_size'"));
  const int64_t bytes = rows.size() == 1 ? rows.integer(0, 0) : 0;
  if (bytes >= kMin && bytes <= kMax && std::has_single_bit(static_cast<uint64_t>(bytes))) {
    return static_cast<uint32_t>(bytes);
  }
  return base::fail(base::ErrorCode::protocol_violation,
                    fmt::format("The source says that its WAL segments have {} bytes.", bytes));
}

// 0 would be any system's.
base::Result<uint64_t> number_of(const std::string& identifier) {
  uint64_t number = 0;
  const char* const end = identifier.data() + identifier.size();
  const auto [stopped, error] = std::from_chars(identifier.data(), end, number);
  if (error == std::errc{} && stopped == end && number != 0) return number;
  return base::fail(base::ErrorCode::protocol_violation,
                    fmt::format("The source's system identifier is {}, no number.", identifier));
}

}  // namespace

base::Result<WalIdentity> identify(pg::ReplicationStream& source) {
  THALWEG_ASSIGN(const pg::SystemIdentity identity, source.identify());
  if (identity.standby) {
    return base::fail(base::ErrorCode::source_read_only, "The source is a standby now: its WAL may end otherwise.",
                      base::ErrorSide::source);
  }
  THALWEG_ASSIGN(const uint64_t system, number_of(identity.system_identifier));
  THALWEG_ASSIGN(const uint32_t segment_bytes, segment_bytes_of(source.connection()));
  auto history = source.timeline_history(identity.timeline);
  if (!history && base::class_of(history.error().code) == base::ErrorClass::transient) {
    return std::unexpected(history.error());
  }
  return WalIdentity{.system_identifier = system,
                     .history = std::move(history).value_or(pg::TimelineHistory(identity.timeline)),
                     .segment_bytes = segment_bytes};
}

}  // namespace thalweg::shipment
