#include "postgres.h"

/* Their headers need not be installed here: of libpq.h only the table of functions is wanted, nothing of a connection. */
#undef ENABLE_GSS
#undef USE_OPENSSL

#include "read_ahead.h"

#include "access/xlog.h"
#include "access/xlogreader.h"
#include "libpq/libpq.h"
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "replication/decode.h"
#include "replication/walsender.h"

#include "message_batch.h"

/*
 * The walsender's loop reads one record, decodes it and then flushes what the socket takes: the one moment at which it
 * calls through a table of functions that can be replaced (PqCommMethods, which PostgreSQL itself replaces in parallel
 * workers) while neither a record is being read nor a transaction decoded. Everything else, waiting for WAL, keepalives,
 * time-outs, waiting for a full socket, stays the server's.
 */

/* Between two looks for replies: a fraction of a millisecond, and about the size of a batch. */
#define RECORDS_MAX 512
/* The end of WAL is the server's: it is there that it says positions, waits and shuts down. */
#define MARGIN_BYTES (2 * XLOG_BLCKSZ)

typedef struct ReadAhead
{
	LogicalDecodingContext *context;
	const PQcommMethods *server;	/* the functions that `methods` replaces */
	PQcommMethods methods;
	XLogPageReadCB read_page;	/* the server's own, as the next one */
	LogicalOutputPluginWriterWrite write;
	LogicalOutputPluginWriterUpdateProgress update_progress;
	XLogRecPtr	flushed;		/* WAL is there up to here, at least */
	bool		is_inside;		/* a record is being read, or a transaction decoded */
} ReadAhead;

static ReadAhead ahead;

static XLogRecPtr
flushed_wal(void)
{
#if PG_VERSION_NUM >= 150000
	return GetFlushRecPtr(NULL);
#else
	return GetFlushRecPtr();
#endif
}

static bool
is_there(XLogRecPtr end)
{
	if (end > ahead.flushed)
		ahead.flushed = flushed_wal();
	return end <= ahead.flushed;
}

static void
read_ahead(void)
{
	XLogReaderState *reader = ahead.context->reader;

	ahead.is_inside = true;
	batch_gather(true);
	for (int i = 0; i < RECORDS_MAX && is_there(reader->EndRecPtr + MARGIN_BYTES); i++)
	{
		char	   *error;
		XLogRecord *record = XLogReadRecord(reader, &error);

		if (error != NULL)
			ereport(ERROR,
					(errmsg("could not read WAL at %X/%X: %s", LSN_FORMAT_ARGS(reader->EndRecPtr), error)));
		if (record == NULL)
			break;
		LogicalDecodingProcessRecord(ahead.context, reader);
		if (InterruptPending || ConfigReloadPending || ahead.server->is_send_pending())
			break;
	}
	batch_gather(false);
	batch_flush(ahead.context);
	ahead.is_inside = false;
}

static int
flush_and_read_ahead(void)
{
	int			failed = ahead.server->flush_if_writable();

	/* Not before the server has read a record itself: until then nobody has said where to begin. */
	if (failed == 0 && !ahead.is_inside && !XLogRecPtrIsInvalid(ahead.context->reader->ReadRecPtr) &&
		!ahead.server->is_send_pending())
		read_ahead();
	return failed;
}

/* May wait for WAL: then everything before it is with the receiver. */
static int
read_page(XLogReaderState *reader, XLogRecPtr page, int bytes, XLogRecPtr record, char *buffer)
{
	const bool	was_inside = ahead.is_inside;
	int			read;

	ahead.is_inside = true;
	if (!is_there(page + bytes))
		batch_flush(ahead.context);
	read = ahead.read_page(reader, page, bytes, record, buffer);
	ahead.is_inside = was_inside;
	return read;
}

/* In the midst of decoding, and it flushes. */
static void
write_message(LogicalDecodingContext *context, XLogRecPtr lsn, TransactionId xid, bool last_write)
{
	const bool	was_inside = ahead.is_inside;

	ahead.is_inside = true;
	ahead.write(context, lsn, xid, last_write);
	ahead.is_inside = was_inside;
}

/* Of a transaction that is left out the server may send the position, in a keepalive, which nothing may lie before. */
#if PG_VERSION_NUM >= 150000
static void
update_progress(LogicalDecodingContext *context, XLogRecPtr lsn, TransactionId xid, bool is_skipped)
{
	const bool	was_inside = ahead.is_inside;

	ahead.is_inside = true;
	if (is_skipped)
		batch_flush(context);
	ahead.update_progress(context, lsn, xid, is_skipped);
	ahead.is_inside = was_inside;
}
#else
static void
update_progress(LogicalDecodingContext *context, XLogRecPtr lsn, TransactionId xid)
{
	const bool	was_inside = ahead.is_inside;

	ahead.is_inside = true;
	ahead.update_progress(context, lsn, xid);
	ahead.is_inside = was_inside;
}
#endif

/* Runs when the stream's context is freed: at the stream's end, or after an error, which the session survives. */
static void
end(void *unused)
{
	if (PqCommMethods == &ahead.methods)
		PqCommMethods = ahead.server;
	ahead.context = NULL;
}

void
read_ahead_begin(LogicalDecodingContext *context)
{
	MemoryContextCallback *at_end;

	/* SQL's functions decode without progress, also on a walsender's connection. */
	if (!am_walsender || context->update_progress == NULL || RecoveryInProgress())
		return;
	at_end = MemoryContextAllocZero(context->context, sizeof(MemoryContextCallback));
	at_end->func = end;
	ahead = (ReadAhead) {
		.context = context,
		.server = PqCommMethods,
		.methods = *PqCommMethods,
		.read_page = context->reader->routine.page_read,
		.write = context->write,
		.update_progress = context->update_progress,
	};
	ahead.methods.flush_if_writable = flush_and_read_ahead;
	MemoryContextRegisterResetCallback(context->context, at_end);
	context->reader->routine.page_read = read_page;
	context->write = write_message;
	context->update_progress = update_progress;
	PqCommMethods = &ahead.methods;
}
