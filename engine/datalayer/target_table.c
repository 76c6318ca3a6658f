#include "postgres.h"

#include "target_table.h"

#include "access/heapam.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_am_d.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "rewrite/rewriteHandler.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#define ROOM_FOR_GROWTH 64		/* bytes that a row's next version may have more */

static void
refuse(Relation relation, const char *why)
{
	ereport(ERROR,
			(errcode(THALWEG_TABLE_REFUSED),
			 errmsg("\"%s\" cannot be written below SQL: %s", RelationGetRelationName(relation), why)));
}

static void
check_privilege(Relation relation, AclMode mode)
{
	AclResult	result = pg_class_aclcheck(RelationGetRelid(relation), GetUserId(), mode);

	if (result != ACLCHECK_OK)
		aclcheck_error(result, get_relkind_objtype(relation->rd_rel->relkind), RelationGetRelationName(relation));
}

static void
check_relation(Relation relation)
{
	if (relation->rd_rel->relkind != RELKIND_RELATION)
		refuse(relation, "it is not an ordinary table");
	if (IsCatalogRelation(relation))
		refuse(relation, "it is a system catalog");
	/* A user who may not write to the table must not hold a lock on it either. Any one of these rights suffices. */
	check_privilege(relation, ACL_INSERT | ACL_UPDATE | ACL_DELETE);
	if (check_enable_rls(RelationGetRelid(relation), InvalidOid, true) == RLS_ENABLED)
		refuse(relation, "row-level security applies to the user");
}

/* The source's column that is written to an attribute, or -1. */
static int
source_column(const TargetTable *target, int attribute)
{
	for (int i = 0; i < target->column_count; i++)
	{
		if (target->columns[i].attribute == attribute)
			return i;
	}
	return -1;
}

static void
open_columns(TargetTable *target, const LcrTable *description)
{
	TupleDesc	tuple = RelationGetDescr(target->relation);
	bool	   *given = palloc0(sizeof(bool) * Max(tuple->natts, 1));

	target->column_count = description->column_count;
	target->columns = palloc0(sizeof(ColumnInput) * Max(description->column_count, 1));
	for (int i = 0; i < description->column_count; i++)
	{
		int16		number = description->attributes[i];
		ColumnInput *column = &target->columns[i];
		Form_pg_attribute attribute;

		column->attribute = number;
		if (number == 0)
			continue;
		if (number < 0 || number > tuple->natts)
			refuse(target->relation, "it has not the columns that were described");
		attribute = TupleDescAttr(tuple, number - 1);
		if (attribute->attisdropped || attribute->attgenerated != '\0' || given[number - 1])
			refuse(target->relation, "a column that was described cannot be written");
		given[number - 1] = true;
		column->type = attribute->atttypid;
		column->type_modifier = attribute->atttypmod;
		column->is_domain = get_typtype(attribute->atttypid) == TYPTYPE_DOMAIN;
	}
	pfree(given);
}

/* The index must find one row at most, by values that the source has. */
static void
open_identity(TargetTable *target, Oid index)
{
	Relation	identity;
	Form_pg_index form;
	Datum		classes;
	bool		is_null;
	oidvector  *opclasses;

	if (IndexGetRelation(index, true) != RelationGetRelid(target->relation))
		refuse(target->relation, "its index is none of its own");
	identity = index_open(index, RowExclusiveLock);
	form = identity->rd_index;
	if (!form->indisunique || !form->indisvalid ||
		!form->indimmediate || identity->rd_rel->relam != BTREE_AM_OID ||
		RelationGetIndexPredicate(identity) != NIL || RelationGetIndexExpressions(identity) != NIL)
		refuse(target->relation, "its index does not identify rows");

	target->identity = identity;
	target->key_count = IndexRelationGetNumberOfKeyAttributes(identity);
	target->key_columns = palloc(sizeof(int) * target->key_count);
	target->keys = palloc0(sizeof(ScanKeyData) * target->key_count);
	classes = SysCacheGetAttr(INDEXRELID, identity->rd_indextuple, Anum_pg_index_indclass, &is_null);
	opclasses = (oidvector *) DatumGetPointer(classes);
	for (int i = 0; i < target->key_count; i++)
	{
		Oid			family = get_opclass_family(opclasses->values[i]);
		Oid			type = get_opclass_input_type(opclasses->values[i]);
		Oid			equal = get_opfamily_member(family, type, type, BTEqualStrategyNumber);

		target->key_columns[i] = source_column(target, form->indkey.values[i]);
		if (target->key_columns[i] < 0 || !OidIsValid(equal))
			refuse(target->relation, "its index does not identify rows by columns of the source");
		ScanKeyInit(&target->keys[i], i + 1, BTEqualStrategyNumber, get_opcode(equal), (Datum) 0);
		target->keys[i].sk_collation = identity->rd_indcollation[i];
	}
}

