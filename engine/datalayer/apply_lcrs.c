/*
 * apply_lcrs(tables, frames): row changes in their order, through the executor's functions for simple relations, as
 * PostgreSQL's own apply worker uses them, but many rows a call.
 *
 * Each row is a command of its own (CommandCounterIncrement), so a row may change what an earlier one wrote, and triggers
 * see what came before. Inserts that nothing looks at gather for a while (held_inserts.h). Anything wrong is an error:
 * the call writes all rows or none.
 */
#include "postgres.h"

#include "access/xact.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_relation.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "held_inserts.h"
#include "lcr_reader.h"
#include "target_table.h"

#if PG_VERSION_NUM < 140000 || PG_VERSION_NUM >= 180000
#error "thalweg_datalayer knows PostgreSQL 14 to 17"
#endif

/* A row that is wanted so soon after it was held was not worth holding: the search that missed it cost more. */
#define HELD_WORTH_MIN 8

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(thalweg_apply_lcrs);

typedef struct Call
{
	EState	   *estate;
	EPQState	recheck;
	MemoryContext row_context;	/* values of one row */
	int			table_count;
	TargetTable **tables;
	TargetTable *last;			/* the table of the row before */
	LcrValue   *values;			/* as many as the widest table has columns */
	LcrValue   *old_values;
	/* For error messages. */
	int64		ordinal;		/* of the frame, from 1; 0 before the first */
	const char *operation;
} Call;

static void
describe_error(void *argument)
{
	Call	   *call = argument;

	if (call->ordinal > 0)
		errcontext("frame %lld of the call, %s \"%s\"", (long long) call->ordinal, call->operation,
				   call->last != NULL ? RelationGetRelationName(call->last->relation) : "?");
}

/* A private copy: receive functions write into it, and the byte behind the last value must exist. */
static LcrCursor
copy_argument(Datum argument)
{
	bytea	   *bytes = DatumGetByteaPP(argument);
	size_t		length = VARSIZE_ANY_EXHDR(bytes);
	char	   *copy = palloc(length + 1);

	memcpy(copy, VARDATA_ANY(bytes), length);
	copy[length] = '\0';
	return (LcrCursor) {.at = copy, .end = copy + length};
}

/* Every column that is written counts as updated, so that all generated columns are computed again. */
static Bitmapset *
updated_columns(const TargetTable *target)
{
	Bitmapset  *columns = NULL;

	for (int i = 0; i < target->column_count; i++)
	{
		if (target->columns[i].attribute > 0)
			columns = bms_add_member(columns, target->columns[i].attribute - FirstLowInvalidHeapAttributeNumber);
	}
	return columns;
}

static void
make_range_table(Call *call)
{
	List	   *range_table = NIL;
#if PG_VERSION_NUM >= 160000
	List	   *permissions = NIL;
#endif

	for (int i = 0; i < call->table_count; i++)
	{
		TargetTable *target = call->tables[i];
		RangeTblEntry *entry = makeNode(RangeTblEntry);

		entry->rtekind = RTE_RELATION;
		entry->relid = RelationGetRelid(target->relation);
		entry->relkind = target->relation->rd_rel->relkind;
		entry->rellockmode = RowExclusiveLock;
#if PG_VERSION_NUM >= 160000
		addRTEPermissionInfo(&permissions, entry)->updatedCols = updated_columns(target);
#else
		entry->updatedCols = updated_columns(target);
#endif
		range_table = lappend(range_table, entry);
	}
#if PG_VERSION_NUM >= 160000
	ExecInitRangeTable(call->estate, range_table, permissions);
	EvalPlanQualInit(&call->recheck, call->estate, NULL, NIL, -1, NIL);
#else
	ExecInitRangeTable(call->estate, range_table);
	EvalPlanQualInit(&call->recheck, call->estate, NULL, NIL, -1);
#endif
}

