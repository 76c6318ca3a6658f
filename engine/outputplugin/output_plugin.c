/*
 * thalweg_output: pgoutput, whose messages go out in batches. PostgreSQL hands each message to the kernel by itself, one
 * system call and one wake-up of the receiver a row; here it is one a transaction, or one for each 64 KiB of it.
 *
 * pgoutput still decides what is sent, and to whom: publications, row filters, column lists, options, the protocol. A
 * reader may keep back rows, which pgoutput then does not see (row_filters.h). Two messages are ours: at the end of a
 * streamed transaction, the list of its subtransactions that committed, since PostgreSQL does not report every one that
 * was rolled back (docs/decisions/subtransactions.md); and that a partition was truncated (truncated_partitions.h).
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
#include "row_filters.h"
#include "truncated_partitions.h"

#if PG_VERSION_NUM < 140000 || PG_VERSION_NUM >= 180000
#error "thalweg_output knows PostgreSQL 14 to 17"
#endif

PG_MODULE_MAGIC;

#if PG_VERSION_NUM < 160000
extern void _PG_output_plugin_init(OutputPluginCallbacks *callbacks);
#endif

static OutputPluginCallbacks pgoutput;
static bool tells_truncated_partitions;

#define FIRST_BATCH_VERSION 1
/* From this one on the reader is told which subtransactions committed. */
#define BATCH_VERSION_WITH_SUBTRANSACTIONS 2
/* And from this one on it may give row filters. */
#define BATCH_VERSION_WITH_ROW_FILTERS 3
/* And from this one on it is told which partitions were truncated. */
#define BATCH_VERSION_WITH_TRUNCATED_PARTITIONS 4

typedef struct OurOptions
{
	uint8		version;
	const char *row_filters;	/* NULL: none */
} OurOptions;

static uint8
read_version(const char *text)
{
	if (strcmp(text, CppAsString2(FIRST_BATCH_VERSION)) == 0)
		return FIRST_BATCH_VERSION;
	if (strcmp(text, CppAsString2(BATCH_VERSION_WITH_SUBTRANSACTIONS)) == 0)
		return BATCH_VERSION_WITH_SUBTRANSACTIONS;
	if (strcmp(text, CppAsString2(BATCH_VERSION_WITH_ROW_FILTERS)) == 0)
		return BATCH_VERSION_WITH_ROW_FILTERS;
	if (strcmp(text, CppAsString2(BATCH_VERSION_WITH_TRUNCATED_PARTITIONS)) == 0)
		return BATCH_VERSION_WITH_TRUNCATED_PARTITIONS;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("batch_version \"%s\" is not supported, only " CppAsString2(FIRST_BATCH_VERSION) " to "
					CppAsString2(BATCH_VERSION_WITH_TRUNCATED_PARTITIONS), text)));
}

/*
 * Takes the options that are ours from the list: pgoutput refuses what it does not know. A reader has to say that it
 * knows the batches' format; one that expects bare messages is told at once.
 */
static OurOptions
take_our_options(LogicalDecodingContext *context)
{
	List	   *others = NIL;
	ListCell   *cell;
	OurOptions	ours = {0};

	foreach(cell, context->output_plugin_options)
	{
		DefElem    *option = lfirst(cell);

		if (strcmp(option->defname, "batch_version") == 0)
			ours.version = read_version(defGetString(option));
		else if (strcmp(option->defname, "row_filters") == 0)
			ours.row_filters = defGetString(option);
		else
			others = lappend(others, option);
	}
	if (ours.version == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option batch_version is missing"),
				 errhint("Readers that do not know batches of messages use the plugin pgoutput.")));
	if (ours.row_filters != NULL && ours.version < BATCH_VERSION_WITH_ROW_FILTERS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option row_filters needs batch_version " CppAsString2(BATCH_VERSION_WITH_ROW_FILTERS))));
	context->output_plugin_options = others;
	return ours;
}

