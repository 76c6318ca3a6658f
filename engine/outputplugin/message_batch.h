/*
 * Gathers the messages that an output plugin writes, so that many go out as one (docs/formats/output-batch.md).
 *
 * One decoding context a process at a time, as in pgoutput: the state is the process's.
 */
#ifndef THALWEG_MESSAGE_BATCH_H
#define THALWEG_MESSAGE_BATCH_H

/* postgres.h comes before this. */
#include "replication/logical.h"

#define BATCH_VERSION 1

/* From here on what is written through `context` is held. Forgets what an earlier context left behind. */
extern void batch_begin(LogicalDecodingContext *context);

/*
 * Hands what is held to the server. Every unit of decoding ends with it: a position that the server sends by itself
 * afterwards must not be beyond something that is still here.
 */
extern void batch_flush(LogicalDecodingContext *context);

#endif