TargetTable *
open_target(EState *estate, const LcrTable *description)
{
	MemoryContext before = MemoryContextSwitchTo(estate->es_query_cxt);
	TargetTable *target = palloc0(sizeof(TargetTable));
	TriggerDesc *triggers;

	target->source_relation = description->relation;
	target->table_version = description->table_version;
	target->estate = estate;
	target->relation = table_open(description->table, RowExclusiveLock);
	check_relation(target->relation);
	open_columns(target, description);
	target->is_heap = target->relation->rd_tableam == GetHeapamTableAmRoutine();
	if (OidIsValid(description->identity_index))
		open_identity(target, description->identity_index);
	triggers = target->relation->trigdesc;
	target->locks_rows = triggers != NULL && (triggers->trig_update_before_row || triggers->trig_delete_before_row);
	MemoryContextSwitchTo(before);
	return target;
}

void
close_target(TargetTable *target)
{
	if (target->scan != NULL)
		index_endscan(target->scan);
	if (target->result != NULL)
		ExecCloseIndices(target->result);
	if (target->identity != NULL)
		index_close(target->identity, NoLock);
	table_close(target->relation, NoLock);	/* locked until the transaction ends */
}

void
check_privileges(TargetTable *target, LcrKind kind)
{
	if (target->allowed[kind])
		return;
	check_privilege(target->relation, kind == LCR_INSERT ? ACL_INSERT : kind == LCR_UPDATE ? ACL_UPDATE : ACL_DELETE);
	if (kind != LCR_INSERT)
		check_privilege(target->relation, ACL_SELECT);	/* its key is looked at, as a WHERE would */
	target->allowed[kind] = true;
}

static Datum
receive(TargetTable *target, ColumnInput *column, LcrValue *value)
{
	StringInfoData bytes = {.data = value->bytes, .len = value->length, .maxlen = value->length + 1, .cursor = 0};
	const char	behind = value->bytes[value->length];
	Datum		datum;

	if (unlikely(!column->can_receive))
	{
		Oid			function;

		getTypeBinaryInputInfo(column->type, &function, &column->receive_parameter);
		fmgr_info_cxt(function, &column->receive, target->estate->es_query_cxt);
		column->can_receive = true;
	}
	/* Receive functions may count on a zero behind what they read. */
	value->bytes[value->length] = '\0';
	datum = ReceiveFunctionCall(&column->receive, &bytes, column->receive_parameter, column->type_modifier);
	value->bytes[value->length] = behind;
	if (bytes.cursor != bytes.len)
		ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION), errmsg("incorrect binary data format")));
	return datum;
}

static void
prepare_parse(TargetTable *target, ColumnInput *column)
{
	Oid			function;

	getTypeInputInfo(column->type, &function, &column->parse_parameter);
	fmgr_info_cxt(function, &column->parse, target->estate->es_query_cxt);
	column->can_parse = true;
}

static Datum
parse(TargetTable *target, ColumnInput *column, LcrValue *value)
{
	char	   *copy = palloc(value->length + 1);
	char	   *text;

	if (unlikely(!column->can_parse))
		prepare_parse(target, column);
	memcpy(copy, value->bytes, value->length);
	copy[value->length] = '\0';
	text = pg_any_to_server(copy, value->length, PG_UTF8);	/* refuses zero bytes and what is not UTF-8 */
	return InputFunctionCall(&column->parse, text, column->parse_parameter, column->type_modifier);
}

