#include "apply/applier/data_layer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "lcr/bytes.h"
#include "metadata/oid_rewriter.h"

namespace thalweg::apply {

namespace {

constexpr std::string_view kVersion = "1.0";
constexpr std::byte kFormat{1};
constexpr size_t kHeaderBytes = 3;              // format, count of tables
constexpr size_t kCallBytesMax = 96 * 1024;     // of frames, and at most one frame more; the server works meanwhile
constexpr size_t kFrameBytesMax = 64'000'000;   // a larger row goes by itself, through SQL
constexpr size_t kTablesMax = 1'000;            // of one call
constexpr std::string_view kRefused = "TW003";  // SQLSTATEs of the extension
constexpr std::string_view kMalformed = "TW001";

const std::string kCall = "SELECT thalweg_datalayer.apply_lcrs($1, $2)";
constexpr std::array kTypes{base::TypeId{17}, base::TypeId{17}};

template <std::integral Integer>
void put(std::vector<std::byte>& out, Integer value) {
  const Integer swapped = lcr::load_network<Integer>(reinterpret_cast<const std::byte*>(&value));
  const auto* const bytes = reinterpret_cast<const std::byte*>(&swapped);
  out.insert(out.end(), bytes, bytes + sizeof(swapped));
}

bool embeds_oids(const metadata::TableMetadata& table) {
  return std::ranges::any_of(table.columns, [](const metadata::Column& column) { return column.type->embeds_oids; });
}

// The oids of types inside values become the destination's, in place.
base::Result<void> rewrite_tuple(const metadata::TableMetadata& table, lcr::TupleView tuple) {
  lcr::ByteReader reader(tuple.bytes());
  if (reader.integer<uint16_t>() != table.columns.size()) {
    return base::fail(base::ErrorCode::corrupt_frame,
                      "a tuple of " + table.quoted_name + " has another number of columns");
  }
  for (const auto& column : table.columns) {
    const auto mark = static_cast<lcr::ValueMark>(reader.integer<uint8_t>());
    if (mark != lcr::ValueMark::binary && mark != lcr::ValueMark::text) continue;
    const auto bytes = reader.take(reader.integer<uint32_t>());
    if (mark == lcr::ValueMark::text || !column.type->embeds_oids) continue;
    // The bytes are those of our own copy.
    THALWEG_TRY(metadata::rewrite_oids(*column.type, {const_cast<std::byte*>(bytes.data()), bytes.size()}));
  }
  return {};
}

}  // namespace

// Only a superuser creates the extension; but its schema may have been there, and whoever owns that can put a function
// of their own in the place of ours.
base::Result<bool> has_data_layer(pg::Connection& connection) {
  THALWEG_ASSIGN(const pg::Rows rows, connection.query("SELECT FROM pg_catalog.pg_extension e "
                                                       "JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace "
                                                       "JOIN pg_catalog.pg_roles r ON r.oid = n.nspowner "
                                                       "WHERE e.extname = 'thalweg_datalayer' AND e.extversion = $1 "
                                                       "AND (n.nspowner = e.extowner OR r.rolsuper)",
                                                       {kVersion}));
  return rows.size() == 1;
}

bool is_refused(std::string_view sqlstate) { return sqlstate == kRefused || sqlstate == kMalformed; }

bool may_be_gone(std::string_view sqlstate) {
  // 42: no such function, or no privilege; 3F: no such schema; 58: its library is gone; 0A: not supported.
  constexpr std::array<std::string_view, 4> kClasses{"42", "3F", "58", "0A"};
  return std::ranges::find(kClasses, sqlstate.substr(0, 2)) != kClasses.end();
}

base::Result<bool> answers_calls(DestinationSession& session) {
  constexpr std::array<std::byte, kHeaderBytes> kNoTables{kFormat};
  const std::array parameters{pg::Parameter{.bytes = kNoTables, .type = {}, .is_null = false, .is_binary = true},
                              pg::Parameter{.bytes = {}, .type = {}, .is_null = false, .is_binary = true}};
  THALWEG_TRY(session.run(session.prepared(kCall, kTypes), parameters, {.any = true}));
  THALWEG_ASSIGN(const auto refusal, session.sync());
  if (refusal && session.broken()) return std::unexpected(refusal->error);
  return !refusal;
}

bool DataLayer::takes(const metadata::TableMetadata& table, lcr::FrameKind kind) {
  return !table.is_partitioned && table.compared.empty() && table.statements.empty() &&
         (kind == lcr::FrameKind::insert || table.identity_index != 0);
}

bool DataLayer::is_too_large(const lcr::FrameView& frame) { return frame.header().length > kFrameBytesMax; }

bool DataLayer::holds(const metadata::TableMetadata& table) const {
  return std::ranges::any_of(tables_, [&](const metadata::TableMetadata* held) {
    return held->destination == table.destination;  // in whichever version
  });
}

void DataLayer::describe(const metadata::TableMetadata& table) {
  last_ = &table;
  if (std::ranges::find(tables_, &table) != tables_.end()) return;
  tables_.push_back(&table);
  if (descriptions_.empty()) descriptions_.resize(kHeaderBytes);
  put(descriptions_, table.source.relation.value);
  put(descriptions_, table.source.version);
  put(descriptions_, table.destination.value);
  put(descriptions_, table.identity_index);
  put(descriptions_, static_cast<uint16_t>(table.columns.size()));
  for (const auto& column : table.columns) put(descriptions_, column.written ? column.attribute : int16_t{0});
}

base::Result<void> DataLayer::add(const metadata::TableMetadata& table, const lcr::FrameView& frame) {
  if (&table != last_) {
    if (tables_.size() >= kTablesMax) THALWEG_TRY(flush());
    describe(table);
  }
  const auto bytes = frame.bytes();
  const size_t at = frames_.size();
  frames_.insert(frames_.end(), bytes.begin(), bytes.end());
  if (embeds_oids(table)) {
    const auto copy = lcr::FrameView::trusted(frames_.data() + at);
    if (copy.old_tuple().exists()) THALWEG_TRY(rewrite_tuple(table, copy.old_tuple()));
    if (copy.new_tuple().exists()) THALWEG_TRY(rewrite_tuple(table, copy.new_tuple()));
  }
  return frames_.size() < kCallBytesMax ? base::Result<void>{} : flush();
}

base::Result<void> DataLayer::flush() {
  if (frames_.empty()) return {};
  descriptions_[0] = kFormat;
  const auto count = static_cast<uint16_t>(tables_.size());
  descriptions_[1] = static_cast<std::byte>(count >> 8);
  descriptions_[2] = static_cast<std::byte>(count & 0xFF);
  const std::array parameters{pg::Parameter{.bytes = descriptions_, .type = {}, .is_null = false, .is_binary = true},
                              pg::Parameter{.bytes = frames_, .type = {}, .is_null = false, .is_binary = true}};
  THALWEG_TRY(session_.run(session_.prepared(kCall, kTypes), parameters, {.any = true, .below_sql = true}));
  calls_.add();
  clear();
  return {};
}

void DataLayer::clear() {
  tables_.clear();
  last_ = nullptr;
  descriptions_.clear();
  frames_.clear();
}

}  // namespace thalweg::apply
