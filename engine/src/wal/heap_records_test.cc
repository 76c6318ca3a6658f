#include "wal/heap_records.h"

#include <gtest/gtest.h>

#include <string>

#include "wal/file_records.h"
#include "wal/transaction_records.h"

namespace thalweg::wal {
namespace {

// A record with one block, field by field as they lie in the WAL.
class Bytes {
 public:
  Bytes& u8(uint8_t value) { return number(value); }
  Bytes& u16(uint16_t value) { return number(value); }
  Bytes& u32(uint32_t value) { return number(value); }
  Bytes& raw(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  const std::string& text() const { return bytes_; }

 private:
  template <typename Number>
  Bytes& number(Number value) {
    return raw({reinterpret_cast<const char*>(&value), sizeof value});
  }
  std::string bytes_;
};

class Parsed {
 public:
  Parsed(Rmgr rmgr, uint8_t info, const Bytes& block, const Bytes& main) {
    Bytes body;
    if (!block.text().empty()) {
      body.u8(0).u8(0x20).u16(static_cast<uint16_t>(block.text().size())).u32(1663).u32(5).u32(16384).u32(7);
    }
    body.u8(255).u8(static_cast<uint8_t>(main.text().size())).raw(block.text()).raw(main.text());
    body_ = body.text();
    record_.begin = {0x1234};
    record_.rmgr = rmgr;
    record_.info = info;
    record_.xid = {700};
    record_.body = std::as_bytes(std::span{body_});
    const auto parsed = parts_.parse(record_, *wal_format_of(0xD110));
    EXPECT_TRUE(parsed) << parsed.error().message;
  }
  base::Result<HeapChange> heap() { return heap_records_.parse(record_, parts_); }
  base::Result<TransactionRecord> transaction() { return parse_transaction(record_, parts_, *wal_format_of(0xD110)); }
  base::Result<std::optional<FileMap>> map() { return parse_file_map(record_, parts_); }

