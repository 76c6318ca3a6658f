#include "postgres.h"

#include "message_batch.h"

#include "libpq/pqformat.h"
#include "port/pg_bswap.h"

/* A batch goes out when it has grown to this, so that what the receiver holds stays small: one more message at most. */
#define BATCH_BYTES 65536
#define MESSAGE_HEADER_BYTES (sizeof(uint32) + sizeof(uint64))

/* The batch lies in the context's own output buffer, behind what the server has put there for the first message. */
typedef struct Batch
{
	LogicalOutputPluginWriterPrepareWrite prepare_write;	/* the server's own */
	LogicalOutputPluginWriterWrite write;
	uint8		version;
	int			complete;		/* bytes up to the end of the last whole message; 0: nothing is held */
	XLogRecPtr	lsn;			/* of the last whole message */
	TransactionId xid;
	bool		gathers;		/* over the ends of units */
} Batch;

static Batch batch;

static void
drop_unfinished_message(StringInfo out)
{
	out->len = batch.complete;
	out->data[out->len] = '\0';
}

/* An error may have ended the message before in its middle: a transaction that aborts while it is streamed. */
static void
prepare_held_message(LogicalDecodingContext *context, XLogRecPtr lsn, TransactionId xid, bool last_write)
{
	StringInfo	out = context->out;

	if (batch.complete == 0)
	{
		batch.prepare_write(context, lsn, xid, last_write);
		pq_sendbyte(out, batch.version);
		batch.complete = out->len;
	}
	else
		drop_unfinished_message(out);
	pq_sendint32(out, 0);		/* the length, known later */
	pq_sendint64(out, last_write ? lsn : InvalidXLogRecPtr);
}

static void
hold_message(LogicalDecodingContext *context, XLogRecPtr lsn, TransactionId xid, bool last_write)
{
	StringInfo	out = context->out;
	uint32		length = pg_hton32((uint32) (out->len - batch.complete - MESSAGE_HEADER_BYTES));

	memcpy(out->data + batch.complete, &length, sizeof(length));
	batch.complete = out->len;
	batch.lsn = lsn;
	batch.xid = xid;
	if (out->len >= BATCH_BYTES)
		batch_flush(context);
}

void
batch_begin(LogicalDecodingContext *context, uint8 version)
{
	batch = (Batch) {
		.prepare_write = context->prepare_write,
		.write = context->write,
		.version = version,
	};
	context->prepare_write = prepare_held_message;
	context->write = hold_message;
}

void
batch_gather(bool gathers)
{
	batch.gathers = gathers;
}

void
batch_end_unit(LogicalDecodingContext *context)
{
	if (!batch.gathers)
		batch_flush(context);
}

void
batch_flush(LogicalDecodingContext *context)
{
	if (batch.complete == 0)
		return;
	drop_unfinished_message(context->out);
	batch.complete = 0;
	batch.write(context, batch.lsn, batch.xid, true);
}
