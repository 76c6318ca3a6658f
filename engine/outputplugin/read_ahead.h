/*
 * Decodes many WAL records in a row where the server's walsender does one: it looks at its socket for replies after each,
 * which took two fifths of its time (docs/decisions/output-plugin.md).
 *
 * One decoding context a process at a time, as in pgoutput: the state is the process's.
 */
#ifndef THALWEG_READ_AHEAD_H
#define THALWEG_READ_AHEAD_H

/* postgres.h comes before this. */
#include "replication/logical.h"

/*
 * From here on, and until `context` is freed, the walsender reads ahead. Before batch_begin, whose batch gathers
 * over transactions meanwhile. No effect where it is not a walsender that sends, and on a standby.
 */
extern void read_ahead_begin(LogicalDecodingContext *context);

#endif
