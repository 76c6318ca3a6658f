#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "rules/sample_columns.h"

// Conditions and rows by a seed, for the comparison with PostgreSQL.

namespace thalweg::rules {

// Owner: one test.
class ConditionMaker {
 public:
  explicit ConditionMaker(uint64_t seed) : random_(seed) {}

  uint64_t below(uint64_t bound) { return random_() % bound; }
  template <typename Range>
  const auto& pick(const Range& range) {
    return range[below(std::size(range))];
  }

  std::string condition(int depth) {
    switch (below(depth > 0 ? 16 : 9)) {
      case 9:
      case 10:
        return "(" + condition(depth - 1) + pick(std::array<const char*, 2>{" and ", " or "}) + condition(depth - 1) +
               ")";
      case 11:
        return "not (" + condition(depth - 1) + ")";
      case 12:
        return "(" + condition(depth - 1) + ")" +
               pick(std::array<const char*, 6>{" is true", " is not true", " is false", " is not false", " is unknown",
                                               " is not unknown"});
      case 13:
        return "case when " + condition(depth - 1) + " then " + condition(depth - 1) + " else " + condition(0) + " end";
      case 14:
        return "coalesce(" + condition(depth - 1) + ", " + condition(0) + ")";
      case 0:
        return like();
      case 1:
        return value(pick(kSampleColumns).type, 1) + pick(std::array<const char*, 2>{" is null", " is not null"});
      default:
        return comparison(pick(kSampleColumns).type, depth);
    }
  }

  // A row as a list of SQL values.
  std::string row() {
    std::string values;
    for (const SampleColumn& column : kSampleColumns) {
      values += values.empty() ? "" : ", ";
      values += below(8) == 0 ? "null" : quote(pick(column.values));
    }
    return values;
  }

  // A value of that type, or one that converts to it: a column, a literal, or up to `depth` operations over them.
  std::string value(Type type, int depth) {
    if (depth <= 0 || below(3) == 0) return below(4) == 0 ? literal(type) : column(type);
    const std::string inner = value(type, depth - 1);
    if (is_number(type)) return number(type, inner, depth);
    if (is_string(type)) return string(inner, depth);
    switch (type) {
      case Type::date:
        return "(" + inner + pick(std::array<const char*, 4>{" + 1)", " - 31)", " + s)", " - s)"});
      case Type::timestamp:
        switch (below(4)) {
          case 0:
            return "date_trunc('" +
                   std::string(pick(std::array<const char*, 8>{"year", "quarter", "month", "week", "day", "hour",
                                                               "minute", "second"})) +
                   "', " + inner + ")";
          case 1:
            return "(" + column(Type::date) + " + " + column(Type::interval) + ")";
          default:
            return "(" + inner + pick(std::array<const char*, 2>{" + ", " - "}) + column(Type::interval) + ")";
        }
      case Type::interval:
        switch (below(3)) {
          case 0:
            return "(p - " + literal(Type::timestamp) + ")";
          case 1:
            return "(- " + inner + ")";
          default:
            return "(" + inner + pick(std::array<const char*, 2>{" + ", " - "}) + column(Type::interval) + ")";
        }
      case Type::jsonb:
        return "(" + inner + " -> " + pick(kPlaces) + ")";
      case Type::bytea:
        switch (below(3)) {
          case 0:
            return "substring(" + inner + ", " + pick(std::array<const char*, 3>{"2", "s", "j"}) + ")";
          case 1:
            return "sha256(" + inner + ")";
          default:
            return "overlay(" + inner + " placing y from 2)";
        }
      case Type::time:
        return "(" + inner + pick(std::array<const char*, 2>{" + ", " - "}) + column(Type::interval) + ")";
      default:
        return inner;
    }
  }

  std::string column(Type type) {
    std::vector<std::string_view> names;
    for (const SampleColumn& column : kSampleColumns) {
      if (column.type == type) names.push_back(column.name);
    }
    return (below(4) == 0 ? "new." : "") + std::string(pick(names));
  }

  std::string literal(Type type) {
    if (type == Type::jsonb) return column(type);  // there are none
    const SampleColumn& column = sample_column(type);
    const std::string text = quote(pick(column.values));
    if (is_number(type) && below(2) == 0)
      return pick(std::array<const char*, 7>{"0", "1", "-3", "2.5", "7", "1e3", "-0.001"});
    if (is_string(type) || type == Type::any_enum) return text;
    return "(" + text + "::" + std::string(column.sql_type) + ")";
  }

