#include "postgres.h"

#include "lcr_reader.h"

#include "access/htup_details.h"
#include "port/pg_bswap.h"

#define CALL_VERSION 1
#define FRAME_VERSION 1
#define FRAME_HEADER_BYTES 40
#define FRAME_ALIGNMENT 8

/* Offsets in a frame's header, whose integers are little-endian. */
#define AT_LENGTH 0
#define AT_VERSION 8
#define AT_KIND 9
#define AT_FLAGS 10
#define AT_RELATION 20
#define AT_TABLE_VERSION 24
#define AT_BODY_LENGTH 28

#define FLAG_OLD_KEY 2
#define FLAG_OLD_ROW 4

void
lcr_malformed(const char *what)
{
	ereport(ERROR, (errcode(THALWEG_MALFORMED), errmsg("malformed LCRs: %s", what)));
}

static char *
take(LcrCursor *cursor, size_t count)
{
	char	   *taken = cursor->at;

	if (unlikely((size_t) (cursor->end - cursor->at) < count))
		lcr_malformed("bytes end early");
	cursor->at += count;
	return taken;
}

static uint8
take8(LcrCursor *cursor)
{
	return (uint8) *take(cursor, 1);
}

static uint16
take16(LcrCursor *cursor)
{
	uint16		value;

	memcpy(&value, take(cursor, sizeof(value)), sizeof(value));
	return pg_ntoh16(value);
}

static uint32
take32(LcrCursor *cursor)
{
	uint32		value;

	memcpy(&value, take(cursor, sizeof(value)), sizeof(value));
	return pg_ntoh32(value);
}

static uint16
little16(const char *at)
{
	return (uint16) ((uint8) at[0] | (uint8) at[1] << 8);
}

static uint32
little32(const char *at)
{
	return (uint32) little16(at) | (uint32) little16(at + 2) << 16;
}

void
lcr_check_end(const LcrCursor *cursor)
{
	if (cursor->at != cursor->end)
		lcr_malformed("bytes are left over");
}

int
lcr_read_table_count(LcrCursor *tables)
{
	if (take8(tables) != CALL_VERSION)
		lcr_malformed("unknown version of the table list");
	return take16(tables);
}

void
lcr_read_table(LcrCursor *tables, LcrTable *table)
{
	table->relation = take32(tables);
	table->table_version = take32(tables);
	table->table = take32(tables);
	table->identity_index = take32(tables);
	table->column_count = take16(tables);
	if (table->column_count > MaxTupleAttributeNumber)
		lcr_malformed("too many columns");
	table->attributes = palloc(sizeof(int16) * Max(table->column_count, 1));
	for (int i = 0; i < table->column_count; i++)
		table->attributes[i] = (int16) take16(tables);
}

void
lcr_read_row(LcrCursor *frames, LcrRow *row)
{
	size_t		present = frames->end - frames->at;
	char	   *frame = frames->at;
	uint32		length;
	uint32		body_length;
	uint16		flags;

	if (present < FRAME_HEADER_BYTES)
		lcr_malformed("a frame's header ends early");
	length = little32(frame + AT_LENGTH);
	body_length = little32(frame + AT_BODY_LENGTH);
	if (length < FRAME_HEADER_BYTES || length > present || length % FRAME_ALIGNMENT != 0 ||
		body_length > length - FRAME_HEADER_BYTES)
		lcr_malformed("a frame's length is wrong");
	if ((uint8) frame[AT_VERSION] != FRAME_VERSION)
		lcr_malformed("unknown version of a frame");
	flags = little16(frame + AT_FLAGS);
	row->kind = (LcrKind) (uint8) frame[AT_KIND];
	row->has_old = (flags & (FLAG_OLD_KEY | FLAG_OLD_ROW)) != 0;
	if (row->kind != LCR_INSERT && row->kind != LCR_UPDATE && row->kind != LCR_REMOVE)
		lcr_malformed("a frame is not a row");
	if ((row->kind == LCR_INSERT && row->has_old) || (row->kind == LCR_REMOVE && !row->has_old))
		lcr_malformed("a frame's flags do not fit its kind");
	row->relation = little32(frame + AT_RELATION);
	row->table_version = little32(frame + AT_TABLE_VERSION);
	row->tuples.at = frame + FRAME_HEADER_BYTES;
	row->tuples.end = row->tuples.at + body_length;
	frames->at += length;
}

void
lcr_read_tuple(LcrCursor *tuples, LcrValue *values, int count)
{
	if (take16(tuples) != count)
		lcr_malformed("a tuple has another number of columns than its table");
	for (int i = 0; i < count; i++)
	{
		LcrValue   *value = &values[i];
		uint32		length;

		value->mark = (LcrMark) take8(tuples);
		switch (value->mark)
		{
			case LCR_NULL:
			case LCR_UNCHANGED:
				value->bytes = NULL;
				value->length = 0;
				break;
			case LCR_BINARY:
			case LCR_TEXT:
				length = take32(tuples);
				value->bytes = take(tuples, length);
				value->length = (int) length;	/* at most what a bytea holds */
				break;
			default:
				lcr_malformed("unknown mark of a value");
		}
	}
}
