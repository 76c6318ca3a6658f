#pragma once

#include <compare>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

// Domain quantities. None converts to another or to a raw integer by itself.

namespace thalweg::base {

// A byte position in a PostgreSQL source's WAL. Zero is "none" (InvalidXLogRecPtr).
struct Lsn {
  uint64_t value = 0;
  constexpr auto operator<=>(const Lsn&) const = default;
  constexpr explicit operator bool() const { return value != 0; }
};

// PostgreSQL's text form, two hexadecimal halves: "16/B374D848".
std::string to_string(Lsn lsn);
std::optional<Lsn> parse_lsn(std::string_view text);

// A transaction id of the source, 32 bits, wrapping; only compared for equality.
struct Xid {
  uint32_t value = 0;
  constexpr bool operator==(const Xid&) const = default;
  constexpr explicit operator bool() const { return value != 0; }
};

// pg_class.oid of a table at the source.
struct RelationId {
  uint32_t value = 0;
  constexpr auto operator<=>(const RelationId&) const = default;
};

// pg_type.oid in the database that the context names.
struct TypeId {
  uint32_t value = 0;
  constexpr auto operator<=>(const TypeId&) const = default;
};

// Totally ordered place in a source's history.
struct Position {
  Lsn commit_lsn;
  uint64_t sequence = 0;  // place within the transaction, from 0
  constexpr auto operator<=>(const Position&) const = default;
};

// Microseconds since 1970-01-01 00:00 UTC. PostgreSQL's own epoch is 2000-01-01.
struct UnixMicros {
  int64_t value = 0;
  constexpr auto operator<=>(const UnixMicros&) const = default;
};
inline constexpr int64_t kPostgresEpochMicros = 946'684'800'000'000;

}  // namespace thalweg::base

template <>
struct std::hash<thalweg::base::Xid> {
  size_t operator()(thalweg::base::Xid xid) const noexcept { return xid.value * 0x9E3779B97F4A7C15ULL; }
};
template <>
struct std::hash<thalweg::base::RelationId> {
  size_t operator()(thalweg::base::RelationId id) const noexcept { return id.value * 0x9E3779B97F4A7C15ULL; }
};
