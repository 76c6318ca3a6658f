#include "wal/heap_page.h"

// The layouts of rows, pages and their records that are assumed, beside those in the headers of the server that is
// installed. They are the headers of the server itself, so nothing but this is in the file.

#ifdef THALWEG_SERVER_HEADERS
extern "C" {
#include <postgres.h>

#include <access/heapam_xlog.h>
#include <access/htup_details.h>
#include <access/xact.h>
#include <catalog/pg_control.h>
#include <catalog/storage_xlog.h>
#include <storage/bufpage.h>
#include <storage/standbydefs.h>
#include <utils/relmapper.h>
}

namespace thalweg::wal {
namespace {

static_assert(kTupleHeaderBytes == SizeofHeapTupleHeader && kColumnsMask == HEAP_NATTS_MASK);
static_assert(kHasNull == HEAP_HASNULL && kXmaxLockOnly == HEAP_XMAX_LOCK_ONLY && kXmaxIsMulti == HEAP_XMAX_IS_MULTI);
static_assert(kXminCommitted == HEAP_XMIN_COMMITTED && kXminInvalid == HEAP_XMIN_INVALID);
static_assert(kXmaxCommitted == HEAP_XMAX_COMMITTED && kXmaxInvalid == HEAP_XMAX_INVALID);
static_assert(offsetof(HeapTupleHeaderData, t_infomask2) == 18 && offsetof(HeapTupleHeaderData, t_infomask) == 20);
static_assert(offsetof(HeapTupleHeaderData, t_hoff) == 22 && offsetof(HeapTupleHeaderData, t_bits) == 23);
static_assert(offsetof(PageHeaderData, pd_lower) == 12 && SizeOfPageHeaderData == 24 && sizeof(ItemIdData) == 4);

static_assert(XLOG_HEAP_INSERT == 0x00 && XLOG_HEAP_DELETE == 0x10 && XLOG_HEAP_UPDATE == 0x20);
static_assert(XLOG_HEAP_HOT_UPDATE == 0x40 && XLOG_HEAP_INPLACE == 0x70 && XLOG_HEAP2_MULTI_INSERT == 0x50);
static_assert(XLOG_HEAP_INIT_PAGE == 0x80 && XLH_UPDATE_PREFIX_FROM_OLD == 0x20 && XLH_UPDATE_SUFFIX_FROM_OLD == 0x40);
static_assert(SizeOfHeapInsert == 3 && SizeOfHeapDelete == 8 && SizeOfHeapUpdate == 14 && SizeOfHeapHeader == 5);
static_assert(offsetof(xl_heap_delete, offnum) == 4 && offsetof(xl_heap_update, old_offnum) == 4);
static_assert(offsetof(xl_heap_update, flags) == 7 && offsetof(xl_heap_update, new_offnum) == 12);
static_assert(SizeOfHeapMultiInsert == 4 && offsetof(xl_heap_multi_insert, ntuples) == 2);
static_assert(SizeOfMultiInsertTuple == 7);

static_assert(XLOG_XACT_COMMIT == 0x00 && XLOG_XACT_PREPARE == 0x10 && XLOG_XACT_ABORT == 0x20);
static_assert(XLOG_XACT_COMMIT_PREPARED == 0x30 && XLOG_XACT_ABORT_PREPARED == 0x40 && XLOG_XACT_ASSIGNMENT == 0x50);
static_assert(XLOG_XACT_HAS_INFO == 0x80 && XACT_XINFO_HAS_DBINFO == 1 && XACT_XINFO_HAS_SUBXACTS == 2);
static_assert(XACT_XINFO_HAS_INVALS == 8 && XACT_XINFO_HAS_TWOPHASE == 16);
static_assert(sizeof(xl_xact_dbinfo) == 8 && sizeof(SharedInvalidationMessage) == 16);

static_assert(XLOG_SMGR_TRUNCATE == 0x20 && sizeof(xl_smgr_truncate) == 20 && SMGR_TRUNCATE_HEAP == 1);
static_assert(XLOG_RELMAP_UPDATE == 0x00 && MinSizeOfRelmapUpdate == 12);
static_assert(XLOG_RUNNING_XACTS == 0x10 && offsetof(xl_running_xacts, oldestRunningXid) == 16);
static_assert(XLOG_CHECKPOINT_SHUTDOWN == 0x00 && XLOG_END_OF_RECOVERY == 0x90);

}  // namespace
}  // namespace thalweg::wal
#endif
