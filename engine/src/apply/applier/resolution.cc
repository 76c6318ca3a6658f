#include "apply/applier/resolution.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "apply/applier/tuple_values.h"
#include "pg/text_array.h"

namespace thalweg::apply {

using lcr::Value;
using lcr::ValueMark;
using metadata::Column;
using metadata::TableMetadata;

namespace {

constexpr base::TypeId kTextArray{1009};
constexpr Value kNull = {};

bool is_value(const Value& value) { return value.mark == ValueMark::binary || value.mark == ValueMark::text; }

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

bool mentions(std::string_view expression, std::string_view name) {
  return lower_case(expression).contains(lower_case(name));
}

bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || static_cast<signed char>(c) < 0;
}

// Whether the word stands there without a column behind it, as in to_jsonb(new) or row(new.*).
bool reads_whole_row(std::string_view expression, std::string_view row) {
  const std::string text = lower_case(expression);
  for (size_t at = text.find(row); at != std::string::npos; at = text.find(row, at + 1)) {
    const size_t end = at + row.size();
    if ((at > 0 && is_of_name(text[at - 1])) || (end < text.size() && is_of_name(text[end]))) continue;
    const size_t next = text.find_first_not_of(" \t\n\r", end);
    if (next == std::string::npos || text[next] != '.') return true;
    const size_t member = text.find_first_not_of(" \t\n\r", next + 1);
    if (member != std::string::npos && text[member] == '*') return true;
  }
  return false;
}

// The elements that `array` lacks, behind it. Looking for each in the source's own array has the server refuse one of
// several dimensions.
std::string appended(const std::string& array, const std::string& wanted) {
  return fmt::format(
      "CASE WHEN {0} IS NULL THEN {1} WHEN {1} IS NULL THEN {0} ELSE {0} || ARRAY(SELECT e.v FROM "
      "pg_catalog.unnest({1}) "
      "WITH ORDINALITY AS e (v, n) WHERE pg_catalog.array_position({0}, e.v) IS NULL AND "
      "pg_catalog.array_position({1}, e.v) IS NOT NULL ORDER BY e.n) END",
      array, wanted);
}

// A JSON object with the members that the source's change has changed, and the others as in `object`.
std::string merged(const std::string& object, const std::string& wanted, const std::string& before) {
  return fmt::format(
      "CASE WHEN {0} IS NULL THEN {1} ELSE (SELECT coalesce(pg_catalog.jsonb_object_agg(m.key, m.value), '{{}}') FROM "
      "(SELECT d.key, d.value FROM pg_catalog.jsonb_each({0}) AS d WHERE ({2} -> d.key) IS NOT DISTINCT FROM ({1} -> "
      "d.key) UNION ALL SELECT s.key, s.value FROM pg_catalog.jsonb_each({1}) AS s WHERE ({2} -> s.key) IS DISTINCT "
      "FROM "
      "s.value) AS m) END",
      object, wanted, before);
}

class Maker {
 public:
  explicit Maker(const MetRow& row) : row_(row), table_(row.table) {}

  std::expected<Resolution, std::string> make(std::span<const ConflictHandler> handlers) {
    for (uint16_t column = 0; column < table_.columns.size(); ++column) {
      if (std::ranges::find(table_.identity, column) != table_.identity.end()) continue;
      groups_.push_back({.column = column, .handler = handler_of(column, handlers)});
    }
    for (const Member& member : groups_) {
      if (!table_.columns[member.column].written) continue;
      if (auto failure = take(member.column, member.handler)) return std::unexpected(std::move(*failure));
    }
    for (const uint16_t column : table_.identity) {
      if (!moves(column)) continue;
      if (table_.columns[column].identity_always) return std::unexpected("its key moves, and cannot be assigned");
      assign(column, parameter(row_.wanted[column], column));
      always_writes_ = true;
    }
    if (assignments_.empty() && required_.empty()) return std::move(made_);
    if (assignments_.empty()) assign(table_.identity.front(), name(table_.identity.front()));
    std::string condition;
    for (const uint16_t column : table_.identity) {
      condition +=
          fmt::format("{}{} = {}", condition.empty() ? "" : " AND ", name(column), parameter(row_.old[column], column));
    }
    condition += required_;
    std::string kept = "0";
    if (!always_writes_) {
      const std::string wins = wins_.empty() ? "false" : wins_;
      kept = fmt::format("(SELECT pg_catalog.count(*) FROM {} AS t WHERE {} AND NOT ({}))", table_.own_rows(),
                         condition, wins);
      condition += fmt::format(" AND ({})", wins);
    }
    made_.sql = fmt::format(
        "WITH written AS (UPDATE {} AS t SET {}{} WHERE {} RETURNING 1) SELECT (SELECT pg_catalog.count(*) FROM "
        "written), {}",
        table_.own_rows(), assignments_, rows_, condition, kept);
    return std::move(made_);
  }

 private:
  struct Member {
    uint16_t column;
    const ConflictHandler* handler;  // null: none
  };

