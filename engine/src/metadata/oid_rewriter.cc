#include "metadata/oid_rewriter.h"

#include <cstdint>

#include <fmt/format.h>

namespace thalweg::metadata {

namespace {

using base::ErrorCode;

// Walks over foreign bytes; every step checks that they are there.
class Cursor {
 public:
  explicit Cursor(std::span<std::byte> bytes) : rest_(bytes) {}

  std::span<std::byte> take(size_t size) {
    if (size > rest_.size()) {
      failed_ = true;
      rest_ = {};
      return {};
    }
    const auto taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }
  int32_t integer() {
    const auto bytes = take(4);
    if (bytes.empty()) return 0;
    uint32_t value = 0;
    for (const auto byte : bytes) value = value << 8 | std::to_integer<uint32_t>(byte);
    return static_cast<int32_t>(value);
  }
  void put_oid(base::TypeId oid) {
    const auto bytes = take(4);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(oid.value >> (24 - 8 * i) & 0xFF);
  }
  bool failed() const { return failed_; }
  bool at_end() const { return rest_.empty(); }

 private:
  std::span<std::byte> rest_;
  bool failed_ = false;
};

std::unexpected<base::Error> differs(const TypeNode& type, const char* what) {
  return base::fail(ErrorCode::destination_table_differs,
                    fmt::format("a value does not fit the destination's type {}: {}", type.name, what));
}

// A length, then so many bytes of `type`; -1 is NULL.
base::Result<void> rewrite_sized(const TypeNode& type, Cursor& cursor) {
  const int32_t length = cursor.integer();
  if (cursor.failed() || length < -1) return differs(type, "its bytes end early");
  if (length == -1) return {};
  const auto value = cursor.take(static_cast<size_t>(length));
  if (cursor.failed()) return differs(type, "its bytes end early");
  return rewrite_oids(type, value);
}

// ndim, flags, element oid, (length, lower bound) per dimension, elements.
base::Result<void> rewrite_array(const TypeNode& type, Cursor& cursor) {
  const int32_t dimensions = cursor.integer();
  cursor.take(4);
  cursor.put_oid(type.element->oid);
  if (dimensions < 0 || dimensions > 6) return differs(type, "it has too many dimensions");
  cursor.take(static_cast<size_t>(dimensions) * 8);
  while (!cursor.failed() && !cursor.at_end()) THALWEG_TRY(rewrite_sized(*type.element, cursor));
  return {};
}

// Number of fields, then (oid, sized value) per field.
base::Result<void> rewrite_composite(const TypeNode& type, Cursor& cursor) {
  if (cursor.integer() != static_cast<int32_t>(type.fields.size())) return differs(type, "it has other fields");
  for (const auto& field : type.fields) {
    cursor.put_oid(field->oid);
    THALWEG_TRY(rewrite_sized(*field, cursor));
  }
  return {};
}

// Flags: 1 empty, 8 and 16 infinite bounds, 32 and 64 (never sent) null bounds.
base::Result<void> rewrite_range(const TypeNode& type, Cursor& cursor) {
  const auto flags = cursor.take(1);
  if (flags.empty()) return differs(type, "its bytes end early");
  const auto bits = std::to_integer<unsigned>(flags.front());
  if ((bits & 1U) != 0) return {};
  if ((bits & (8U | 32U)) == 0) THALWEG_TRY(rewrite_sized(*type.element, cursor));
  if ((bits & (16U | 64U)) == 0) THALWEG_TRY(rewrite_sized(*type.element, cursor));
  return {};
}

}  // namespace

base::Result<void> rewrite_oids(const TypeNode& type, std::span<std::byte> value) {
  if (!type.embeds_oids) return {};
  Cursor cursor(value);
  switch (type.kind) {
    case TypeKind::base:
    case TypeKind::enumeration:
      return {};
    case TypeKind::array:
      THALWEG_TRY(rewrite_array(type, cursor));
      break;
    case TypeKind::composite:
      THALWEG_TRY(rewrite_composite(type, cursor));
      break;
    case TypeKind::range:
      THALWEG_TRY(rewrite_range(type, cursor));
      break;
    case TypeKind::multirange: {
      int32_t ranges = cursor.integer();
      for (; ranges > 0 && !cursor.failed(); --ranges) THALWEG_TRY(rewrite_sized(*type.element, cursor));
      break;
    }
  }
  if (cursor.failed() || !cursor.at_end()) return differs(type, "its bytes end early or go on too long");
  return {};
}

}  // namespace thalweg::metadata
