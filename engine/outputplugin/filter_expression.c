#include "postgres.h"

#include "filter_expression.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"

/* Types whose values have the same form in memory. */
typedef enum Form
{
	FORM_OTHER,					/* is only asked whether it is NULL */
	FORM_BOOL,
	FORM_INT2,
	FORM_INT4,
	FORM_INT8,
	FORM_FLOAT4,
	FORM_FLOAT8,
	FORM_NUMERIC,
	FORM_TEXT,
	FORM_BYTEA,
	FORM_UUID,
	FORM_DATE,
	FORM_TIME,
	FORM_TIMESTAMP,
} Form;

typedef struct TypeForm
{
	Oid			type;
	Form		form;
	Oid			receive;		/* the function that reads a constant */
} TypeForm;

static const TypeForm type_forms[] = {
	{BOOLOID, FORM_BOOL, F_BOOLRECV},
	{INT2OID, FORM_INT2, F_INT2RECV},
	{INT4OID, FORM_INT4, F_INT4RECV},
	{INT8OID, FORM_INT8, F_INT8RECV},
	{FLOAT4OID, FORM_FLOAT4, F_FLOAT4RECV},
	{FLOAT8OID, FORM_FLOAT8, F_FLOAT8RECV},
	{NUMERICOID, FORM_NUMERIC, F_NUMERIC_RECV},
	{TEXTOID, FORM_TEXT, F_TEXTRECV},
	{VARCHAROID, FORM_TEXT, F_TEXTRECV},
	{BPCHAROID, FORM_TEXT, F_TEXTRECV},
	{BYTEAOID, FORM_BYTEA, F_BYTEARECV},
	{UUIDOID, FORM_UUID, F_UUID_RECV},
	{DATEOID, FORM_DATE, F_DATE_RECV},
	{TIMEOID, FORM_TIME, F_TIME_RECV},
	{TIMESTAMPOID, FORM_TIMESTAMP, F_TIMESTAMP_RECV},
	{TIMESTAMPTZOID, FORM_TIMESTAMP, F_TIMESTAMPTZ_RECV},
};

typedef struct Function
{
	const char *name;			/* pg_proc.prosrc */
	Form		result;
	int			count;
	Form		arguments[2];
} Function;

#define COMPARISONS(prefix, between, left, right) \
	{prefix "eq", FORM_BOOL, 2, {left, right}}, {prefix "ne", FORM_BOOL, 2, {left, right}}, \
	{prefix between "lt", FORM_BOOL, 2, {left, right}}, {prefix between "le", FORM_BOOL, 2, {left, right}}, \
	{prefix between "gt", FORM_BOOL, 2, {left, right}}, {prefix between "ge", FORM_BOOL, 2, {left, right}}

/* None of them fails, whatever its arguments are, except for a LIKE whose pattern ends with its escape character. */
static const Function functions[] = {
	COMPARISONS("bool", "", FORM_BOOL, FORM_BOOL),
	COMPARISONS("int2", "", FORM_INT2, FORM_INT2),
	COMPARISONS("int4", "", FORM_INT4, FORM_INT4),
	COMPARISONS("int8", "", FORM_INT8, FORM_INT8),
	COMPARISONS("int24", "", FORM_INT2, FORM_INT4),
	COMPARISONS("int28", "", FORM_INT2, FORM_INT8),
	COMPARISONS("int42", "", FORM_INT4, FORM_INT2),
	COMPARISONS("int48", "", FORM_INT4, FORM_INT8),
	COMPARISONS("int82", "", FORM_INT8, FORM_INT2),
	COMPARISONS("int84", "", FORM_INT8, FORM_INT4),
	COMPARISONS("float4", "", FORM_FLOAT4, FORM_FLOAT4),
	COMPARISONS("float8", "", FORM_FLOAT8, FORM_FLOAT8),
	COMPARISONS("float48", "", FORM_FLOAT4, FORM_FLOAT8),
	COMPARISONS("float84", "", FORM_FLOAT8, FORM_FLOAT4),
	COMPARISONS("numeric_", "", FORM_NUMERIC, FORM_NUMERIC),
	COMPARISONS("text", "_", FORM_TEXT, FORM_TEXT),
	COMPARISONS("bpchar", "", FORM_TEXT, FORM_TEXT),
	COMPARISONS("bytea", "", FORM_BYTEA, FORM_BYTEA),
	COMPARISONS("uuid_", "", FORM_UUID, FORM_UUID),
	COMPARISONS("date_", "", FORM_DATE, FORM_DATE),
	COMPARISONS("time_", "", FORM_TIME, FORM_TIME),
	COMPARISONS("timestamp_", "", FORM_TIMESTAMP, FORM_TIMESTAMP),
	{"textlike", FORM_BOOL, 2, {FORM_TEXT, FORM_TEXT}},
	{"textnlike", FORM_BOOL, 2, {FORM_TEXT, FORM_TEXT}},
	{"int2_numeric", FORM_NUMERIC, 1, {FORM_INT2}},
	{"int4_numeric", FORM_NUMERIC, 1, {FORM_INT4}},
	{"int8_numeric", FORM_NUMERIC, 1, {FORM_INT8}},
};