static Datum
read_value(TargetTable *target, ColumnInput *column, LcrValue *value, bool *is_null)
{
	*is_null = false;
	switch (value->mark)
	{
		case LCR_BINARY:
			return receive(target, column, value);
		case LCR_TEXT:
			return parse(target, column, value);
		case LCR_NULL:
			break;
		case LCR_UNCHANGED:
			lcr_malformed("an unchanged value where there is no old one");
	}
	*is_null = true;
	/* NULL may be forbidden by a domain: let its own input function say so. */
	if (unlikely(column->is_domain))
	{
		if (!column->can_parse)
			prepare_parse(target, column);
		(void) InputFunctionCall(&column->parse, NULL, column->parse_parameter, column->type_modifier);
	}
	return (Datum) 0;
}

static void
make_defaults(TargetTable *target)
{
	MemoryContext before = MemoryContextSwitchTo(target->estate->es_query_cxt);
	TupleDesc	tuple = RelationGetDescr(target->relation);

	target->default_attributes = palloc(sizeof(int) * Max(tuple->natts, 1));
	target->defaults = palloc(sizeof(ExprState *) * Max(tuple->natts, 1));
	for (int i = 0; i < tuple->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(tuple, i);
		Expr	   *expression;

		if (attribute->attisdropped || attribute->attgenerated != '\0' || source_column(target, i + 1) >= 0)
			continue;
		expression = (Expr *) build_column_default(target->relation, i + 1);
		if (expression == NULL)
			continue;
		target->default_attributes[target->default_count] = i;
		target->defaults[target->default_count++] = ExecInitExpr(expression_planner(expression), NULL);
	}
	target->has_defaults = true;
	MemoryContextSwitchTo(before);
}

void
make_inserted(TargetTable *target, LcrValue *values)
{
	TupleTableSlot *slot = target->written;
	int			count = slot->tts_tupleDescriptor->natts;

	if (unlikely(!target->has_defaults))
		make_defaults(target);
	ExecClearTuple(slot);
	memset(slot->tts_values, 0, sizeof(Datum) * count);
	memset(slot->tts_isnull, true, sizeof(bool) * count);
	for (int i = 0; i < target->column_count; i++)
	{
		ColumnInput *column = &target->columns[i];
		int			at = column->attribute - 1;

		if (at >= 0)
			slot->tts_values[at] = read_value(target, column, &values[i], &slot->tts_isnull[at]);
	}
	for (int i = 0; i < target->default_count; i++)
	{
		int			at = target->default_attributes[i];
		ExprContext *context = GetPerTupleExprContext(target->estate);

		slot->tts_values[at] = ExecEvalExprSwitchContext(target->defaults[i], context, &slot->tts_isnull[at]);
	}
	ExecStoreVirtualTuple(slot);
}

void
make_updated(TargetTable *target, LcrValue *values)
{
	TupleTableSlot *slot = target->written;
	TupleDesc	tuple = slot->tts_tupleDescriptor;

	slot_getallattrs(target->found);
	ExecClearTuple(slot);
	memcpy(slot->tts_values, target->found->tts_values, sizeof(Datum) * tuple->natts);
	memcpy(slot->tts_isnull, target->found->tts_isnull, sizeof(bool) * tuple->natts);
	for (int i = 0; i < target->column_count; i++)
	{
		ColumnInput *column = &target->columns[i];
		int			at = column->attribute - 1;

		/* An unchanged column keeps its value, also one that is stored out of line. */
		if (at >= 0 && values[i].mark != LCR_UNCHANGED)
			slot->tts_values[at] = read_value(target, column, &values[i], &slot->tts_isnull[at]);
	}
	ExecStoreVirtualTuple(slot);
}

static bool
make_keys(TargetTable *target, LcrValue *values)
{
	for (int i = 0; i < target->key_count; i++)
	{
		int			place = target->key_columns[i];
		bool		is_null;

		target->keys[i].sk_argument = read_value(target, &target->columns[place], &values[place], &is_null);
		if (is_null)
			return false;
	}
	return true;
}

/*
 * A row that another transaction is about to change, or that changed under our eyes, is looked up again once that
 * transaction has ended. Rows are locked only for BEFORE triggers, which are shown the old row: elsewhere the update
 * itself waits for other sessions' locks, and fails when the row has changed since; a lock would be one more record in
 * the WAL and one more write to the row.
 */
