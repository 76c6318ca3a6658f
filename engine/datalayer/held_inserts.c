#include "postgres.h"

#include "held_inserts.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "executor/nodeModifyTable.h"
#include "utils/datum.h"
#include "utils/rel.h"

#define HELD_ROWS_MAX 64	/* about a page; a slot is made for each */

bool
can_hold_inserts(Relation relation)
{
	return relation->rd_tableam == GetHeapamTableAmRoutine() && relation->trigdesc == NULL &&
		!relation->rd_rel->relispartition;
}

bool
is_held_full(const TargetTable *target)
{
	return target->held_count == HELD_ROWS_MAX;
}

static TupleTableSlot *
next_slot(TargetTable *target)
{
	EState	   *estate = target->estate;
	MemoryContext before;

	if (target->held_slots == target->held_count)
	{
		before = MemoryContextSwitchTo(estate->es_query_cxt);
		if (target->held == NULL)
		{
			target->held = palloc(sizeof(TupleTableSlot *) * HELD_ROWS_MAX);
			target->held_ordinals = palloc(sizeof(int64) * HELD_ROWS_MAX);
		}
		target->held[target->held_slots++] = table_slot_create(target->relation, &estate->es_tupleTable);
		MemoryContextSwitchTo(before);
	}
	return target->held[target->held_count];
}

void
hold_insert(TargetTable *target, int64 ordinal)
{
	TupleConstr *constraints = RelationGetDescr(target->relation)->constr;

	if (constraints != NULL)
	{
		if (constraints->has_generated_stored)
			ExecComputeStoredGenerated(target->result, target->estate, target->written, CMD_INSERT);
		ExecConstraints(target->result, target->written, target->estate);
	}
	ExecCopySlot(next_slot(target), target->written);
	target->held_ordinals[target->held_count++] = ordinal;
}

static void
insert_into_indexes(TargetTable *target, TupleTableSlot *slot)
{
#if PG_VERSION_NUM >= 160000
	ExecInsertIndexTuples(target->result, slot, target->estate, false, false, NULL, NIL, false);
#else
	ExecInsertIndexTuples(target->result, slot, target->estate, false, false, NULL, NIL);
#endif
	ResetPerTupleExprContext(target->estate);
}

void
write_held(TargetTable *target, int64 *ordinal)
{
	const int64 current = *ordinal;
	const int	count = target->held_count;
	MemoryContext before;

	if (count == 0)
		return;
	target->held_count = 0;
	*ordinal = target->held_ordinals[0];
	before = MemoryContextSwitchTo(GetPerTupleMemoryContext(target->estate));
	table_multi_insert(target->relation, target->held, count, GetCurrentCommandId(true), 0, NULL);
	MemoryContextSwitchTo(before);
	ResetPerTupleExprContext(target->estate);
	for (int i = 0; i < count; i++)
	{
		*ordinal = target->held_ordinals[i];
		if (target->result->ri_NumIndices > 0)
			insert_into_indexes(target, target->held[i]);
		ExecClearTuple(target->held[i]);
	}
	*ordinal = current;
}

/* Whether the row has the key by which a row was looked for last. */
static bool
has_key(const TargetTable *target, TupleTableSlot *slot)
{
	for (int i = 0; i < target->key_count; i++)
	{
		ScanKey		key = &target->keys[i];
		bool		is_null;
		Datum		value = slot_getattr(slot, target->identity->rd_index->indkey.values[i], &is_null);

		if (is_null || !DatumGetBool(FunctionCall2Coll(&key->sk_func, key->sk_collation, value, key->sk_argument)))
			return false;
	}
	return true;
}

static bool
holds_key(const TargetTable *target)
{
	for (int i = 0; i < target->held_count; i++)
	{
		if (has_key(target, target->held[i]))
			return true;
	}
	return false;
}

/* Whether the found row will not have the same values in the index. Bytes are compared: a needless yes only writes. */
static bool
changes_values(const TargetTable *target, const IndexInfo *index)
{
	if (index->ii_Expressions != NIL || index->ii_Predicate != NIL)
		return true;
	for (int i = 0; i < index->ii_NumIndexKeyAttrs; i++)
	{
		const AttrNumber number = index->ii_IndexAttrNumbers[i];
		const FormData_pg_attribute *attribute = TupleDescAttr(RelationGetDescr(target->relation), number - 1);
		bool		was_null;
		bool		is_null;
		Datum		before = slot_getattr(target->found, number, &was_null);
		Datum		after = slot_getattr(target->written, number, &is_null);

		if (was_null != is_null ||
			(!is_null && !datumIsEqual(before, after, attribute->attbyval, attribute->attlen)))
			return true;
	}
	return false;
}

bool
frees_values_of_held(const TargetTable *target, LcrKind kind)
{
	if (target->held_count == 0 || kind == LCR_INSERT)
		return false;
	for (int i = 0; i < target->result->ri_NumIndices; i++)
	{
		const IndexInfo *index = target->result->ri_IndexRelationInfo[i];
		const bool	is_identity = target->result->ri_IndexRelationDescs[i]->rd_id == target->identity->rd_id;

		if (!index->ii_Unique && index->ii_ExclusionOps == NULL)
			continue;
		if ((kind == LCR_REMOVE || changes_values(target, index)) && (!is_identity || holds_key(target)))
			return true;
	}
	return false;
}