typedef enum Meaning
{
	MEANS_COLUMN,
	MEANS_CONSTANT,
	MEANS_CALL,						/* strict */
	MEANS_ALL,						/* AND */
	MEANS_ANY,						/* OR */
	MEANS_NEGATION,
	MEANS_IS_NULL,
	MEANS_IS_TRUE,
	MEANS_IS_FALSE,
	MEANS_DISTINCT,					/* the function tests equality */
} Meaning;

struct FilterNode
{
	Meaning		meaning;
	Form		form;
	int			column;			/* its index */
	NullableDatum constant;
	FmgrInfo	function;
	int			count;
	FilterNode **arguments;
};

/* --- the text */

void
filter_fail(const FilterText *text, const char *what)
{
	int			shown = pg_mbcliplen(text->at, strlen(text->at), 60);

	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("row filter of table %s is not valid: %s", text->table ? text->table : "(none)", what),
			 errdetail("What follows is: %.*s", shown, text->at)));
}

static void
skip_blanks(FilterText *text)
{
	while (*text->at == ' ')
		text->at++;
}

bool
filter_is_at_end(FilterText *text)
{
	skip_blanks(text);
	return *text->at == '\0';
}

bool
filter_take(FilterText *text, char token)
{
	skip_blanks(text);
	if (*text->at != token)
		return false;
	text->at++;
	return true;
}

void
filter_expect(FilterText *text, char token)
{
	if (!filter_take(text, token))
		filter_fail(text, token == '(' ? "( is expected" : ") is expected");
}

char *
filter_word(FilterText *text)
{
	size_t		length;
	char	   *word;

	skip_blanks(text);
	length = strcspn(text->at, " ()\"");
	if (length == 0)
		filter_fail(text, "a word is expected");
	word = pnstrdup(text->at, length);
	text->at += length;
	return word;
}

/* In double quotes, which are doubled inside. */
char *
filter_string(FilterText *text)
{
	StringInfoData out;
	char	   *found;

	initStringInfo(&out);
	if (!filter_take(text, '"'))
		filter_fail(text, "a text in double quotes is expected");
	for (;;)
	{
		if (*text->at == '\0')
			filter_fail(text, "a text does not end");
		if (*text->at == '"' && *++text->at != '"')
			break;
		appendStringInfoChar(&out, *text->at++);
	}
	found = pnstrdup(out.data, out.len);	/* many are kept: each with no more memory than it needs */
	pfree(out.data);
	return found;
}

Oid
filter_oid(FilterText *text)
{
	char	   *word = filter_word(text);
	char	   *end;
	unsigned long number;

	errno = 0;
	number = strtoul(word, &end, 10);
	if (*word < '0' || *word > '9' || *end != '\0' || errno != 0 || number > PG_UINT32_MAX)
		filter_fail(text, "a number is expected");
	return (Oid) number;
}

static int
digit_of(const FilterText *text, char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	filter_fail(text, "hexadecimal digits are expected");
}

/* --- reading */

static const TypeForm *
find_form(Oid type)
{
	for (int i = 0; i < lengthof(type_forms); i++)
		if (type_forms[i].type == type)
			return &type_forms[i];
	return NULL;
}

static const Function *
find_function(const FilterText *text, const char *name)
{
	for (int i = 0; i < lengthof(functions); i++)
		if (strcmp(functions[i].name, name) == 0)
			return &functions[i];
	filter_fail(text, "a function is not one of a row filter");
}

