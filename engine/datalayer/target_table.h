/*
 * A table of the destination, opened for one call: how the values of a source row become its own, how a row is found.
 */
#ifndef THALWEG_TARGET_TABLE_H
#define THALWEG_TARGET_TABLE_H

#include "access/genam.h"
#include "access/relscan.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "nodes/execnodes.h"
#include "utils/snapshot.h"

#include "lcr_reader.h"

/* How the values of one column are read. Both functions are looked up when a value first needs them. */
typedef struct ColumnInput
{
	int16		attribute;		/* attnum, 0: not written */
	Oid			type;
	int32		type_modifier;
	bool		is_domain;
	bool		can_receive;	/* `receive` is there */
	bool		can_parse;
	Oid			receive_parameter;
	Oid			parse_parameter;
	FmgrInfo	receive;
	FmgrInfo	parse;
} ColumnInput;

typedef struct TargetTable
{
	uint32		source_relation;
	uint32		table_version;
	EState	   *estate;
	Relation	relation;
	ResultRelInfo *result;
	int			column_count;	/* at the source */
	ColumnInput *columns;
	TupleTableSlot *found;		/* the row that was looked up, a copy */
	TupleTableSlot *written;	/* the row to store */
	bool		allowed[LCR_REMOVE + 1];	/* by kind: the caller's privileges have been checked */
	bool		locks_rows;		/* before its triggers see it, a row must be locked */

	/* Of destination columns that the source has not; made at the first insert. */
	bool		has_defaults;
	int			default_count;
	int		   *default_attributes;
	ExprState **defaults;

	/* Inserts that have not been written yet: held_inserts.h. */
	bool		holds_inserts;
	int			held_count;
	int			held_slots;		/* made so far */
	TupleTableSlot **held;
	int64	   *held_ordinals;	/* their frames' */

	/* How a row is found; null without an identity index. */
	Relation	identity;
	int			key_count;
	int		   *key_columns;	/* places in the source's tuples */
	ScanKeyData *keys;
	IndexScanDesc scan;			/* opened at the first search */
	SnapshotData snapshot;		/* of the rows that are there, other transactions' too */
	LcrKind		kind;			/* what the row is looked for */
	bool		is_heap;
} TargetTable;

/* Fails with TW003 where a table cannot be written below SQL. Allocates in the estate's query context. */
extern TargetTable *open_target(EState *estate, const LcrTable *description);
extern void close_target(TargetTable *target);

/* The caller may do this to the table; asked once per call. */
extern void check_privileges(TargetTable *target, LcrKind kind);

/* Fills target->written. Values are allocated in the current context. */
extern void make_inserted(TargetTable *target, LcrValue *values);
extern void make_updated(TargetTable *target, LcrValue *values);	/* over target->found */

/* Puts the row of that identity into target->found; `kind` is what will be done to it. */
extern bool find_row(TargetTable *target, LcrValue *values, LcrKind kind);

#endif