static void
begin_call(Call *call, Datum tables)
{
	MemoryContext before;
	LcrCursor	cursor;
	int			columns_max = 0;

	call->estate = CreateExecutorState();
	before = MemoryContextSwitchTo(call->estate->es_query_cxt);
	cursor = copy_argument(tables);
	call->row_context = AllocSetContextCreate(CurrentMemoryContext, "thalweg row", ALLOCSET_DEFAULT_SIZES);
	call->table_count = lcr_read_table_count(&cursor);
	call->tables = palloc(sizeof(TargetTable *) * Max(call->table_count, 1));
	for (int i = 0; i < call->table_count; i++)
	{
		LcrTable	description;

		CHECK_FOR_INTERRUPTS();
		lcr_read_table(&cursor, &description);
		columns_max = Max(columns_max, description.column_count);
		call->tables[i] = open_target(call->estate, &description);
	}
	lcr_check_end(&cursor);
	make_range_table(call);
	for (int i = 0; i < call->table_count; i++)
	{
		TargetTable *target = call->tables[i];

		target->result = makeNode(ResultRelInfo);
		InitResultRelInfo(target->result, target->relation, i + 1, NULL, 0);
		/* Where AFTER triggers look for the table. */
		call->estate->es_opened_result_relations = lappend(call->estate->es_opened_result_relations, target->result);
		ExecOpenIndices(target->result, false);
		target->holds_inserts = can_hold_inserts(target->relation);
		target->found = table_slot_create(target->relation, &call->estate->es_tupleTable);
		target->written = ExecInitExtraTupleSlot(call->estate, RelationGetDescr(target->relation), &TTSOpsVirtual);
	}
	call->values = palloc(sizeof(LcrValue) * Max(columns_max, 1));
	call->old_values = palloc(sizeof(LcrValue) * Max(columns_max, 1));
	MemoryContextSwitchTo(before);
	/* A snapshot of our own, whose command number follows the rows: functions in triggers and checks look through it. */
	PushCopiedSnapshot(GetActiveSnapshot());
}

static void
end_call(Call *call)
{
	PopActiveSnapshot();
	EvalPlanQualEnd(&call->recheck);
	ExecResetTupleTable(call->estate->es_tupleTable, false);
	for (int i = 0; i < call->table_count; i++)
		close_target(call->tables[i]);
	FreeExecutorState(call->estate);
}

static TargetTable *
table_of(Call *call, const LcrRow *row)
{
	TargetTable *last = call->last;

	if (likely(last != NULL && last->source_relation == row->relation && last->table_version == row->table_version))
		return last;
	for (int i = 0; i < call->table_count; i++)
	{
		TargetTable *target = call->tables[i];

		if (target->source_relation == row->relation && target->table_version == row->table_version)
			return target;
	}
	lcr_malformed("a row of a table that was not described");
	return NULL;
}

static void
end_command(void)
{
	CommandCounterIncrement();
	UpdateActiveSnapshotCommandId();
}

/* Of all tables: a trigger may look at any, and one table may have been described twice. Returns how many rows. */
static int
write_all_held(Call *call)
{
	const char *operation = call->operation;
	TargetTable *last = call->last;
	MemoryContext before = MemoryContextSwitchTo(call->estate->es_query_cxt);
	int			written = 0;

	call->operation = "insert into";
	for (int i = 0; i < call->table_count; i++)
	{
		call->last = call->tables[i];
		written += call->last->held_count;
		write_held(call->last, &call->ordinal);
	}
	if (written > 0)
		end_command();
	MemoryContextSwitchTo(before);
	call->operation = operation;
	call->last = last;
	return written;
}

/*
 * Finds the row. One that is not in the table may be a held insert: those are written, and the table is searched again.
 */
static bool
find_or_write(Call *call, TargetTable *target, LcrValue *key, LcrKind kind)
{
	int			written;

	if (find_row(target, key, kind))
		return true;
	written = write_all_held(call);
	if (written == 0 || !find_row(target, key, kind))
		return false;
	if (written < HELD_WORTH_MIN)
		target->holds_inserts = false;
	return true;
}

static void
require_row(Call *call, TargetTable *target, LcrValue *key, LcrKind kind)
{
	if (target->identity == NULL)
		ereport(ERROR,
				(errcode(THALWEG_TABLE_REFUSED),
				 errmsg("\"%s\" has no index that identifies rows", RelationGetRelationName(target->relation))));
	if (!find_or_write(call, target, key, kind))
		ereport(ERROR,
				(errcode(THALWEG_ROW_NOT_FOUND),
				 errmsg("the row to change is not in \"%s\"", RelationGetRelationName(target->relation))));
}

