/*
 * Expressions of row filters: read from text once, evaluated for each row. Each function gets values of its own types,
 * for any text: a user who may name the plugin need not be trusted with the server's memory.
 */
#ifndef THALWEG_FILTER_EXPRESSION_H
#define THALWEG_FILTER_EXPRESSION_H

/* postgres.h comes before this. */

/* A column that an expression reads, as it must be for the expression to mean what its writer meant. */
typedef struct FilterColumn
{
	char	   *name;
	Oid			type;
	Oid			collation;
} FilterColumn;

typedef struct FilterNode FilterNode;

/* A text that is read; the rest of it. */
typedef struct FilterText
{
	const char *at;
	const char *table;			/* for messages */
} FilterText;

extern void filter_fail(const FilterText *text, const char *what) pg_attribute_noreturn();
/* True: the next token is `token`, a bracket, and is taken. */
extern bool filter_take(FilterText *text, char token);
extern void filter_expect(FilterText *text, char token);
extern bool filter_is_at_end(FilterText *text);
extern char *filter_word(FilterText *text);
extern char *filter_string(FilterText *text);
extern Oid	filter_oid(FilterText *text);

/* Fails where it is not boolean. Everything is allocated in the current memory context. */
extern FilterNode *filter_condition(FilterText *text, const FilterColumn *columns, int count);
/* Values of the columns, in their order. The functions allocate in the current memory context. */
extern bool filter_is_true(const FilterNode *node, const NullableDatum *values);

#endif
