#include "postgres.h"

#include "truncated_partitions.h"

#include "catalog/partition.h"
#include "catalog/pg_publication.h"
#include "libpq/pqformat.h"
#include "replication/output_plugin.h"
#include "replication/pgoutput.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

static bool
publishes(Publication *publication, Oid table)
{
	if (publication->alltables || list_member_oid(GetRelationPublications(table), publication->oid))
		return true;
#if PG_VERSION_NUM >= 150000
	return list_member_oid(GetSchemaPublications(get_rel_namespace(table)), publication->oid);
#else
	return false;
#endif
}

/* Whether the reader gets the table's truncates as this table's, and its partitions' rows, too. */
static bool
is_published_as_one(LogicalDecodingContext *context, Oid table)
{
	PGOutputData *data = context->output_plugin_private;
	ListCell   *name;

	foreach(name, data->publication_names)
	{
		Publication *publication = GetPublicationByName(lfirst(name), true);

		if (publication != NULL && publication->pubviaroot && publication->pubactions.pubtruncate &&
			publishes(publication, table))
			return true;
	}
	return false;
}

/* The topmost ancestor that is published decides (get_rel_sync_entry of pgoutput.c); none: it is published itself. */
static Oid
published_root(LogicalDecodingContext *context, Oid partition)
{
	Oid			root = InvalidOid;
	ListCell   *ancestor;

	foreach(ancestor, get_partition_ancestors(partition))	/* from below */
	{
		if (is_published_as_one(context, lfirst_oid(ancestor)))
			root = lfirst_oid(ancestor);
	}
	return root;
}

static bool
is_one_of(Oid table, int count, Relation relations[])
{
	for (int i = 0; i < count; i++)
	{
		if (RelationGetRelid(relations[i]) == table)
			return true;
	}
	return false;
}

void
truncated_partitions_report(LogicalDecodingContext *context, ReorderBufferTXN *transaction, int count,
							Relation relations[], ReorderBufferChange *truncate, LogicalDecodeMessageCB send)
{
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext, "truncated partitions", ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(scratch);

	for (int i = 0; i < count; i++)
	{
		Relation	partition = relations[i];
		StringInfoData content;
		Oid			root;

		if (!partition->rd_rel->relispartition || partition->rd_rel->relkind != RELKIND_RELATION)
			continue;
		root = published_root(context, RelationGetRelid(partition));
		/* A TRUNCATE of the whole names all of its partitions, too. */
		if (!OidIsValid(root) || is_one_of(root, count, relations))
			continue;
		initStringInfo(&content);
		pq_sendint32(&content, truncate->txn->xid);
		pq_sendint32(&content, root);
		pq_sendint32(&content, RelationGetRelid(partition));
		pq_sendstring(&content, get_namespace_name(RelationGetNamespace(partition)));
		pq_sendstring(&content, RelationGetRelationName(partition));
		send(context, transaction, truncate->lsn, true, TRUNCATED_PARTITION_PREFIX, content.len, content.data);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(scratch);
}