static void
read_column(FilterText *text, FilterNode *node, const FilterColumn *columns, int count)
{
	Oid			index = filter_oid(text);
	const TypeForm *found;

	if (index >= count)
		filter_fail(text, "there is no such column");
	node->meaning = MEANS_COLUMN;
	node->column = (int) index;
	found = find_form(columns[index].type);
	node->form = found ? found->form : FORM_OTHER;
}

/* The bytes are those of the type's send function: no setting of the session changes what they mean. */
static void
read_constant(FilterText *text, FilterNode *node)
{
	const TypeForm *found = find_form(filter_oid(text));
	char	   *digits;
	StringInfoData bytes;

	if (found == NULL)
		filter_fail(text, "a constant's type is not one of a row filter");
	node->meaning = MEANS_CONSTANT;
	node->form = found->form;
	node->constant.isnull = true;
	skip_blanks(text);
	if (*text->at != '"')
		return;
	digits = filter_string(text);
	if (strlen(digits) % 2 != 0)
		filter_fail(text, "hexadecimal digits are expected in pairs");
	initStringInfo(&bytes);
	for (const char *digit = digits; *digit != '\0'; digit += 2)
		appendStringInfoChar(&bytes, (char) (digit_of(text, digit[0]) << 4 | digit_of(text, digit[1])));
	node->constant.value = OidReceiveFunctionCall(found->receive, &bytes, InvalidOid, -1);
	node->constant.isnull = false;
	if (bytes.cursor != bytes.len)
		filter_fail(text, "a constant has more bytes than a value of its type");
	pfree(bytes.data);
	pfree(digits);
}

static FilterNode *read_expression(FilterText *text, const FilterColumn *columns, int count);

static void
read_arguments(FilterText *text, FilterNode *node, const FilterColumn *columns, int count)
{
	int			room = 2;

	node->arguments = palloc(room * sizeof(FilterNode *));
	for (skip_blanks(text); *text->at == '('; skip_blanks(text))
	{
		if (node->count == room)
			node->arguments = repalloc(node->arguments, (room *= 2) * sizeof(FilterNode *));
		node->arguments[node->count++] = read_expression(text, columns, count);
	}
}

static void
check_arguments(const FilterText *text, const FilterNode *node, int count, Form form)
{
	if (node->count == 0 || (count != 0 && node->count != count))
		filter_fail(text, "the number of arguments is wrong");
	for (int i = 0; form != FORM_OTHER && i < node->count; i++)
		if (node->arguments[i]->form != form)
			filter_fail(text, "an argument is of another type");
}

static void
read_call(FilterText *text, FilterNode *node, const FilterColumn *columns, int count)
{
	const Function *function = find_function(text, filter_word(text));
	Oid			oid = fmgr_internal_function(function->name);

	read_arguments(text, node, columns, count);
	check_arguments(text, node, function->count, FORM_OTHER);
	for (int i = 0; i < node->count; i++)
		if (node->arguments[i]->form != function->arguments[i])
			filter_fail(text, "an argument is of another type");
	if (!OidIsValid(oid))
		filter_fail(text, "the server has no such function");
	node->form = function->result;
	fmgr_info(oid, &node->function);
}

static FilterNode *
read_node(FilterText *text, const FilterColumn *columns, int count)
{
	static const struct
	{
		const char *word;
		Meaning		meaning;
		int			count;		/* 0: one at least */
		Form		form;		/* of the arguments; FORM_OTHER: any */
	}			tests[] = {
		{"and", MEANS_ALL, 0, FORM_BOOL}, {"or", MEANS_ANY, 0, FORM_BOOL}, {"not", MEANS_NEGATION, 1, FORM_BOOL},
		{"null", MEANS_IS_NULL, 1, FORM_OTHER}, {"true", MEANS_IS_TRUE, 1, FORM_BOOL}, {"false", MEANS_IS_FALSE, 1, FORM_BOOL},
	};
	FilterNode *node = palloc0(sizeof(FilterNode));
	char	   *word = filter_word(text);

	if (strcmp(word, "column") == 0)
		read_column(text, node, columns, count);
	else if (strcmp(word, "value") == 0)
		read_constant(text, node);
	else if (strcmp(word, "call") == 0 || strcmp(word, "distinct") == 0)
	{
		node->meaning = *word == 'c' ? MEANS_CALL : MEANS_DISTINCT;
		read_call(text, node, columns, count);
		if (node->meaning == MEANS_DISTINCT && (node->form != FORM_BOOL || node->count != 2))
			filter_fail(text, "distinct takes a comparison");
	}
	else
	{
		for (int i = 0; i < lengthof(tests); i++)
		{
			if (strcmp(word, tests[i].word) != 0)
				continue;
			node->meaning = tests[i].meaning;
			node->form = FORM_BOOL;
			read_arguments(text, node, columns, count);
			check_arguments(text, node, tests[i].count, tests[i].form);
			return node;
		}
		filter_fail(text, "there is no such expression");
	}
	return node;
}

