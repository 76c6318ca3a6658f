/*
 * Inserts of one table that wait for each other, so that a page takes many of them at a time, under one lock and with one
 * record in the WAL.
 *
 * A held row is written before anything could notice that it was not there: a row that is looked for and not found, a row of
 * a table with triggers, the end of the call. Other rows may overtake it. They cannot collide with it: what they would
 * collide with is an error in the rows' own order, too, and an error undoes the call.
 */
#ifndef THALWEG_HELD_INSERTS_H
#define THALWEG_HELD_INSERTS_H

#include "target_table.h"

/* Whether its inserts may be held: a heap, no triggers, no partition. */
extern bool can_hold_inserts(Relation relation);

/* Checks the row in target->written and keeps a copy of it. `ordinal` is its frame's. */
extern void hold_insert(TargetTable *target, int64 ordinal);
extern bool is_held_full(const TargetTable *target);

/* Writes what is held. `ordinal` follows the row that is being written, for error messages. Query context. */
extern void write_held(TargetTable *target, int64 *ordinal);

#endif
