/*
 * Inserts of one table that wait for each other, so that a page takes many of them at a time, under one lock and with one
 * record in the WAL.
 *
 * A held row is written before anything could notice that it was not there: a row that is looked for and not found, a row of
 * a table with triggers, the end of the call, and a row that goes away, or gets other keys, where the held one might have
 * collided with it. Other rows may overtake it: what they would collide with is an error in the rows' own order, too, and an
 * error undoes the call.
 */
#ifndef THALWEG_HELD_INSERTS_H
#define THALWEG_HELD_INSERTS_H

#include "target_table.h"

/* Whether its inserts may be held: a heap, no triggers, no partition. */
extern bool can_hold_inserts(Relation relation);

/* Checks the row in target->written and keeps a copy of it. `ordinal` is its frame's. */
extern void hold_insert(TargetTable *target, int64 ordinal);
extern bool is_held_full(const TargetTable *target);

/*
 * Whether the row in target->found, once it is removed or updated to target->written, may leave values of a unique index or an
 * exclusion constraint to a held row, which would then collide with nothing. The row was the last to be looked for.
 */
extern bool frees_values_of_held(const TargetTable *target, LcrKind kind);

/* Writes what is held. `ordinal` follows the row that is being written, for error messages. Query context. */
extern void write_held(TargetTable *target, int64 *ordinal);

#endif