static void
startup(LogicalDecodingContext *context, OutputPluginOptions *options, bool is_init)
{
	OurOptions	ours;

	/* A slot that is being made has neither options nor changes yet. */
	if (is_init)
	{
		pgoutput.startup_cb(context, options, is_init);
		return;
	}
	ours = take_our_options(context);
	pgoutput.startup_cb(context, options, is_init);
	/* A reader that does not ask which subtransactions committed would apply some that did not. */
	if (ours.version < BATCH_VERSION_WITH_SUBTRANSACTIONS)
		context->streaming = false;
	if (ours.row_filters != NULL)
		row_filters_begin(context, ours.row_filters);
	tells_truncated_partitions = ours.version >= BATCH_VERSION_WITH_TRUNCATED_PARTITIONS;
	read_ahead_begin(context);
	batch_begin(context, ours.version);
}

/*
 * Those that were rolled back have left the list: decoding their abort removes them from it. The streamed changes are
 * taken from there, and not from what the server remembers to have streamed of each, which is where it forgets.
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

/* --- changes that the reader's row filters keep back */

/* A transaction of nothing but such changes must not look like silence; later servers see to it themselves. */
static void
change_is_kept_back(LogicalDecodingContext *context)
{
#if PG_VERSION_NUM < 160000
	static int	changes = 0;

	if (++changes < 100)
		return;
	changes = 0;
#if PG_VERSION_NUM >= 150000
	OutputPluginUpdateProgress(context, false);
#else
	OutputPluginUpdateProgress(context);
#endif
#endif
}

static void
change(LogicalDecodingContext *context, ReorderBufferTXN *transaction, Relation relation, ReorderBufferChange *changed)
{
	if (row_filters_pass(relation, changed))
		pgoutput.change_cb(context, transaction, relation, changed);
	else
		change_is_kept_back(context);
}

static void
stream_change(LogicalDecodingContext *context, ReorderBufferTXN *transaction, Relation relation,
			  ReorderBufferChange *changed)
{
	if (row_filters_pass(relation, changed))
		pgoutput.stream_change_cb(context, transaction, relation, changed);
	else
		change_is_kept_back(context);
}

/* --- truncates of partitions */

static void
truncate_tables(LogicalDecodingContext *context, ReorderBufferTXN *transaction, int count, Relation relations[],
				ReorderBufferChange *changed)
{
	pgoutput.truncate_cb(context, transaction, count, relations, changed);
	if (tells_truncated_partitions)
		truncated_partitions_report(context, transaction, count, relations, changed, pgoutput.message_cb);
}

static void
stream_truncate(LogicalDecodingContext *context, ReorderBufferTXN *transaction, int count, Relation relations[],
				ReorderBufferChange *changed)
{
	pgoutput.stream_truncate_cb(context, transaction, count, relations, changed);
	if (tells_truncated_partitions)
		truncated_partitions_report(context, transaction, count, relations, changed, pgoutput.stream_message_cb);
}

/* Whether a user gives a message our prefix, which readers trust. */
static bool
pretends_to_be_ours(const char *prefix)
{
	return strcmp(prefix, TRUNCATED_PARTITION_PREFIX) == 0;
}

static void
stream_message(LogicalDecodingContext *context, ReorderBufferTXN *transaction, XLogRecPtr lsn, bool is_transactional,
			   const char *prefix, Size size, const char *content)
{
	if (!pretends_to_be_ours(prefix))
		pgoutput.stream_message_cb(context, transaction, lsn, is_transactional, prefix, size, content);
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
	if (pretends_to_be_ours(prefix))
		return;
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
	callbacks->change_cb = change;
	callbacks->stream_change_cb = stream_change;
	callbacks->truncate_cb = truncate_tables;
	callbacks->stream_truncate_cb = stream_truncate;
	callbacks->stream_message_cb = stream_message;
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