  static bool same_value(const Value& left, const Value& right) {
    return left.mark == right.mark && same_bytes(left.bytes, right.bytes);
  }
  std::string name(uint16_t column) const { return "t." + table_.columns[column].quoted_name; }

  // Whether the change gives this column of the key another value.
  bool moves(uint16_t column) const {
    return row_.old != row_.wanted && !same_value(row_.wanted[column], row_.old[column]);
  }

  const ConflictHandler* handler_of(uint16_t column, std::span<const ConflictHandler> handlers) const {
    const auto found = std::ranges::find_if(handlers, [&](const ConflictHandler& handler) {
      return handler.columns.empty() ||
             std::ranges::find(handler.columns, table_.columns[column].name) != handler.columns.end();
    });
    return found == handlers.end() ? nullptr : &*found;
  }

  // Whether the group that the column is of conflicts: some column of it differs. Of an INSERT all do.
  bool conflicts(const ConflictHandler* handler) const {
    if (!row_.has_old) return true;
    return std::ranges::any_of(
        groups_, [&](const Member& member) { return member.handler == handler && row_.differing.has(member.column); });
  }

  // A reason, in words, why it cannot be settled; none: it is.
  std::optional<std::string> take(uint16_t column, const ConflictHandler* handler) {
    const Value& wanted = row_.wanted[column];
    const bool came = wanted.mark != ValueMark::unchanged;
    const bool undecided = handler == nullptr || handler->action == ConflictAction::error;
    // Where the row already has a value that cannot be assigned, there is nothing to decide.
    if (!conflicts(handler) || (undecided && table_.columns[column].identity_always)) {
      if (came) give(column, parameter(wanted, column));
      return std::nullopt;
    }
    const std::string& shown = table_.columns[column].quoted_name;
    if (undecided) {
      return fmt::format("no handler decides about column {}", shown);
    }
    if (handler->action == ConflictAction::discard) return std::nullopt;
    if (!came) return fmt::format("the value of column {}, which did not change, is not known", shown);
    if (handler->action == ConflictAction::overwrite) {
      give(column, parameter(wanted, column));
      return std::nullopt;
    }
    if (handler->action == ConflictAction::delta) return add_delta(column);
    if (handler->action == ConflictAction::append || handler->action == ConflictAction::merge) {
      add_contents(column, handler->action);
      return std::nullopt;
    }
    if (handler->action == ConflictAction::expression) return compute(column, handler->expression);
    const auto wins = winning(*handler);
    if (!wins) return wins.error();
    const std::string condition = fmt::format("({})", *wins);
    if (!wins_.contains(condition)) wins_ += (wins_.empty() ? "" : " OR ") + condition;
    set(column, fmt::format("CASE WHEN {} THEN {} ELSE {} END", *wins, parameter(wanted, column), name(column)));
    return std::nullopt;
  }

  std::optional<std::string> add_delta(uint16_t column) {
    const Value& before = row_.old[column];
    const Value& wanted = row_.wanted[column];
    if (!row_.has_old || !is_value(before) || !is_value(wanted)) {
      return fmt::format("column {} was or is NULL, or its old value is not known: there is no difference to add",
                         table_.columns[column].quoted_name);
    }
    required_ += fmt::format(" AND {} IS NOT NULL", name(column));
    give(column, fmt::format("{} + ({} - {})", name(column), parameter(wanted, column), parameter(before, column)));
    return std::nullopt;
  }

  // Elements of an array, or members of a JSON object. NULL has none.
  void add_contents(uint16_t column, ConflictAction action) {
    const Value& wanted = row_.wanted[column];
    if (!is_value(wanted)) return;
    if (action == ConflictAction::append) return give(column, appended(name(column), parameter(wanted, column)));
    const bool has_before = row_.has_old && is_value(row_.old[column]);
    const std::string before = has_before ? parameter(row_.old[column], column) : "'{}'::jsonb";
    give(column, merged(name(column), parameter(wanted, column), before));
  }

  // An expression in SQL that a user wrote. The line's end closes a comment.
  std::optional<std::string> compute(uint16_t column, const std::string& expression) {
    const bool reads_all = reads_whole_row(expression, "new") || reads_whole_row(expression, "old");
    for (uint16_t i = 0; i < table_.columns.size(); ++i) {
      const bool known = is_known(row_.wanted[i]) && (!row_.has_old || is_known(row_.old[i]));
      if (!known && (reads_all || mentions(expression, table_.columns[i].name))) {
        return fmt::format("a value of column {}, which the expression reads, is not known",
                           table_.columns[i].quoted_name);
      }
    }
    if (rows_.empty()) {
      rows_ = fmt::format(" FROM (SELECT {}) AS new, (SELECT {}) AS old", row_of(row_.wanted, true),
                          row_of(row_.old, row_.has_old));
    }
    give(column, fmt::format("({}\n)", expression));
    return std::nullopt;
  }

  static bool is_known(const Value& value) { return value.mark != ValueMark::unchanged; }