 private:
  // Keys and indexes of documents.
  static constexpr std::array<const char*, 11> kPlaces{"'a'", "'b'", "'größe'", "''", "'n'", "0",
                                                       "1",   "-1",  "-3",      "s",  "x"};

  static std::string quote(std::string_view text) {
    std::string quoted = "'";
    for (const char c : text) quoted += c == '\'' ? "''" : std::string(1, c);
    return quoted + "'";
  }
  static bool is_number(Type type) {
    return type == Type::int2 || type == Type::int4 || type == Type::int8 || type == Type::float4 ||
           type == Type::float8 || type == Type::numeric;
  }
  static bool is_string(Type type) { return type == Type::text || type == Type::varchar || type == Type::bpchar; }

  // A type that compares with `type`.
  Type partner(Type type) {
    if (is_number(type) && below(2) == 0) {
      return pick(std::array{Type::int2, Type::int4, Type::int8, Type::float4, Type::float8, Type::numeric});
    }
    if (is_string(type) && below(2) == 0) return pick(std::array{Type::text, Type::varchar, Type::bpchar});
    if (type == Type::date && below(3) == 0) return Type::timestamp;
    if (type == Type::timestamp && below(3) == 0) return Type::date;
    return type;
  }

  // Conditions over a document.
  std::string document(int depth) {
    const std::string inner = value(Type::jsonb, depth);
    switch (below(6)) {
      case 0:
        return "(" + inner + " ->> " + pick(kPlaces) + ") = " + literal(Type::text);
      case 1:
        return "(" + inner + " ->> " + pick(kPlaces) +
               ")::" + pick(std::array<const char*, 4>{"int", "numeric", "float8", "boolean"}) + " is not null";
      case 2:
        return "(" + inner + " ? " + pick(std::array<const char*, 5>{"'a'", "'größe'", "x", "''", "'12'"}) + ")";
      case 3:
        return "jsonb_typeof(" + inner + ") = " +
               pick(std::array<const char*, 6>{"'object'", "'array'", "'string'", "'number'", "'boolean'", "'null'"});
      case 4:
        return "jsonb_array_length(" + inner + ") > 2";
      default:
        return "(" + inner + ")::text like '%a%'";
    }
  }

  std::string comparison(Type type, int depth) {
    if (type == Type::jsonb) return document(depth);
    const bool is_ordered = !is_string(type) && type != Type::any_enum;
    const std::string left =
        value(type, depth) + (is_string(type) ? pick(std::array<const char*, 2>{"", " collate \"C\""}) : "");
    const bool has_order = is_ordered || left.ends_with("\"C\"");
    const Type other = partner(type);
    switch (below(8)) {
      case 0:
        return left + pick(std::array<const char*, 2>{" in (", " not in ("}) + value(other, 0) + ", " + literal(type) +
               ", " + literal(type) + ")";
      case 1:
        if (has_order) {
          return left +
                 pick(std::array<const char*, 4>{" between ", " not between ", " between symmetric ",
                                                 " not between symmetric "}) +
                 literal(type) + " and " + column(other);
        }
        [[fallthrough]];
      case 2:
        return left + pick(std::array<const char*, 2>{" is distinct from ", " is not distinct from "}) +
               value(other, 1);
      case 3:
        return left + " = nullif(" + value(type, 0) + ", " + literal(type) + ")";
      case 4:
        return left + " <> case when " + condition(0) + " then " + value(type, 0) + " else " + literal(type) + " end";
      default:
        break;
    }
    const char* op = has_order ? pick(std::array<const char*, 6>{" = ", " <> ", " < ", " <= ", " > ", " >= "})
                               : pick(std::array<const char*, 2>{" = ", " <> "});
    return left + op + value(other, depth);
  }

