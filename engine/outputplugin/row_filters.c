#include "postgres.h"

#include "row_filters.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "filter_expression.h"

#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* Memory for what is read is a multiple of it. */
#define OPTION_BYTES_MAX (8 * 1024 * 1024)

typedef enum Binding
{
	UNKNOWN,
	FITS,
	DOES_NOT_FIT,
} Binding;

/* For one kind of changes of one table. */
typedef struct Filter
{
	char	   *schema;
	char	   *table;
	int			count;
	FilterColumn *columns;
	AttrNumber *attributes;		/* of the columns, where it fits */
	NullableDatum *values;		/* of the row that is looked at */
	FilterNode *expression;
	Binding		binding;		/* to the table as it is at the change that is decoded */
} Filter;

typedef struct FilteredTable
{
	Oid			relation;		/* the key */
	Filter	   *inserts;		/* or NULL */
	Filter	   *updates;
} FilteredTable;

typedef struct RowFilters
{
	HTAB	   *tables;			/* NULL: there are none */
	MemoryContext scratch;		/* of one evaluation */
} RowFilters;

static RowFilters filters;

/* --- reading */

static void
read_columns(FilterText *text, Filter *filter)
{
	int			room = 4;

	filter->columns = palloc(room * sizeof(FilterColumn));
	filter_expect(text, '(');
	while (filter_take(text, '('))
	{
		FilterColumn *column;

		CHECK_FOR_INTERRUPTS();
		if (filter->count == room)
			filter->columns = repalloc(filter->columns, (room *= 2) * sizeof(FilterColumn));
		column = &filter->columns[filter->count++];
		column->name = filter_string(text);
		column->type = filter_oid(text);
		column->collation = filter_oid(text);
		filter_expect(text, ')');
	}
	filter_expect(text, ')');
	filter->attributes = palloc0((filter->count + 1) * sizeof(AttrNumber));
	filter->values = palloc0((filter->count + 1) * sizeof(NullableDatum));
}

static void
read_filter(FilterText *text)
{
	Filter	   *filter = palloc0(sizeof(Filter));
	FilteredTable *table;
	Filter	  **kind;
	char	   *word;
	Oid			relation;
	bool		found;

	filter_expect(text, '(');
	relation = filter_oid(text);
	word = filter_word(text);
	filter->schema = filter_string(text);
	filter->table = filter_string(text);
	text->table = psprintf("%s.%s", filter->schema, filter->table);
	table = hash_search(filters.tables, &relation, HASH_ENTER, &found);
	if (!found)
		table->inserts = table->updates = NULL;
	if (strcmp(word, "insert") == 0)
		kind = &table->inserts;
	else if (strcmp(word, "update") == 0)
		kind = &table->updates;
	else
		filter_fail(text, "it is for neither insert nor update");
	if (*kind != NULL)
		filter_fail(text, "it is given twice");
	read_columns(text, filter);
	filter->expression = filter_condition(text, filter->columns, filter->count);
	filter_expect(text, ')');
	*kind = filter;
	text->table = NULL;
}

/* --- the table as it is when a change was written */

static void
forget_binding(FilteredTable *table)
{
	if (table->inserts != NULL)
		table->inserts->binding = UNKNOWN;
	if (table->updates != NULL)
		table->updates->binding = UNKNOWN;
}

static void
forget_all(void)
{
	HASH_SEQ_STATUS all;
	FilteredTable *table;

	hash_seq_init(&all, filters.tables);
	while ((table = hash_seq_search(&all)) != NULL)
		forget_binding(table);
}

static void
forget_table(Datum unused, Oid relation)
{
	FilteredTable *table;

	if (filters.tables == NULL)
		return;
	if (!OidIsValid(relation))
		forget_all();
	else if ((table = hash_search(filters.tables, &relation, HASH_FIND, NULL)) != NULL)
		forget_binding(table);
}

static void
forget_schemas(Datum unused, int cache, uint32 hash)
{
	if (filters.tables != NULL)
		forget_all();
}

/* One without a type must not be there. */
static bool
bind_column(TupleDesc descriptor, const FilterColumn *column, AttrNumber *number)
{
	for (int i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);

		if (attribute->attisdropped || strcmp(NameStr(attribute->attname), column->name) != 0)
			continue;
		*number = attribute->attnum;
		/* A generated column is not sent: the engine has no value to judge by. */
		return attribute->atttypid == column->type && attribute->attcollation == column->collation &&
			attribute->attgenerated == '\0';
	}
	return !OidIsValid(column->type);
}