  // A row's known values by their columns' names; all NULL where the row did not come.
  std::string row_of(const Value* values, bool came) {
    std::string out;
    for (uint16_t i = 0; i < table_.columns.size(); ++i) {
      if (!is_known(values[i])) continue;
      const std::string value = parameter(came ? values[i] : kNull, i);
      out += fmt::format("{}{} AS {}", out.empty() ? "" : ", ", value, table_.columns[i].quoted_name);
    }
    return out;
  }

  // An expression: the source's row wins.
  std::expected<std::string, std::string> winning(const ConflictHandler& handler) {
    const char* const ties = handler.tie_overwrites ? ">=" : ">";
    if (handler.by.empty()) {
      // Else a row that loses would have the time of this transaction.
      if (std::ranges::any_of(table_.identity, [&](uint16_t column) { return moves(column); })) {
        return std::unexpected("its key moves: no time of a commit can decide about it");
      }
      // A change whose time the destination does not know is from before it kept them, or an earlier one of this
      // transaction.
      return fmt::format(
          "coalesce(to_timestamp(0) + {} * interval '1 microsecond' {} "
          "pg_catalog.pg_xact_commit_timestamp(t.xmin), true)",
          row_.commit_time.value, ties);
    }
    const auto found = std::ranges::find(table_.columns, handler.by, &Column::name);
    if (found == table_.columns.end())
      return std::unexpected(
          fmt::format("its handler decides by column \"{}\", which "
                      "the table does not have",
                      handler.by));
    const auto column = static_cast<uint16_t>(found - table_.columns.begin());
    const Value& wanted = row_.wanted[column];
    if (wanted.mark == ValueMark::unchanged) {
      return std::unexpected(
          fmt::format("the value of column {}, by which its handler decides, is not known", found->quoted_name));
    }
    if (handler.action == ConflictAction::priority) {
      return fmt::format("{} <{} {}", place(parameter(wanted, column), handler.order),
                         handler.tie_overwrites ? "=" : "", place(name(column), handler.order));
    }
    // Any value wins over NULL.
    if (!is_value(wanted)) return fmt::format("{} AND {} IS NULL", handler.tie_overwrites, name(column));
    const bool least = handler.action == ConflictAction::minimum;
    const std::string compared = fmt::format("{} {}{} {}", parameter(wanted, column), least ? "<" : ">",
                                             handler.tie_overwrites ? "=" : "", name(column));
    return fmt::format("coalesce({}, true)", compared);
  }

  // The place of a value in a list; one that is not in it stands behind all.
  std::string place(const std::string& value, const std::vector<std::string>& order) {
    return fmt::format("coalesce(pg_catalog.array_position({}, {}::text), {})", text_array(order), value,
                       order.size() + 1);
  }

  std::string text_array(const std::vector<std::string>& elements) {
    const std::string text = pg::text_array(elements);
    const auto same = std::ranges::find(made_.texts, text);
    size_t at = static_cast<size_t>(same - made_.texts.begin());
    if (same == made_.texts.end()) {
      const std::string& kept = made_.texts.emplace_back(text);
      made_.text_values.push_back({.mark = ValueMark::text, .bytes = std::as_bytes(std::span(kept))});
    }
    return parameter_of(made_.text_values[at], kTextArray);
  }

  // A column that nobody can assign has to have the value already.
  void set(uint16_t column, const std::string& expression) {
    if (table_.columns[column].identity_always) {
      required_ += fmt::format(" AND {} = {}", name(column), expression);
    } else {
      assign(column, expression);
    }
  }
  // A value that the row gets whatever it has.
  void give(uint16_t column, const std::string& expression) {
    if (!table_.columns[column].identity_always) always_writes_ = true;
    set(column, expression);
  }
  void assign(uint16_t column, const std::string& expression) {
    assignments_ +=
        fmt::format("{}{} = {}", assignments_.empty() ? "" : ", ", table_.columns[column].quoted_name, expression);
  }
  std::string parameter(const Value& value, uint16_t column) {
    return parameter_of(value, table_.columns[column].type->value_type);
  }
  std::string parameter_of(const Value& value, base::TypeId type) {
    const auto found = std::ranges::find_if(made_.parameters, [&](const Resolution::Parameter& known) {
      return known.value == &value && known.type == type;
    });
    if (found != made_.parameters.end()) return fmt::format("${}", found - made_.parameters.begin() + 1);
    made_.parameters.push_back({.value = &value, .type = type});
    return fmt::format("${}", made_.parameters.size());
  }

  const MetRow& row_;
  const TableMetadata& table_;
  std::vector<Member> groups_;
  std::string assignments_;
  std::string rows_;            // FROM: the source's rows, where an expression reads them
  std::string required_;        // of the row: " AND " and a condition each
  std::string wins_;            // an expression: something of the source's does
  bool always_writes_ = false;  // whatever wins
  Resolution made_;
};

}  // namespace

std::expected<Resolution, std::string> make_resolution(const MetRow& row, std::span<const ConflictHandler> handlers) {
  return Maker(row).make(handlers);
}

}  // namespace thalweg::apply
