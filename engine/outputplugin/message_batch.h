/*
 * Gathers the messages that an output plugin writes, so that many go out as one (docs/formats/output-batch.md).
 *
 * One decoding context a process at a time, as in pgoutput: the state is the process's.
 */
#ifndef THALWEG_MESSAGE_BATCH_H
#define THALWEG_MESSAGE_BATCH_H

/* postgres.h comes before this. */
#include "replication/logical.h"

/* From here on what is written through `context` is held, as that version. Forgets what an earlier context left. */
extern void batch_begin(LogicalDecodingContext *context, uint8 version);

/*
 * A unit of decoding has ended: hands what is held to the server, for a position that it sends by itself afterwards must
 * not be beyond something that is still here. Unless it gathers.
 */
extern void batch_end_unit(LogicalDecodingContext *context);

/*
 * While it gathers, messages stay held at the end of a unit of decoding. The caller must flush before the server may
 * send a position beyond them, and before it waits.
 */
extern void batch_gather(bool gathers);

/* Hands what is held to the server. Not while a message is being made. */
extern void batch_flush(LogicalDecodingContext *context);

#endif
