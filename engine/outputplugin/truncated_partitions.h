#pragma once

#include "replication/logical.h"
#include "replication/reorderbuffer.h"

/*
 * TRUNCATE of a partition alone, which pgoutput does not send where its table is published as one: it is told in a
 * logical message of this prefix within the transaction (docs/formats/output-batch.md). Readers can trust the prefix:
 * messages that anybody else gives it are not sent.
 */
#define TRUNCATED_PARTITION_PREFIX "thalweg_output.truncated_partition"

/* Sends one by `send`, pgoutput's callback for messages, for each partition of `relations` that pgoutput leaves out. */
extern void truncated_partitions_report(LogicalDecodingContext *context, ReorderBufferTXN *transaction, int count,
										Relation relations[], ReorderBufferChange *truncate,
										LogicalDecodeMessageCB send);
