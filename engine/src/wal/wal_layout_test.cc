#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "wal/page_header.h"
#include "wal/record_parts.h"
#include "wal/wal_format.h"
#include "wal/wal_record.h"

// The layouts that the log reader assumes, beside those in the headers of the server that is installed.

#ifdef THALWEG_SERVER_HEADERS
extern "C" {
#include <postgres_fe.h>

#include <access/rmgr.h>
#include <access/xlog_internal.h>
#include <access/xlogrecord.h>
#include <catalog/pg_control.h>
}

namespace thalweg::wal {
namespace {

static_assert(kPageBytes == XLOG_BLCKSZ && kPageBytes == BLCKSZ);
static_assert(kRecordAlignment == MAXIMUM_ALIGNOF);
static_assert(kPageHeaderBytes == SizeOfXLogShortPHD && kLongPageHeaderBytes == SizeOfXLogLongPHD);
static_assert(offsetof(XLogPageHeaderData, xlp_magic) == 0 && offsetof(XLogPageHeaderData, xlp_info) == 2);
static_assert(offsetof(XLogPageHeaderData, xlp_tli) == 4 && offsetof(XLogPageHeaderData, xlp_pageaddr) == 8);
static_assert(offsetof(XLogPageHeaderData, xlp_rem_len) == 16);
static_assert(offsetof(XLogLongPageHeaderData, xlp_sysid) == 24);
static_assert(offsetof(XLogLongPageHeaderData, xlp_seg_size) == 32);
static_assert(offsetof(XLogLongPageHeaderData, xlp_xlog_blcksz) == 36);
static_assert(XLP_FIRST_IS_CONTRECORD == 0x01 && XLP_LONG_HEADER == 0x02 && (XLP_ALL_FLAGS & ~0x0F) == 0);

static_assert(kRecordHeaderBytes == SizeOfXLogRecord && kRmgrInfo == XLR_RMGR_INFO_MASK);
static_assert(offsetof(XLogRecord, xl_tot_len) == 0 && offsetof(XLogRecord, xl_xid) == 4);
static_assert(offsetof(XLogRecord, xl_prev) == 8 && offsetof(XLogRecord, xl_info) == 16);
static_assert(offsetof(XLogRecord, xl_rmid) == 17 && offsetof(XLogRecord, xl_crc) == 20);
static_assert(XLOG_SWITCH == 0x40 && XLOG_OVERWRITE_CONTRECORD == 0xD0);

static_assert(kBlocksMax == XLR_MAX_BLOCK_ID + 1);
static_assert(SizeOfXLogRecordBlockHeader == 4 && SizeOfXLogRecordBlockImageHeader == 5);
static_assert(BKPBLOCK_FORK_MASK == 0x0F && BKPBLOCK_HAS_IMAGE == 0x10 && BKPBLOCK_HAS_DATA == 0x20);
static_assert(BKPBLOCK_WILL_INIT == 0x40 && BKPBLOCK_SAME_REL == 0x80 && BKPIMAGE_HAS_HOLE == 0x01);
static_assert(XLR_BLOCK_ID_DATA_SHORT == 255 && XLR_BLOCK_ID_DATA_LONG == 254);
static_assert(XLR_BLOCK_ID_ORIGIN == 253 && XLR_BLOCK_ID_TOPLEVEL_XID == 252);

TEST(WalLayoutTest, IsThatOfTheInstalledServer) {
  const WalFormat* const format = wal_format_of(XLOG_PAGE_MAGIC);
  ASSERT_NE(format, nullptr);
  EXPECT_EQ(format->version, PG_VERSION_NUM / 10'000);
  EXPECT_EQ(format->overwrite_flag, XLP_FIRST_IS_OVERWRITE_CONTRECORD);
  EXPECT_EQ(format->image_applies, BKPIMAGE_APPLY);
#ifdef BKPIMAGE_COMPRESS_PGLZ
  EXPECT_EQ(format->image_pglz, BKPIMAGE_COMPRESS_PGLZ);
  EXPECT_EQ(format->image_lz4, BKPIMAGE_COMPRESS_LZ4);
  EXPECT_EQ(format->image_zstd, BKPIMAGE_COMPRESS_ZSTD);
#endif
  for (const auto& [ours, theirs] :
       {std::pair{Rmgr::xlog, RM_XLOG_ID}, std::pair{Rmgr::transaction, RM_XACT_ID},
        std::pair{Rmgr::storage, RM_SMGR_ID}, std::pair{Rmgr::database, RM_DBASE_ID},
        std::pair{Rmgr::relation_map, RM_RELMAP_ID}, std::pair{Rmgr::standby, RM_STANDBY_ID},
        std::pair{Rmgr::heap2, RM_HEAP2_ID}, std::pair{Rmgr::heap, RM_HEAP_ID},
        std::pair{Rmgr::logical_message, RM_LOGICALMSG_ID}}) {
    EXPECT_EQ(static_cast<int>(ours), static_cast<int>(theirs));
  }
}

}  // namespace
}  // namespace thalweg::wal
#endif
