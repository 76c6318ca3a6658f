#include "postgres.h"

#include "held_inserts.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "executor/nodeModifyTable.h"
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
