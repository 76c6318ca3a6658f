/*
 * Reads the two arguments of apply_lcrs(): the description of tables (docs/formats/data-layer-call.md) and row frames
 * (docs/formats/lcr-frame.md). Nothing here knows of tables or values; everything is checked against the bytes present,
 * and what is wrong ends in an error of SQLSTATE TW001.
 */
#ifndef THALWEG_LCR_READER_H
#define THALWEG_LCR_READER_H

/* postgres.h comes before this. */

#define THALWEG_MALFORMED MAKE_SQLSTATE('T', 'W', '0', '0', '1')
#define THALWEG_ROW_NOT_FOUND MAKE_SQLSTATE('T', 'W', '0', '0', '2')
#define THALWEG_TABLE_REFUSED MAKE_SQLSTATE('T', 'W', '0', '0', '3')

typedef enum LcrKind
{
	LCR_INSERT = 3,
	LCR_UPDATE = 4,
	LCR_REMOVE = 5
} LcrKind;

typedef enum LcrMark
{
	LCR_NULL = 'n',
	LCR_UNCHANGED = 'u',
	LCR_BINARY = 'b',
	LCR_TEXT = 't'
} LcrMark;

/* One value. `bytes` lie in the frames; the byte behind them may be overwritten for the moment, if it is put back. */
typedef struct LcrValue
{
	LcrMark		mark;
	char	   *bytes;
	int			length;
} LcrValue;

/* A place in bytes that somebody else keeps. */
typedef struct LcrCursor
{
	char	   *at;
	char	   *end;
} LcrCursor;

typedef struct LcrRow
{
	LcrKind		kind;
	uint32		relation;		/* at the source */
	uint32		table_version;
	bool		has_old;
	LcrCursor	tuples;			/* the old tuple, if there is one, then the new one, if there is one */
} LcrRow;

typedef struct LcrTable
{
	uint32		relation;		/* at the source */
	uint32		table_version;
	Oid			table;			/* at the destination */
	Oid			identity_index; /* InvalidOid: rows can only be inserted */
	int			column_count;
	int16	   *attributes;		/* by source column: attnum at the destination, 0 for a value that is not written */
} LcrTable;

/* Reads the header of `tables`; the count of tables that follow. */
extern int	lcr_read_table_count(LcrCursor *tables);
/* The next one; `attributes` is palloc'd. */
extern void lcr_read_table(LcrCursor *tables, LcrTable *table);
extern void lcr_check_end(const LcrCursor *cursor);

/* The next frame; moves behind it. Call only while bytes are left. */
extern void lcr_read_row(LcrCursor *frames, LcrRow *row);
/* The next tuple of a row; it must have exactly `count` columns. */
extern void lcr_read_tuple(LcrCursor *tuples, LcrValue *values, int count);

extern void lcr_malformed(const char *what) pg_attribute_noreturn();

#endif