static FilterNode *
read_expression(FilterText *text, const FilterColumn *columns, int count)
{
	FilterNode *node;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	filter_expect(text, '(');
	node = read_node(text, columns, count);
	filter_expect(text, ')');
	return node;
}

FilterNode *
filter_condition(FilterText *text, const FilterColumn *columns, int count)
{
	FilterNode *node = read_expression(text, columns, count);

	if (node->form != FORM_BOOL)
		filter_fail(text, "it is no condition");
	return node;
}

/* --- evaluation */

static NullableDatum
boolean(bool value)
{
	return (NullableDatum) {.value = BoolGetDatum(value), .isnull = false};
}

static NullableDatum evaluate(const FilterNode *node, const NullableDatum *values);

/* Texts' equality is that of their bytes, and their order too: readers ask for no other. */
static Datum
call(const FilterNode *node, const NullableDatum *arguments)
{
	LOCAL_FCINFO(info, 2);

	InitFunctionCallInfoData(*info, (FmgrInfo *) &node->function, node->count, C_COLLATION_OID, NULL, NULL);
	for (int i = 0; i < node->count; i++)
		info->args[i] = arguments[i];
	return FunctionCallInvoke(info);
}

static NullableDatum
evaluate_call(const FilterNode *node, const NullableDatum *values)
{
	NullableDatum arguments[2] = {{0}};

	for (int i = 0; i < node->count; i++)
		arguments[i] = evaluate(node->arguments[i], values);
	if (node->meaning == MEANS_DISTINCT && (arguments[0].isnull || arguments[1].isnull))
		return boolean(arguments[0].isnull != arguments[1].isnull);
	for (int i = 0; i < node->count; i++)
		if (arguments[i].isnull)
			return (NullableDatum) {.isnull = true};
	if (node->meaning == MEANS_DISTINCT)
		return boolean(!DatumGetBool(call(node, arguments)));
	return (NullableDatum) {.value = call(node, arguments), .isnull = false};
}

/* AND and OR of three truth values. */
static NullableDatum
evaluate_logical(const FilterNode *node, const NullableDatum *values)
{
	const bool	decisive = node->meaning == MEANS_ANY;
	NullableDatum result = boolean(!decisive);

	for (int i = 0; i < node->count; i++)
	{
		NullableDatum argument = evaluate(node->arguments[i], values);

		if (argument.isnull)
			result.isnull = true;
		else if (DatumGetBool(argument.value) == decisive)
			return argument;
	}
	return result;
}

/* No deeper than it was read. */
static NullableDatum
evaluate(const FilterNode *node, const NullableDatum *values)
{
	NullableDatum first;

	CHECK_FOR_INTERRUPTS();
	switch (node->meaning)
	{
		case MEANS_COLUMN:
			return values[node->column];
		case MEANS_CONSTANT:
			return node->constant;
		case MEANS_CALL:
		case MEANS_DISTINCT:
			return evaluate_call(node, values);
		case MEANS_ALL:
		case MEANS_ANY:
			return evaluate_logical(node, values);
		case MEANS_NEGATION:
			first = evaluate(node->arguments[0], values);
			return first.isnull ? first : boolean(!DatumGetBool(first.value));
		case MEANS_IS_NULL:
			return boolean(evaluate(node->arguments[0], values).isnull);
		case MEANS_IS_TRUE:
		case MEANS_IS_FALSE:
			first = evaluate(node->arguments[0], values);
			return boolean(!first.isnull && DatumGetBool(first.value) == (node->meaning == MEANS_IS_TRUE));
	}
	pg_unreachable();
}

bool
filter_is_true(const FilterNode *node, const NullableDatum *values)
{
	NullableDatum result = evaluate(node, values);

	return !result.isnull && DatumGetBool(result.value);
}