  std::string like() {
    constexpr std::array<const char*, 12> kPatterns{"%",  "a%",    "%b%",  "_b_", "%\\%%", "a\\",
                                                    "%c", "größe", "__ö%", "A%",  "%_",    "%%b_c"};
    const std::string operand = value(pick(std::array{Type::text, Type::varchar, Type::bpchar}), 1);
    switch (below(4)) {
      case 0:
        return operand + " collate \"C\"" + pick(std::array<const char*, 2>{" ilike ", " not ilike "}) +
               quote(pick(kPatterns));
      case 1:
        return operand + " like " + column(Type::text);
      case 2:
        return operand + " like " + quote(pick(kPatterns)) + " escape " +
               quote(pick(std::array<const char*, 3>{"!", "%", ""}));
      default:
        return operand + pick(std::array<const char*, 2>{" like ", " not like "}) + quote(pick(kPatterns));
    }
  }

  std::string number(Type type, const std::string& inner, int depth) {
    const bool is_whole = type == Type::int2 || type == Type::int4 || type == Type::int8;
    switch (below(11)) {
      case 8:
        return pick(std::array<const char*, 2>{"greatest(", "least("}) + inner + ", " + value(type, 0) + ", " +
               column(type) + ")";
      case 9:
        if (!is_whole) return inner;
        return "(" + column(type) + pick(std::array<const char*, 5>{" & ", " | ", " # ", " << ", " >> "}) +
               column(Type::int2) + ")";
      case 10:
        if (type == Type::float8) return "date_part('epoch', " + value(Type::timestamp, 0) + ")";
        return is_whole ? "(~ " + column(type) + ")" : inner;
      case 0:
        return "abs(" + inner + ")";
      case 1:
        return "(- " + inner + ")";
      case 2:
        if (type == Type::numeric) {
          return pick(std::array<const char*, 5>{"round", "trunc", "ceil", "floor", "sign"}) + ("(" + inner + ")");
        }
        return "length(" + value(Type::text, depth - 1) + ")";
      case 3:
        if (type == Type::numeric) {
          return "extract(" +
                 std::string(pick(std::array<const char*, 6>{"year", "month", "doy", "isodow", "epoch", "day"})) +
                 " from " + value(below(2) == 0 ? Type::date : Type::timestamp, depth - 1) + ")";
        }
        return "(" + inner + ")::" +
               pick(std::array<const char*, 7>{"smallint", "int", "bigint", "real", "float8", "numeric",
                                               "numeric(8,2)"});
      case 4:
        return "(" + value(Type::text, 0) +
               ")::" + pick(std::array<const char*, 4>{"int", "bigint", "numeric", "float8"});
      case 5:
        return "coalesce(" + inner + ", " + column(type) + ")";
      default:
        break;
    }
    const char* op = type == Type::float4 || type == Type::float8
                         ? pick(std::array<const char*, 4>{" + ", " - ", " * ", " / "})
                         : pick(std::array<const char*, 5>{" + ", " - ", " * ", " / ", " % "});
    return "(" + inner + op + value(type, depth - 1) + ")";
  }

  std::string string(const std::string& inner, int depth) {
    switch (below(14)) {
      case 11:
        return "md5(" + inner + ")";
      case 12:
        return "greatest(" + inner + " collate \"C\", " + value(Type::text, 0) + ")";
      case 13:
        return "(" + value(Type::jsonb, 1) + " ->> " + pick(kPlaces) + ")";
      case 0:
        return "(" + inner + " || " + value(Type::text, depth - 1) + ")";
      case 1:
        return "lower(" + inner + " collate \"C\")";
      case 2:
        return "upper(" + inner + " collate \"C\")";
      case 3:
        return "substring(" + inner + ", " + pick(std::array<const char*, 3>{"2", "-1", "i"}) + ", " +
               pick(std::array<const char*, 3>{"2", "j", "0"}) + ")";
      case 4:
        return pick(std::array<const char*, 2>{"left", "right"}) + ("(" + inner + ", ") +
               pick(std::array<const char*, 3>{"2", "-2", "s"}) + ")";
      case 5:
        return pick(std::array<const char*, 3>{"btrim", "ltrim", "rtrim"}) + ("(" + inner + ")");
      case 6:
        return "btrim(" + inner + ", 'aößC')";
      case 7:
        return "replace(" + inner + ", 'a', 'xy')";
      case 8:
        return "reverse(" + inner + ")";
      case 9:
        return "(" + inner + ")::" + pick(std::array<const char*, 3>{"varchar(2)", "char(5)", "text"});
      default:
        return "(" + value(pick(std::array{Type::int4, Type::int8, Type::numeric}), depth - 1) + ")::text";
    }
  }

  std::mt19937_64 random_;
};

}  // namespace thalweg::rules