 private:
  std::string body_;
  WalRecord record_;
  RecordParts parts_;
  HeapRecords heap_records_;
};

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A row of two columns without NULLs: one byte of padding behind the header of 23.
Bytes row(std::string_view values) { return Bytes().u16(2).u16(0).u8(24).raw(std::string(1, '\0')).raw(values); }

TEST(HeapRecordsTest, AnInsertHasItsRow) {
  Parsed parsed(Rmgr::heap, 0x00, row("values"), Bytes().u16(3).u8(0));
  const auto change = parsed.heap();
  ASSERT_TRUE(change) << change.error().message;
  EXPECT_EQ(change->operation, HeapOperation::insert);
  ASSERT_EQ(change->tuples.size(), 1U);
  EXPECT_EQ(change->tuples[0].offset, 3);
  EXPECT_EQ(change->tuples[0].tuple.columns(), 2);
  EXPECT_EQ(text(change->tuples[0].tuple.values()), "values");
}

TEST(HeapRecordsTest, AnUpdateLeavesOutWhatTheRowsHaveInCommon) {
  const Bytes main = Bytes().u32(0).u16(5).u8(0).u8(0x60).u32(0).u16(6);
  Parsed parsed(Rmgr::heap, 0x40, Bytes().u16(4).u16(9).raw(row("middle").text()), main);
  const auto change = parsed.heap();
  ASSERT_TRUE(change) << change.error().message;
  EXPECT_EQ(change->operation, HeapOperation::update);
  EXPECT_EQ(change->old_offset, 5);
  EXPECT_EQ(change->old_page, change->new_page) << "no other page is named";
  const NewTuple& added = change->tuples[0];
  EXPECT_EQ(std::tuple(added.offset, added.prefix_bytes, added.suffix_bytes), std::tuple(6, 4, 9));
  EXPECT_EQ(text(added.tuple.values()), "middle");
}

TEST(HeapRecordsTest, RowsOfAMultiInsertBeginAtEvenPlaces) {
  Bytes block;
  for (const std::string values : {"odd", "even"}) {
    if (block.text().size() % 2 != 0) block.u8(0);
    block.u16(static_cast<uint16_t>(values.size() + 1)).raw(row(values).text());
  }
  const Bytes listed = Bytes().u8(0).u8(0).u16(2).u16(4).u16(8);
  Parsed parsed(Rmgr::heap2, 0x50, block, listed);
  const auto change = parsed.heap();
  ASSERT_TRUE(change) << change.error().message;
  ASSERT_EQ(change->tuples.size(), 2U);
  EXPECT_EQ(std::pair(change->tuples[0].offset, text(change->tuples[0].tuple.values())),
            std::pair(uint16_t{4}, std::string("odd")));
  EXPECT_EQ(std::pair(change->tuples[1].offset, text(change->tuples[1].tuple.values())),
            std::pair(uint16_t{8}, std::string("even")));
  // On a page that is made anew they are in order.
  Parsed first(Rmgr::heap2, 0xD0, block, Bytes().u8(0).u8(0).u16(2));
  EXPECT_EQ(first.heap()->tuples[1].offset, 2);
}

TEST(HeapRecordsTest, WhatIsCutIsRefused) {
  EXPECT_FALSE(Parsed(Rmgr::heap, 0x00, Bytes().u16(2).u16(0).u8(24), Bytes().u16(3).u8(0)).heap());
  EXPECT_FALSE(Parsed(Rmgr::heap, 0x00, row("values"), Bytes().u16(3)).heap());
  EXPECT_FALSE(Parsed(Rmgr::heap, 0x00, Bytes().u16(2).u16(1).u8(23).raw("x"), Bytes().u16(3).u8(0)).heap())
      << "no room for the bitmap of NULLs";
  EXPECT_FALSE(Parsed(Rmgr::heap, 0x10, Bytes(), Bytes().u32(0).u16(1).u8(0).u8(0)).heap()) << "of no page";
  EXPECT_FALSE(Parsed(Rmgr::heap2, 0x50, row("x"), Bytes().u8(0).u8(0).u16(9)).heap());
}

TEST(TransactionRecordsTest, AnEndNamesItsSubtransactions) {
  const Bytes commit = Bytes()
                           .u32(1)
                           .u32(2)
                           .u32(0x1F)
                           .u32(5)
                           .u32(1663)  // time, what follows, database
                           .u32(2)
                           .u32(701)
                           .u32(702)  // subtransactions
                           .u32(1)
                           .u32(1663)
                           .u32(5)
                           .u32(16400)  // files
                           .u32(1)
                           .raw(std::string(16, 'i'))
                           .u32(690);  // invalidations, the prepared transaction
  const auto end = Parsed(Rmgr::transaction, 0xB0, Bytes(), commit).transaction();
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->operation, TransactionOperation::commit);
  EXPECT_EQ(end->xid.value, 690U);
  ASSERT_EQ(end->subtransactions.size(), 2U);
  EXPECT_EQ(end->subtransactions[1].value, 702U);
  EXPECT_FALSE(Parsed(Rmgr::transaction, 0x80, Bytes(), Bytes().u32(1).u32(2).u32(0x02).u32(4'000'000)).transaction());
}

TEST(FileRecordsTest, AMapTellsTheCatalogsFiles) {
  const Bytes update = Bytes().u32(5).u32(1663).u32(24).u32(0x592717).u32(2).u32(1259).u32(90).u32(1249).u32(91);
  const auto map = Parsed(Rmgr::relation_map, 0x00, Bytes(), update).map();
  ASSERT_TRUE(map && *map);
  EXPECT_EQ((*map)->database, 5U);
  EXPECT_EQ((*map)->numbers, (std::vector<std::pair<uint32_t, uint32_t>>{{1259, 90}, {1249, 91}}));
  EXPECT_FALSE(Parsed(Rmgr::relation_map, 0x00, Bytes(), Bytes().u32(5).u32(1663).u32(24).u32(0).u32(9)).map());
}

}  // namespace
}  // namespace thalweg::wal
