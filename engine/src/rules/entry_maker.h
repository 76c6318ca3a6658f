#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rules/casting.h"
#include "rules/condition_maker.h"

// Uses of every operator, function and cast of the catalogue that a condition may have.

namespace thalweg::rules {

struct Entry {
  enum class Kind : uint8_t { operation, function, cast, size } kind;
  std::string_view name;
  std::vector<Type> arguments;
  Type result;
  std::string_view evaluator;  // empty: the cast only relabels the bytes

  std::string shown() const {
    std::string out(name);
    for (const Type type : arguments) out += " " + std::string(name_of(type));
    return out + " gives " + std::string(name_of(result));
  }
};

inline void add_entries(std::vector<Entry>& entries, Entry::Kind kind, std::span<const Candidate> candidates) {
  for (const Candidate& candidate : candidates) {
    Entry entry{.kind = kind, .name = candidate.name, .arguments = {}, .result = candidate.result, .evaluator = {}};
    for (const Type type : std::span(candidate.arguments).first(candidate.count)) {
      if (type != Type::none) entry.arguments.push_back(type);
    }
    entry.evaluator = candidate.evaluator;
    const bool usable = std::ranges::all_of(entry.arguments, is_supported) && is_supported(entry.result);
    if (usable && find_evaluator(entry.evaluator) != nullptr) entries.push_back(std::move(entry));
  }
}

inline std::vector<Entry> usable_entries() {
  using Kind = Entry::Kind;
  constexpr std::array kTextTypes{Type::text, Type::varchar, Type::bpchar};
  std::vector<Entry> entries;
  add_entries(entries, Kind::operation, all_operators());
  add_entries(entries, Kind::function, all_functions());
  for (const Cast& cast : all_casts()) {
    const bool usable = cast.method == 'b' || find_evaluator(cast.evaluator) != nullptr;
    if (!usable || !is_supported(cast.source) || !is_supported(cast.target)) continue;
    const Kind kind = cast.source == cast.target ? Kind::size : Kind::cast;
    entries.push_back({kind, "cast", {cast.source}, cast.target, cast.evaluator});
  }
  for (const TextCast& cast : casts_from_text()) {
    for (const Type text : kTextTypes) entries.push_back({Kind::cast, "cast", {text}, cast.type, cast.evaluator.name});
  }
  for (const TextCast& cast : casts_to_text()) {
    for (const Type text : kTextTypes) entries.push_back({Kind::cast, "cast", {cast.type}, text, cast.evaluator.name});
  }
  return entries;
}

// Owner: one test.
class EntryMaker {
 public:
  explicit EntryMaker(ConditionMaker& maker) : maker_(maker) {}

  // An expression that may use the entry: which operator is meant depends on the arguments' types.
  std::string use(const Entry& entry) {
    std::vector<std::string> arguments;
    for (const Type type : entry.arguments) arguments.push_back(argument(type));
    const Evaluator* const evaluator = find_evaluator(entry.evaluator);
    if (evaluator != nullptr && evaluator->collates == Collates::order) arguments[0] += " collate \"C\"";
    if (entry.arguments[0] == Type::jsonb && arguments.size() == 2) arguments[1] = place(entry.arguments[1]);
    switch (entry.kind) {
      case Entry::Kind::operation:
        return arguments.size() == 1 ? "(" + std::string(entry.name) + " " + arguments[0] + ")"
                                     : "(" + arguments[0] + " " + std::string(entry.name) + " " + arguments[1] + ")";
      case Entry::Kind::function:
        return call(entry, arguments);
      case Entry::Kind::cast:
        return "(" + text_of(entry, arguments[0]) + ")::" + std::string(name_of(entry.result));
      case Entry::Kind::size:
        return "(" + arguments[0] + ")::" + sized(entry.result);
    }
    return {};
  }

 private:
  std::string argument(Type type) {
    switch (maker_.below(4)) {
      case 0:
        return maker_.literal(type);
      case 1:
        if (type == Type::jsonb) return "(" + maker_.value(type, 2) + ")";
        return type == Type::any_enum ? "e" : "(" + maker_.value(type, 2) + ")::" + std::string(name_of(type));
      default:
        return maker_.column(type);
    }
  }

  // In a document.
  std::string place(Type type) {
    if (type == Type::int4) return maker_.pick(std::array{"0", "1", "-1", "-3", "-8", "7", "i", "s"});
    return maker_.pick(std::array{"'a'", "'b'", "'größe'", "''", "'n'", "'12'", "x", "'a\"b'", "'x\\y'"});
  }

