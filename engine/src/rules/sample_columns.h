#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "rules/rule_table.h"
#include "rules/value.h"

// A table with a column of every type that a condition may use, and values to put there.

namespace thalweg::rules {

struct SampleColumn {
  std::string_view name;
  Type type;
  std::string_view sql_type;
  std::string_view send;                     // the type's send function
  std::span<const std::string_view> values;  // as SQL literals without their quotes
};

inline constexpr std::array<std::string_view, 3> kBooleans{"true", "false", "t"};
inline constexpr std::array<std::string_view, 8> kInt2s{"0", "1", "-1", "7", "100", "32767", "-32768", "12"};
inline constexpr std::array<std::string_view, 9> kInt4s{"0",          "1",           "-1",    "7", "42",
                                                        "2147483647", "-2147483648", "65536", "-3"};
inline constexpr std::array<std::string_view, 8> kInt8s{
    "0", "1", "-1", "5", "9223372036854775807", "-9223372036854775808", "4294967296", "-77"};
inline constexpr std::array<std::string_view, 10> kReals{"0",        "-0",        "1.5",  "-2.25", "NaN",
                                                         "Infinity", "-Infinity", "1e30", "1e-30", "0.1"};
inline constexpr std::array<std::string_view, 14> kNumerics{
    "0",   "1",        "-1",        "0.5",        "-0.5",       "1.50",  "123456789012345678901234567890.123456789",
    "NaN", "Infinity", "-Infinity", "0.00000001", "-9999.9999", "10000", "2.5"};
inline constexpr std::array<std::string_view, 14> kTexts{"",   "a",     "abc",  "ABC",  "größe", "12",     " 12 ",
                                                         "-7", "a%b_c", "x\\y", "true", "a  ",   "日本語", "1.5e2"};
inline constexpr std::array<std::string_view, 6> kBytes{"\\x",
                                                        "\\x00",
                                                        "\\xdeadbeef",
                                                        "\\x6162",
                                                        "\\x5c5c0061ff",
                                                        "\\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1"
                                                        "d1e1f202122232425262728292a2b2c2d2e2f303132333435363738"};
inline constexpr std::array<std::string_view, 3> kUuids{"00000000-0000-0000-0000-000000000000",
                                                        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
                                                        "ffffffff-ffff-ffff-ffff-ffffffffffff"};
inline constexpr std::array<std::string_view, 8> kDates{"2000-01-01", "1999-12-31", "2024-02-29",    "2023-03-31",
                                                        "infinity",   "-infinity",  "0044-03-15 BC", "9999-12-31"};
inline constexpr std::array<std::string_view, 4> kTimes{"00:00:00", "23:59:59.999999", "12:30:00", "24:00:00"};
inline constexpr std::array<std::string_view, 8> kTimestamps{
    "2000-01-01 00:00:00", "1999-12-31 23:59:59.999999", "2024-02-29 12:00:00",   "2023-03-31 01:02:03.5", "infinity",
    "-infinity",           "1970-01-01 00:00:00",        "0001-12-31 22:00:00 BC"};
inline constexpr std::array<std::string_view, 4> kZoned{"2000-01-01 00:00:00+00", "2024-02-29 12:00:00-05:30",
                                                        "infinity", "1969-12-31 23:00:00Z"};
inline constexpr std::array<std::string_view, 7> kIntervals{
    "1 day", "24:00:00", "1 month", "30 days", "-1 years +2 days", "-00:00:00.000001", "1 mon -1 days +123:00:00"};
inline constexpr std::array<std::string_view, 14> kDocuments{
    "{}",
    "[]",
    "null",
    "true",
    "12",
    R"("größe")",
    R"({"a": 1, "b": [1, null, "a", {"a": -7.50}], "größe": "x", "": {"a": {"a": []}}})",
    R"({"a": "12", "b": "12.5", "n": null, "t": true, "f": false})",
    R"({"a": "\"\\/\b\f\n\r\t\u00e4\ud83d\ude00\u0001", "a\"b": "}]", "x\\y": "{["})",
    R"([0, "a", "12", {"a": "b"}, [1, 2], null, "größe"])",
    R"(["a\tb", "", 1e3, 0.000001, true])",
    R"({"a": 9223372036854775808, "b": -1.0, "c": 32768})",
    R"([[[]], {"a": [[], {}]}])",
    R"({"a": null, "b": {}, "c": "日本語"})"};
inline constexpr std::array<std::string_view, 3> kMoods{"low", "middle", "high"};

inline constexpr std::array kSampleColumns{
    SampleColumn{"b", Type::boolean, "boolean", "boolsend", kBooleans},
    SampleColumn{"s", Type::int2, "smallint", "int2send", kInt2s},
    SampleColumn{"i", Type::int4, "integer", "int4send", kInt4s},
    SampleColumn{"j", Type::int4, "integer", "int4send", kInt4s},
    SampleColumn{"l", Type::int8, "bigint", "int8send", kInt8s},
    SampleColumn{"f", Type::float4, "real", "float4send", kReals},
    SampleColumn{"g", Type::float8, "double precision", "float8send", kReals},
    SampleColumn{"m", Type::numeric, "numeric", "numeric_send", kNumerics},
    SampleColumn{"n", Type::numeric, "numeric", "numeric_send", kNumerics},
    SampleColumn{"x", Type::text, "text", "textsend", kTexts},
    SampleColumn{"v", Type::varchar, "varchar(20)", "varcharsend", kTexts},
    SampleColumn{"c", Type::bpchar, "char(8)", "bpcharsend", kTexts},
    SampleColumn{"y", Type::bytea, "bytea", "byteasend", kBytes},
    SampleColumn{"u", Type::uuid, "uuid", "uuid_send", kUuids},
    SampleColumn{"d", Type::date, "date", "date_send", kDates},
    SampleColumn{"h", Type::time, "time", "time_send", kTimes},
    SampleColumn{"p", Type::timestamp, "timestamp", "timestamp_send", kTimestamps},
    SampleColumn{"z", Type::timestamptz, "timestamptz", "timestamptz_send", kZoned},
    SampleColumn{"w", Type::interval, "interval", "interval_send", kIntervals},
    SampleColumn{"q", Type::jsonb, "jsonb", "jsonb_send", kDocuments},
    SampleColumn{"e", Type::any_enum, "mood", "enum_send", kMoods},
};

inline const SampleColumn& sample_column(Type type) {
  return *std::ranges::find(kSampleColumns, type, &SampleColumn::type);
}

inline constexpr base::TypeId kMoodType{20'000};

// The table that has them. Its texts are in a collation whose order the engine does not know.
inline RuleTable sample_columns_table() {
  RuleTable made{.schema = "rules", .name = "t", .columns = {}};
  for (const SampleColumn& column : kSampleColumns) {
    RuleColumn& added = made.columns.emplace_back();
    added.name = column.name;
    added.type = {static_cast<uint32_t>(column.type)};
    if (column.type != Type::any_enum) continue;
    added.type = kMoodType;
    added.enum_labels.assign(kMoods.begin(), kMoods.end());
  }
  return made;
}

}  // namespace thalweg::rules