/* As frees_values_of_held(), also where the table has been described twice. */
static bool
frees_values(const Call *call, const TargetTable *target, LcrKind kind)
{
	if (kind == LCR_INSERT)
		return false;
	for (int i = 0; i < call->table_count; i++)
	{
		const TargetTable *other = call->tables[i];

		if (other != target && other->held_count > 0 && other->relation->rd_id == target->relation->rd_id)
			return true;
	}
	return frees_values_of_held(target, kind);
}

/* The values that the row brings, in the row's context; afterwards everything is ready to be executed. */
static void
read_row(Call *call, LcrRow *row, TargetTable *target)
{
	LcrValue   *key = call->values;

	if (row->has_old)
	{
		lcr_read_tuple(&row->tuples, call->old_values, target->column_count);
		key = call->old_values;
	}
	if (row->kind != LCR_REMOVE)
		lcr_read_tuple(&row->tuples, call->values, target->column_count);
	lcr_check_end(&row->tuples);
	if (row->kind == LCR_INSERT)
		make_inserted(target, call->values);
	else
		require_row(call, target, key, row->kind);
	if (row->kind == LCR_UPDATE)
		make_updated(target, call->values);
	if (frees_values(call, target, row->kind))
		write_all_held(call);
}

static void
execute_row(Call *call, LcrKind kind, TargetTable *target)
{
	const bool	has_triggers = target->relation->trigdesc != NULL;

	if (kind == LCR_INSERT && target->holds_inserts)
	{
		hold_insert(target, call->ordinal);
		if (is_held_full(target))
			write_all_held(call);
		return;
	}
	if (has_triggers)
		write_all_held(call);
	call->estate->es_output_cid = GetCurrentCommandId(true);
	if (has_triggers)
		AfterTriggerBeginQuery();
	switch (kind)
	{
		case LCR_INSERT:
			ExecSimpleRelationInsert(target->result, call->estate, target->written);
			break;
		case LCR_UPDATE:
			EvalPlanQualSetSlot(&call->recheck, target->written);
			ExecSimpleRelationUpdate(target->result, call->estate, &call->recheck, target->found, target->written);
			break;
		case LCR_REMOVE:
			ExecSimpleRelationDelete(target->result, call->estate, &call->recheck, target->found);
			break;
	}
	if (has_triggers)
		AfterTriggerEndQuery(call->estate);
	end_command();
}

static void
apply_row(Call *call, LcrRow *row)
{
	static const char *const operations[] = {[LCR_INSERT] = "insert into", [LCR_UPDATE] = "update of",
		[LCR_REMOVE] = "delete from"};
	MemoryContext before = MemoryContextSwitchTo(call->row_context);

	call->operation = operations[row->kind];
	call->last = table_of(call, row);
	check_privileges(call->last, row->kind);
	read_row(call, row, call->last);
	/* The executor allocates its state for later rows in the current context: it must be the query's. */
	MemoryContextSwitchTo(call->estate->es_query_cxt);
	execute_row(call, row->kind, call->last);
	ExecClearTuple(call->last->found);
	ExecClearTuple(call->last->written);
	MemoryContextSwitchTo(before);
	MemoryContextReset(call->row_context);
	ResetPerTupleExprContext(call->estate);
}

Datum
thalweg_apply_lcrs(PG_FUNCTION_ARGS)
{
	Call		call = {0};
	LcrCursor	frames;
	ErrorContextCallback context = {.callback = describe_error, .arg = &call};
	int64		rows = 0;

	PreventCommandIfReadOnly("apply_lcrs()");
	PreventCommandIfParallelMode("apply_lcrs()");
	if (pg_get_client_encoding() != PG_UTF8)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("apply_lcrs() needs client_encoding UTF8, in which LCRs are written")));
	begin_call(&call, PG_GETARG_DATUM(0));
	frames = copy_argument(PG_GETARG_DATUM(1));
	context.previous = error_context_stack;
	error_context_stack = &context;
	while (frames.at < frames.end)
	{
		LcrRow		row;

		CHECK_FOR_INTERRUPTS();
		call.ordinal = rows + 1;
		call.operation = "unreadable, after";
		lcr_read_row(&frames, &row);
		apply_row(&call, &row);
		rows++;
	}
	write_all_held(&call);
	error_context_stack = context.previous;
	end_call(&call);
	PG_RETURN_INT64(rows);
}