  // Arguments that mean something to functions that take few values.
  void choose(std::string_view name, std::vector<std::string>& arguments) {
    constexpr std::array kForms{"'hex'", "'base64'", "'escape'", "'HEX'", "'Base64'", "x"};
    constexpr std::array kSmall{"0", "1", "2", "3", "-1", "7", "s", "i"};
    if (name == "encode") arguments[1] = maker_.pick(kForms);
    if (name == "decode") {
      const std::string form = maker_.pick(kForms);
      arguments[1] = form;
      if (maker_.below(2) == 0) arguments[0] = "encode(" + arguments[0] + "::bytea, " + form + ")";
      if (maker_.below(2) == 0) arguments[0] = "encode(y, " + form + ")";
      if (maker_.below(4) == 0) {
        arguments[0] = maker_.pick(std::array{"'YQ=='", "'YWI='", "'Y Q = ='", "'YQ==YWJj'", "'='", "'YQ'", "'\\1'",
                                              "'\\400'", "'\\\\'", "'ab c'", "'a b'", "'öä'"});
      }
    }
    if (name == "chr") {
      arguments[0] = maker_.pick(
          std::array{"65", "228", "8364", "128512", "0", "-1", "55296", "57343", "1114111", "1114112", "127 + s", "i"});
    }
    const bool indexed = name == "get_byte" || name == "get_bit" || name == "set_byte" || name == "set_bit";
    for (size_t i = 1; i < arguments.size() && indexed; ++i) arguments[i] = maker_.pick(kSmall);
    if (name == "overlay") {
      for (size_t i = 2; i < arguments.size(); ++i) arguments[i] = maker_.pick(kSmall);
    }
    if (name == "make_date" || name == "make_timestamp") {
      arguments[0] =
          maker_.pick(std::array{"2026", "2024", "-44", "0", "1", "294276", "294277", "5874897", "-4714", "i"});
      arguments[1] = maker_.pick(std::array{"2", "11", "12", "13", "0", "1", "s", "abs(i % 12) + 1"});
      arguments[2] = maker_.pick(std::array{"29", "31", "30", "1", "0", "24", "23", "abs(s % 28) + 1"});
    }
    const size_t clock = name == "make_time" ? 0 : name == "make_timestamp" ? 3 : arguments.size();
    if (clock < arguments.size()) {
      arguments[clock] = maker_.pick(std::array{"0", "23", "24", "25", "-1", "abs(s % 24)", "12"});
      arguments[clock + 1] = maker_.pick(std::array{"0", "59", "60", "-1", "abs(i % 60)"});
      arguments[clock + 2] =
          maker_.pick(std::array{"0", "59.9999999", "60", "60.1", "-0.1", "g", "abs(s % 60)", "12.3456785"});
    }
    if (name == "date_bin" && maker_.below(4) != 0) {
      arguments[0] = maker_.pick(std::array{"interval '15 minutes'", "interval '7 days'", "interval '1 month'",
                                            "interval '0'", "interval '-1 day'", "interval '1 microsecond'", "w"});
    }
  }

  std::string call(const Entry& entry, std::vector<std::string>& arguments) {
    choose(entry.name, arguments);
    constexpr std::array kFields{"second",  "minute", "hour",   "day", "week", "month",
                                 "quarter", "year",   "isodow", "dow", "doy",  "epoch"};
    constexpr std::array kTruncations{"second", "minute", "hour", "day", "week", "month", "quarter", "YEAR"};
    if (entry.name == "extract") {
      return "extract(" + std::string(maker_.pick(kFields)) + " from " + arguments[1] + ")";
    }
    if (entry.name == "position") return "position((" + arguments[1] + ") in (" + arguments[0] + "))";
    if (entry.name == "date_part") arguments[0] = "'" + std::string(maker_.pick(kFields)) + "'";
    if (entry.name == "date_trunc") arguments[0] = "'" + std::string(maker_.pick(kTruncations)) + "'";
    if (entry.name == "like_escape") arguments[1] = maker_.pick(std::array{"'!'", "'\\'", "'%'", "''", "'xy'", "x"});
    // Others are refused by PostgreSQL as well, or do not fit into the scratch memory here.
    if (entry.name == "lpad" || entry.name == "rpad") {
      arguments[1] = maker_.pick(std::array{"0", "1", "3", "12", "-1", "i % 50", "2147483647"});
    }
    // It counts to 2147483647 at the server, also for an empty text.
    if (entry.name == "repeat") arguments[1] = maker_.pick(std::array{"0", "1", "3", "12", "-1", "i % 50"});
    if (arguments.size() == 2 && (entry.name == "round" || entry.name == "trunc")) {
      // More digits take long to compute with, at both.
      arguments[1] = maker_.pick(std::array{"0", "2", "-1", "7", "i % 40"});
    }
    std::string list;
    for (const std::string& argument : arguments) list += (list.empty() ? "" : ", ") + argument;
    return std::string(entry.name) + "(" + list + ")";
  }

  // Casts of texts: of one that is a value, half the times.
  std::string text_of(const Entry& entry, const std::string& text) {
    const bool from_text = entry.evaluator.ends_with("in") || entry.evaluator == "numeric_in";
    if (!from_text || maker_.below(2) == 0) return text;
    const bool has_text = std::ranges::find(casts_to_text(), entry.result, &TextCast::type) != casts_to_text().end();
    const Type source = has_text ? entry.result : Type::int4;
    return "(" + maker_.value(source, 1) + ")::" + std::string(name_of(entry.arguments[0]));
  }

  std::string sized(Type type) {
    switch (type) {
      case Type::varchar:
        return maker_.pick(std::array{"varchar(1)", "varchar(3)", "varchar(12)"});
      case Type::bpchar:
        return maker_.pick(std::array{"char", "char(3)", "char(12)"});
      default:
        return maker_.pick(std::array{"numeric(3)", "numeric(8,2)", "numeric(40,10)", "numeric(2,4)"});
    }
  }

  ConditionMaker& maker_;
};

}  // namespace thalweg::rules