/* The rows of partitions come as their root's, and another name may stand for other rules. */
static bool
fits(Filter *filter, Relation relation)
{
	char	   *schema;
	bool		same;

	if (relation->rd_rel->relkind != RELKIND_RELATION || relation->rd_rel->relispartition ||
		strcmp(RelationGetRelationName(relation), filter->table) != 0)
		return false;
	schema = get_namespace_name(RelationGetNamespace(relation));
	same = schema != NULL && strcmp(schema, filter->schema) == 0;
	if (schema != NULL)
		pfree(schema);
	for (int i = 0; same && i < filter->count; i++)
		same = bind_column(RelationGetDescr(relation), &filter->columns[i], &filter->attributes[i]);
	return same;
}

/* --- the rows */

/* False: a value is not in the WAL, since the change has left it as it was. */
static bool
load(Filter *filter, Relation relation, HeapTuple row)
{
	TupleDesc	descriptor = RelationGetDescr(relation);

	for (int i = 0; i < filter->count; i++)
	{
		NullableDatum *value = &filter->values[i];

		value->isnull = true;
		if (!OidIsValid(filter->columns[i].type))
			continue;
		value->value = heap_getattr(row, filter->attributes[i], descriptor, &value->isnull);
		if (!value->isnull && TupleDescAttr(descriptor, filter->attributes[i] - 1)->attlen == -1 &&
			VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value->value)))
			return false;
	}
	return true;
}

static HeapTuple
new_row(const ReorderBufferChange *change)
{
#if PG_VERSION_NUM >= 170000
	return change->data.tp.newtuple;
#else
	return change->data.tp.newtuple == NULL ? NULL : &change->data.tp.newtuple->tuple;
#endif
}

bool
row_filters_pass(Relation relation, const ReorderBufferChange *change)
{
	FilteredTable *table;
	Filter	   *filter = NULL;
	HeapTuple	row;
	MemoryContext before;
	bool		passes;

	if (filters.tables == NULL)
		return true;
	table = hash_search(filters.tables, &RelationGetRelid(relation), HASH_FIND, NULL);
	if (table == NULL)
		return true;
	if (change->action == REORDER_BUFFER_CHANGE_INSERT)
		filter = table->inserts;
	else if (change->action == REORDER_BUFFER_CHANGE_UPDATE)
		filter = table->updates;
	row = filter == NULL ? NULL : new_row(change);
	if (row == NULL)
		return true;
	if (filter->binding == UNKNOWN)
		filter->binding = fits(filter, relation) ? FITS : DOES_NOT_FIT;
	if (filter->binding == DOES_NOT_FIT)
		return true;
	before = MemoryContextSwitchTo(filters.scratch);
	passes = !load(filter, relation, row) || filter_is_true(filter->expression, filter->values);
	MemoryContextSwitchTo(before);
	MemoryContextReset(filters.scratch);
	return passes;
}

/* --- the session */

/* For errors of the functions that read constants. */
static void
name_table(void *rest)
{
	const char *table = ((FilterText *) rest)->table;

	if (table != NULL)
		errcontext("row filter of table %s", table);
}

/* Runs when the decoding context is freed: what the filters point at goes with it. */
static void
end(void *unused)
{
	filters = (RowFilters) {0};
}

void
row_filters_begin(LogicalDecodingContext *context, const char *text)
{
	static bool is_told_of_changes = false; /* a callback stays for the life of the process */
	MemoryContextCallback *at_end;
	MemoryContext kept,
				before;
	HASHCTL		how = {.keysize = sizeof(Oid), .entrysize = sizeof(FilteredTable)};
	FilterText	rest = {.at = text};
	ErrorContextCallback errors = {.callback = name_table, .arg = &rest, .previous = error_context_stack};

	if (!is_told_of_changes)
	{
		CacheRegisterRelcacheCallback(forget_table, (Datum) 0);
		CacheRegisterSyscacheCallback(NAMESPACEOID, forget_schemas, (Datum) 0);
		is_told_of_changes = true;
	}
	if (strlen(text) > OPTION_BYTES_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("row filters of more than %d bytes are not read", OPTION_BYTES_MAX)));
	kept = AllocSetContextCreate(context->context, "thalweg row filters", ALLOCSET_DEFAULT_SIZES);
	at_end = MemoryContextAllocZero(kept, sizeof(MemoryContextCallback));
	at_end->func = end;
	how.hcxt = kept;
	filters = (RowFilters) {
		.tables = hash_create("thalweg row filters", 64, &how, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT),
		.scratch = AllocSetContextCreate(kept, "thalweg row filter", ALLOCSET_DEFAULT_SIZES),
	};
	MemoryContextRegisterResetCallback(kept, at_end);
	before = MemoryContextSwitchTo(kept);
	error_context_stack = &errors;
	while (!filter_is_at_end(&rest))
		read_filter(&rest);
	error_context_stack = errors.previous;
	MemoryContextSwitchTo(before);
}