static bool
lock_row(TargetTable *target)
{
	TM_FailureData failure;
	TM_Result	result;

	if (!target->locks_rows)
		return true;
	result = table_tuple_lock(target->relation, &target->found->tts_tid, GetActiveSnapshot(), target->found,
							  GetCurrentCommandId(false), LockTupleExclusive, LockWaitBlock, 0, &failure);
	if (result == TM_Ok)
		ExecMaterializeSlot(target->found);
	else if (result != TM_Updated && result != TM_Deleted)
		elog(ERROR, "a row could not be locked: %d", (int) result);
	return result == TM_Ok;
}

/*
 * Fetches as heap's own index fetch does, with one difference: heap prunes a page whenever that is nearly full, which
 * in a stream of updates is at nearly every fetch. Here a page is pruned when the row's next version would not fit
 * beside it, so that it still does. `all_dead`: no transaction needs the index entry any more.
 */
static bool
fetch_from_heap(TargetTable *target, ItemPointer place, bool *all_dead)
{
	Relation	relation = target->relation;
	Buffer		buffer = ReadBuffer(relation, ItemPointerGetBlockNumber(place));
	ItemPointerData at = *place;
	HeapTupleData tuple = {0};
	bool		is_full;
	bool		found;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	found = heap_hot_search_buffer(&at, relation, buffer, &target->snapshot, &tuple, all_dead, true);
	if (found)
	{
		tuple.t_tableOid = RelationGetRelid(relation);
		ExecStoreBufferHeapTuple(&tuple, target->found, buffer);
		/* A copy: a page that is pinned cannot be tidied up. */
		ExecMaterializeSlot(target->found);
	}
	is_full = found && PageGetHeapFreeSpace(BufferGetPage(buffer)) < MAXALIGN(tuple.t_len) + ROOM_FOR_GROWTH;
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	if (is_full && target->kind == LCR_UPDATE)
		heap_page_prune_opt(relation, buffer);
	ReleaseBuffer(buffer);
	return found;
}

/* The next row that the scan finds, whoever may be writing it, into target->found. */
static bool
fetch_next(TargetTable *target)
{
	IndexScanDesc scan = target->scan;
	ItemPointer place;

	if (!target->is_heap)
	{
		if (!index_getnext_slot(scan, ForwardScanDirection, target->found))
			return false;
		ExecMaterializeSlot(target->found);
		return true;
	}
	while ((place = index_getnext_tid(scan, ForwardScanDirection)) != NULL)
	{
		bool		all_dead = false;

		if (fetch_from_heap(target, place, &all_dead))
			return true;
		if (!scan->xactStartedInRecovery)
			scan->kill_prior_tuple = all_dead;
	}
	return false;
}

/* The scan allocates what it keeps between searches in the current context: it must be the query's. */
static bool
search(TargetTable *target)
{
	if (unlikely(target->scan == NULL))
	{
		InitDirtySnapshot(target->snapshot);
		target->scan = index_beginscan(target->relation, target->identity, &target->snapshot, target->key_count, 0);
	}
	while (true)
	{
		TransactionId writer;

		CHECK_FOR_INTERRUPTS();
		index_rescan(target->scan, target->keys, target->key_count, NULL, 0);
		if (!fetch_next(target))
			return false;
		writer = TransactionIdIsValid(target->snapshot.xmin) ? target->snapshot.xmin : target->snapshot.xmax;
		index_rescan(target->scan, target->keys, target->key_count, NULL, 0);	/* gives the pages back */
		if (TransactionIdIsValid(writer))
			XactLockTableWait(writer, NULL, NULL, XLTW_None);
		else if (lock_row(target))
			return true;
	}
}

bool
find_row(TargetTable *target, LcrValue *values, LcrKind kind)
{
	MemoryContext before;
	bool		found;

	target->kind = kind;
	if (!make_keys(target, values))
		return false;
	before = MemoryContextSwitchTo(target->estate->es_query_cxt);
	found = search(target);
	MemoryContextSwitchTo(before);
	return found;
}
