#include "apply/applier/resolution.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "apply/applier/tuple_values.h"

namespace thalweg::apply {

using lcr::Value;
using lcr::ValueMark;
using metadata::Column;
using metadata::TableMetadata;

namespace {

bool is_value(const Value& value) { return value.mark == ValueMark::binary || value.mark == ValueMark::text; }

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
      kept = fmt::format("(SELECT pg_catalog.count(*) FROM {} AS t WHERE {} AND NOT ({}))", table_.quoted_name,
                         condition, wins);
      condition += fmt::format(" AND ({})", wins);
    }
    made_.sql = fmt::format(
        "WITH written AS (UPDATE {} AS t SET {} WHERE {} RETURNING 1) SELECT (SELECT pg_catalog.count(*) FROM "
        "written), {}",
        table_.quoted_name, assignments_, condition, kept);
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

  // Of the key.
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
    const auto wins = winning(*handler);
    if (!wins) return wins.error();
    const std::string one = fmt::format("({})", *wins);
    if (!wins_.contains(one)) wins_ += (wins_.empty() ? "" : " OR ") + one;
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
    give(column, fmt::format("{} + ({} - {})", name(column), parameter(wanted, column), parameter(before, column)));
    return std::nullopt;
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
    // Any value wins over NULL.
    if (!is_value(wanted)) return fmt::format("{} AND {} IS NULL", handler.tie_overwrites, name(column));
    const bool least = handler.action == ConflictAction::minimum;
    const std::string compared = fmt::format("{} {}{} {}", parameter(wanted, column), least ? "<" : ">",
                                             handler.tie_overwrites ? "=" : "", name(column));
    return fmt::format("coalesce({}, true)", compared);
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
    const auto found = std::ranges::find(made_.parameters, &value, &Resolution::Parameter::value);
    if (found != made_.parameters.end()) return fmt::format("${}", found - made_.parameters.begin() + 1);
    made_.parameters.push_back({.value = &value, .type = table_.columns[column].type->value_type});
    return fmt::format("${}", made_.parameters.size());
  }

  const MetRow& row_;
  const TableMetadata& table_;
  std::vector<Member> groups_;
  std::string assignments_;
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
