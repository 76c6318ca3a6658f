/*
 * Row filters that a reader gives with START_REPLICATION (docs/formats/row-filters.md): rows for which the reader's rules
 * drop an INSERT or an UPDATE anyway are not sent. A filter is in force for one session, and exactly from its start.
 *
 * An expression has comparisons of built-in types only. They are PostgreSQL's own functions, none of which fails, looks
 * into a catalogue, or runs a user's code.
 *
 * One decoding context a process at a time, as in pgoutput: the state is the process's.
 */
#ifndef THALWEG_ROW_FILTERS_H
#define THALWEG_ROW_FILTERS_H

/* postgres.h comes before this. */
#include "replication/logical.h"

/* Reads the filters; they end with the context. Fails with ERRCODE_INVALID_PARAMETER_VALUE, naming the table. */
extern void row_filters_begin(LogicalDecodingContext *context, const char *text);

/*
 * False: the change's row is not for the reader. True where that cannot be said: no filter, a table that is no longer
 * the one that the filter was made for, a column's value that the WAL does not contain.
 */
extern bool row_filters_pass(Relation relation, const ReorderBufferChange *change);

#endif
