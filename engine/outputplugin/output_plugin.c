/*
 * thalweg_output: pgoutput, whose messages go out in batches. PostgreSQL hands each message to the kernel by itself, one
 * system call and one wake-up of the receiver a row; here it is one a transaction, or one for each 64 KiB of it.
 *
 * pgoutput still decides what is sent, and to whom: publications, row filters, column lists, options, the protocol. One
 * message is ours: at the end of a streamed transaction, the list of its subtransactions that committed. PostgreSQL
 * does not report every one that was rolled back (docs/decisions/subtransactions.md).
 */
#include "postgres.h"

#include "fmgr.h"
#include "libpq/pqformat.h"
#include "nodes/parsenodes.h"
#include "replication/logical.h"
#include "replication/output_plugin.h"
#include "commands/defrem.h"

#include "message_batch.h"
#include "read_ahead.h"

#if PG_VERSION_NUM < 140000 || PG_VERSION_NUM >= 180000
#error "thalweg_output knows PostgreSQL 14 to 17"
#endif

PG_MODULE_MAGIC;

#if PG_VERSION_NUM < 160000
extern void _PG_output_plugin_init(OutputPluginCallbacks *callbacks);
#endif

static OutputPluginCallbacks pgoutput;

#define FIRST_BATCH_VERSION 1
/* From this one on the reader is told which subtransactions committed. */
#define BATCH_VERSION_WITH_SUBTRANSACTIONS 2

/*
 * Takes the option that is ours from the list: pgoutput refuses what it does not know. A reader has to say that it
 * knows the batches' format; one that expects bare messages is told at once.
 */
static uint8
take_batch_version(LogicalDecodingContext *context)
{
	List	   *others = NIL;
	ListCell   *cell;
	uint8		version = 0;

	foreach(cell, context->output_plugin_options)
	{
		DefElem    *option = lfirst(cell);

		if (strcmp(option->defname, "batch_version") != 0)
		{
			others = lappend(others, option);
			continue;
		}
		if (strcmp(defGetString(option), CppAsString2(FIRST_BATCH_VERSION)) == 0)
			version = FIRST_BATCH_VERSION;
		else if (strcmp(defGetString(option), CppAsString2(BATCH_VERSION_WITH_SUBTRANSACTIONS)) == 0)
			version = BATCH_VERSION_WITH_SUBTRANSACTIONS;
		else
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("batch_version \"%s\" is not supported, only " CppAsString2(FIRST_BATCH_VERSION)
							" and " CppAsString2(BATCH_VERSION_WITH_SUBTRANSACTIONS),
							defGetString(option))));
	}
	if (version == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option batch_version is missing"),
				 errhint("Readers that do not know batches of messages use the plugin pgoutput.")));
	context->output_plugin_options = others;
	return version;
}

static void
startup(LogicalDecodingContext *context, OutputPluginOptions *options, bool is_init)
{
	uint8		version;

	/* A slot that is being made has neither options nor changes yet. */
	if (is_init)
	{
		pgoutput.startup_cb(context, options, is_init);
		return;
	}
	version = take_batch_version(context);
	pgoutput.startup_cb(context, options, is_init);
	/* A reader that does not ask which subtransactions committed would apply some that did not. */
	if (version < BATCH_VERSION_WITH_SUBTRANSACTIONS)
		context->streaming = false;
	read_ahead_begin(context);
	batch_begin(context, version);
}

/*
 * Those that were rolled back have left the list: decoding their abort removes them from it. What is sent is taken from
 * there, and not from what the server remembers to have streamed of each, which is where it forgets.
 */
static void
send_committed_subtransactions(LogicalDecodingContext *context, ReorderBufferTXN *transaction)
{
	dlist_iter	subtransaction;
	uint32		count = 0;

	dlist_foreach(subtransaction, &transaction->subtxns)
		count++;
	OutputPluginPrepareWrite(context, false);
	pq_sendbyte(context->out, 'k');
	pq_sendint32(context->out, transaction->xid);
	pq_sendint32(context->out, count);
	dlist_foreach(subtransaction, &transaction->subtxns)
		pq_sendint32(context->out, dlist_container(ReorderBufferTXN, node, subtransaction.cur)->xid);
	OutputPluginWrite(context, false);
}

/*
 * Callbacks that end a unit of decoding. After any other callback, one of these runs before the server reads other WAL.
 */

static void
commit(LogicalDecodingContext *context, ReorderBufferTXN *transaction, XLogRecPtr lsn)
{
	pgoutput.commit_cb(context, transaction, lsn);
	batch_end_unit(context);
}

static void
message(LogicalDecodingContext *context, ReorderBufferTXN *transaction, XLogRecPtr lsn, bool is_transactional,
		const char *prefix, Size size, const char *content)
{
	pgoutput.message_cb(context, transaction, lsn, is_transactional, prefix, size, content);
	if (!is_transactional)
		batch_end_unit(context);
}

static void
prepare(LogicalDecodingContext *context, ReorderBufferTXN *transaction, XLogRecPtr lsn)
{
	pgoutput.prepare_cb(context, transaction, lsn);
	batch_end_unit(context);
}

static void
commit_prepared(LogicalDecodingContext *context, ReorderBufferTXN *transaction, XLogRecPtr lsn)
{
	pgoutput.commit_prepared_cb(context, transaction, lsn);
	batch_end_unit(context);
}

static void
rollback_prepared(LogicalDecodingContext *context, ReorderBufferTXN *transaction, XLogRecPtr prepare_end,
				  TimestampTz prepare_time)
{
	pgoutput.rollback_prepared_cb(context, transaction, prepare_end, prepare_time);
	batch_end_unit(context);
}

static void
stream_stop(LogicalDecodingContext *context, ReorderBufferTXN *transaction)
{
	pgoutput.stream_stop_cb(context, transaction);
	batch_end_unit(context);
}

static void
stream_abort(LogicalDecodingContext *context, ReorderBufferTXN *transaction, XLogRecPtr lsn)
{
	pgoutput.stream_abort_cb(context, transaction, lsn);
	batch_end_unit(context);
}

static void
stream_prepare(LogicalDecodingContext *context, ReorderBufferTXN *transaction, XLogRecPtr lsn)
{
	send_committed_subtransactions(context, transaction);
	pgoutput.stream_prepare_cb(context, transaction, lsn);
	batch_end_unit(context);
}

static void
stream_commit(LogicalDecodingContext *context, ReorderBufferTXN *transaction, XLogRecPtr lsn)
{
	send_committed_subtransactions(context, transaction);
	pgoutput.stream_commit_cb(context, transaction, lsn);
	batch_end_unit(context);
}

void
_PG_output_plugin_init(OutputPluginCallbacks *callbacks)
{
	LogicalOutputPluginInit init =
		(LogicalOutputPluginInit) load_external_function("pgoutput", "_PG_output_plugin_init", true, NULL);

	init(&pgoutput);
	*callbacks = pgoutput;
	callbacks->startup_cb = startup;
	callbacks->commit_cb = commit;
	callbacks->message_cb = message;
	callbacks->prepare_cb = prepare;
	callbacks->commit_prepared_cb = commit_prepared;
	callbacks->rollback_prepared_cb = rollback_prepared;
	callbacks->stream_stop_cb = stream_stop;
	callbacks->stream_abort_cb = stream_abort;
	callbacks->stream_prepare_cb = stream_prepare;
	callbacks->stream_commit_cb = stream_commit;
}
