/*
 * thalweg_output: pgoutput, whose messages go out in batches. PostgreSQL hands each message to the kernel by itself, one
 * system call and one wake-up of the receiver a row; here it is one a transaction, or one for each 64 KiB of it.
 *
 * What is sent, and to whom, stays pgoutput's business: publications, row filters, column lists, options, the protocol.
 */
#include "postgres.h"

#include "fmgr.h"
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

/*
 * Takes the option that is ours from the list: pgoutput refuses what it does not know. A reader has to say that it
 * knows the batches' format; one that expects bare messages is told at once.
 */
static void
take_batch_version(LogicalDecodingContext *context)
{
	List	   *others = NIL;
	ListCell   *cell;
	bool		is_given = false;

	foreach(cell, context->output_plugin_options)
	{
		DefElem    *option = lfirst(cell);

		if (strcmp(option->defname, "batch_version") != 0)
		{
			others = lappend(others, option);
			continue;
		}
		is_given = true;
		if (strcmp(defGetString(option), CppAsString2(BATCH_VERSION)) != 0)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("batch_version \"%s\" is not supported, only " CppAsString2(BATCH_VERSION),
							defGetString(option))));
	}
	if (!is_given)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option batch_version is missing"),
				 errhint("Readers that do not know batches of messages use the plugin pgoutput.")));
	context->output_plugin_options = others;
}

static void
startup(LogicalDecodingContext *context, OutputPluginOptions *options, bool is_init)
{
	/* A slot that is being made has neither options nor changes yet. */
	if (!is_init)
		take_batch_version(context);
	pgoutput.startup_cb(context, options, is_init);
	if (!is_init)
	{
		read_ahead_begin(context);
		batch_begin(context);
	}
}

/* What ends a unit of decoding. Everything else is followed by one of these before the server goes on to other WAL. */

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
	pgoutput.stream_prepare_cb(context, transaction, lsn);
	batch_end_unit(context);
}

static void
stream_commit(LogicalDecodingContext *context, ReorderBufferTXN *transaction, XLogRecPtr lsn)
{
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
