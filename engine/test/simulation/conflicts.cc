#include "simulation/conflicts.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace thalweg::simulation {

namespace {

constexpr std::array<std::string_view, 8> kKinds = {"",
                                                    "insert_exists",
                                                    "update_exists",
                                                    "update_missing",
                                                    "delete_missing",
                                                    "update_origin_differs",
                                                    "delete_origin_differs",
                                                    "multiple_unique_conflicts"};
constexpr std::array<std::string_view, 3> kActions = {"skip", "discard", "overwrite"};
constexpr size_t kShownMax = 100'000;  // characters of a value

const TableShape& shape_of(const Change& change) { return shapes()[static_cast<size_t>(change.table)]; }

// The columns that the change brings.
std::vector<bool> columns_that_came(const Change& change) {
  std::vector<bool> came(change.after.size(), true);
  if (change.is_partial) came[static_cast<size_t>(shape_of(change).toasted)] = false;
  return came;
}

// The other row with the same value of the unique column.
const Row* find_by_unique(const Table& table, const TableShape& shape, const Row& row, const std::string& except) {
  if (shape.unique < 0 || !row[static_cast<size_t>(shape.unique)]) return nullptr;
  for (const auto& [key, other] : table.rows) {
    const auto column = static_cast<size_t>(shape.unique);
    if (key != except && other[column] == row[column]) return &other;
  }
  return nullptr;
}

// One change of a row, and the tables that it goes to.
class Step {
 public:
  Step(Data& data, const ConflictRules& rules, const Change& change, const LoggedConflict* logged)
      : rules_(rules),
        change_(change),
        logged_(logged),
        shape_(shape_of(change)),
        data_(data),
        table_(data[static_cast<size_t>(change.table)]),
        came_(columns_that_came(change)) {}

  // Makes the change, or what is to be done instead; then the log has to say so.
  std::optional<LoggedConflict> take() {
    if (change_.kind == Change::Kind::truncate || shape_.key < 0) return take_without_key();
    switch (change_.kind) {
      case Change::Kind::insert:
        return take_insert();
      case Change::Kind::update:
        return take_update();
      default:
        return take_remove();
    }
  }

  bool differs(const Row& there) const {
    const auto table = static_cast<size_t>(change_.table);
    if (!rules_.full_identity[table]) return false;  // no more is known than the key
    const auto key = static_cast<size_t>(shape_.key);
    bool any_known = false;  // else it looks like a key
    bool any_other = false;
    for (size_t i = 0; i < there.size(); ++i) {
      if (i == key) continue;
      any_known = any_known || change_.before[i];
      any_other = any_other || (rules_.compared[table].contains(i) && there[i] != change_.before[i]);
    }
    return any_known && any_other;
  }

  Row after(const Row& there) const {
    Row row = there;
    for (size_t i = 0; i < row.size(); ++i) {
      if (came_[i]) row[i] = change_.after[i];
    }
    return row;
  }

 private:
  using Entry = std::optional<LoggedConflict>;
  using Action = ConflictRules::Action;

  const std::string& key_of(const Row& row) const { return *row[static_cast<size_t>(shape_.key)]; }
  bool is_full() const { return shape_.key < 0 || rules_.full_identity[static_cast<size_t>(change_.table)]; }

  // A value that did not come is that of the row before, unless that is NULL, as a key's other columns are.
  bool is_all_known() const {
    return !change_.is_partial || (is_full() && change_.before[static_cast<size_t>(shape_.toasted)]);
  }

  // The destination did not take the row, as only it knows; the log has the change.
  bool is_refused(const Row& row) const {
    if (logged_ == nullptr || logged_->action != name_of(Action::skip)) return false;
    return std::ranges::find(logged_->refused, std::pair(change_.table, row)) != logged_->refused.end();
  }

  static std::string_view name_of(Action action) { return kActions[static_cast<size_t>(action)]; }

  Entry entry(Conflict kind, Action action, const Row* there, bool is_other = false) const {
    constexpr std::array<const char*, 3> kOperations = {"INSERT", "UPDATE", "DELETE"};
    constexpr const char* kUniqueViolation = "23505";
    constexpr const char* kCheckViolation = "23514";
    LoggedConflict made;
    made.table = shapes_there()[static_cast<size_t>(change_.table)].name;
    made.operation = kOperations[static_cast<size_t>(change_.kind)];
    made.kind = simulation::name_of(kind);
    made.action = name_of(action);
    made.is_other = is_other;
    const bool is_unique = kind == Conflict::insert_exists || kind == Conflict::update_exists ||
                           kind == Conflict::multiple_unique_conflicts;
    made.sqlstate = is_unique ? kUniqueViolation : kind == Conflict::none ? kCheckViolation : "";
    const size_t columns = shape_.columns.size();
    const bool moves =
        change_.kind == Change::Kind::remove ||
        (change_.kind == Change::Kind::update && shape_.key >= 0 && key_of(change_.before) != key_of(change_.after));
    if (change_.kind != Change::Kind::insert && (is_full() || moves)) {
      std::vector<bool> known(columns, is_full());
      if (shape_.key >= 0) known[static_cast<size_t>(shape_.key)] = true;
      made.before = show_row(change_.table, change_.before, known);
    }
    if (change_.kind != Change::Kind::remove) made.wanted = show_row(change_.table, change_.after, came_);
    if (there != nullptr) {
      std::vector<bool> known(columns, !is_other);
      known[static_cast<size_t>(shape_.key)] = true;
      if (shape_.unique >= 0) known[static_cast<size_t>(shape_.unique)] = true;
      made.there = show_row(change_.table, *there, known);
    }
    return made;
  }

  Action decide(Conflict kind, Conflict general) const { return rules_.action_of(kind, general, change_.table); }
  Action decide(Conflict kind) const { return decide(kind, kind); }

  // Writes the row in the place of the one with the key `at`, if there is one, unless it collides or does not please.
  bool write(const Row& row, const std::string& at) {
    const bool moves = key_of(row) != at;
    if (moves && table_.rows.contains(key_of(row))) return false;
    if (find_by_unique(table_, shape_, row, at) != nullptr || is_refused(row)) return false;
    table_.rows.erase(at);
    table_.rows[key_of(row)] = row;
    return true;
  }

  Entry take_insert() {
    const Row& row = change_.after;
    if (is_refused(row) && logged_->kind.empty()) return entry(Conflict::none, Action::skip, nullptr);
    const auto own = table_.rows.find(key_of(row));
    const Row* const other = find_by_unique(table_, shape_, row, {});
    if (own == table_.rows.end() && other == nullptr) {
      table_.rows[key_of(row)] = row;
      return std::nullopt;
    }
    const bool has_own = own != table_.rows.end();
    const auto kind = has_own && other != nullptr ? Conflict::multiple_unique_conflicts : Conflict::insert_exists;
    Action action = decide(kind, Conflict::insert_exists);
    Entry made = entry(kind, action, has_own ? &own->second : other, !has_own);
    const bool done = action != Action::overwrite || (has_own && write(row, key_of(row)));
    if (!done) made->action = name_of(Action::skip);
    return made;
  }

  Entry take_update() {
    const std::string& key = key_of(change_.before);
    const auto own = table_.rows.find(key);
    if (own == table_.rows.end()) {
      Entry made = entry(Conflict::update_missing, decide(Conflict::update_missing), nullptr);
      if (made->action != name_of(Action::overwrite)) return made;
      if (!is_all_known() || !write(change_.after, key)) made->action = name_of(Action::skip);
      return made;
    }
    const Row there = own->second;
    if (differs(there)) {
      Entry made = entry(Conflict::update_origin_differs, decide(Conflict::update_origin_differs), &there);
      const Row row = is_all_known() ? change_.after : after(there);
      if (made->action == name_of(Action::overwrite) && !write(row, key)) made->action = name_of(Action::skip);
      return made;
    }
    const Row row = after(there);
    if (is_refused(row) && logged_->kind.empty()) return entry(Conflict::none, Action::skip, &there);
    const auto at_key = key_of(row) == key ? table_.rows.end() : table_.rows.find(key_of(row));
    const Row* const by_unique = find_by_unique(table_, shape_, row, key);
    if (at_key == table_.rows.end() && by_unique == nullptr) {
      write(row, key);
      return std::nullopt;
    }
    const bool is_both = at_key != table_.rows.end() && by_unique != nullptr;
    const auto kind = is_both ? Conflict::multiple_unique_conflicts : Conflict::update_exists;
    const Row* const other = at_key != table_.rows.end() ? &at_key->second : by_unique;
    Entry made = entry(kind, decide(kind, Conflict::update_exists), other, true);
    if (made->action == name_of(Action::overwrite)) made->action = name_of(Action::skip);
    return made;
  }

  Entry take_remove() {
    const auto own = table_.rows.find(key_of(change_.before));
    if (own == table_.rows.end()) return entry(Conflict::delete_missing, decide(Conflict::delete_missing), nullptr);
    if (!differs(own->second)) {
      table_.rows.erase(own);
      return std::nullopt;
    }
    Entry made = entry(Conflict::delete_origin_differs, decide(Conflict::delete_origin_differs), &own->second);
    if (made->action == name_of(Action::overwrite)) table_.rows.erase(own);
    return made;
  }

  // Its rows are found by all of their values. Nothing is inserted instead of one that is not there.
  Entry take_without_key() {
    if (apply_change(data_, change_)) return std::nullopt;
    const auto kind = change_.kind == Change::Kind::update ? Conflict::update_missing : Conflict::delete_missing;
    const Action action = decide(kind);
    return entry(kind, action == Action::overwrite ? Action::skip : action, nullptr);
  }

  const ConflictRules& rules_;
  const Change& change_;
  const LoggedConflict* const logged_;
  const TableShape& shape_;
  Data& data_;
  Table& table_;
  const std::vector<bool> came_;
};

// The TRUNCATE of a table and of its child is one change.
bool is_same_truncate(const Change* before, const Change& change) {
  return before != nullptr && before->kind == Change::Kind::truncate && change.kind == Change::Kind::truncate &&
         shape_of(change).parent == before->table;
}

std::vector<LoggedConflict> apply_by_rows(Data& data, const ConflictRules& stream_rules, const Applied& transaction) {
  ConflictRules nothing_compared;
  nothing_compared.full_identity = stream_rules.full_identity;
  const ConflictRules& rules = transaction.was_parked ? nothing_compared : stream_rules;
  std::vector<LoggedConflict> due;
  uint64_t number = 0;
  const Change* before = nullptr;
  for (const Change& change : transaction.changes) {
    if (!is_same_truncate(before, change)) ++number;
    before = &change;
    const auto logged = std::ranges::find(transaction.logged, number, &LoggedConflict::change);
    Step step(data, rules, change, logged == transaction.logged.end() ? nullptr : &*logged);
    auto made = step.take();
    if (!made) continue;
    made->commit_lsn = transaction.commit_lsn;
    made->change = number;
    due.push_back(*std::move(made));
  }
  return due;
}

// Changes of a row are merged before the destination meets them: what a row was in between met nobody there
// (docs/guides/conflicts.md, "What is noticed"). A change of a key parts what comes before it from what comes after.
class Merged {
 public:
  Merged(Data& data, const ConflictRules& rules) : data_(data), rules_(rules), pending_(data.size()) {}

  // False: something is in the way.
  bool add(const Change& change) {
    const TableShape& shape = shape_of(change);
    const auto table = static_cast<size_t>(change.table);
    const auto key = static_cast<size_t>(std::max(shape.key, 0));
    const bool moves = change.kind == Change::Kind::update && change.before[key] != change.after[key];
    if (change.kind == Change::Kind::truncate) {
      for (size_t each = 0; each < data_.size(); ++each) {
        if (!flush(each)) return false;
      }
    }
    if (change.kind == Change::Kind::truncate || shape.key < 0 || moves) {
      if (!flush(table)) return false;
      touched_.push_back(change);
      return !Step(data_, rules_, change, nullptr).take();
    }
    const std::string& row = change.kind == Change::Kind::insert ? *change.after[key] : *change.before[key];
    const auto [found, is_first] = pending_[table].try_emplace(row);
    Net& net = found->second;
    if (is_first) net.is_there = change.kind != Change::Kind::insert;
    if (!is_first && !net.is_there && change.kind == Change::Kind::remove) {
      pending_[table].erase(found);
    } else {
      net.changes.push_back(change);
    }
    return true;
  }

  bool end() {
    for (size_t table = 0; table < data_.size(); ++table) {
      if (!flush(table)) return false;
    }
    return std::ranges::all_of(touched_, [&](const Change& change) { return keeps_unique(data_, change); });
  }

 private:
  struct Net {
    bool is_there = false;  // the destination has to have the row
    std::vector<Change> changes;
  };

  bool flush(size_t table) {
    auto& rows = data_[table].rows;
    for (const auto& [key, net] : pending_[table]) {
      const auto own = rows.find(key);
      if (net.is_there != (own != rows.end())) return false;
      const Change& first = net.changes.front();
      if (net.is_there && Step(data_, rules_, first, nullptr).differs(own->second)) return false;
      std::optional<Row> now;
      if (net.is_there) now = own->second;
      for (const Change& change : net.changes) {
        if (change.kind == Change::Kind::remove) {
          now.reset();
        } else if (change.kind == Change::Kind::insert) {
          now = change.after;
        } else {
          now = Step(data_, rules_, change, nullptr).after(*now);
        }
      }
      rows.erase(key);
      if (now) rows[key] = *now;
      touched_.push_back(net.changes.back());
    }
    pending_[table].clear();
    return true;
  }

  Data& data_;
  const ConflictRules& rules_;
  std::vector<std::map<std::string, Net>> pending_;  // by table and key
  std::vector<Change> touched_;
};

// Where only the keys of a row are known, the others are not compared.
bool is_same(const std::optional<ShownRow>& logged, const std::optional<ShownRow>& due, bool is_other) {
  if (!is_other || !logged || !due) return logged == due;
  return std::ranges::all_of(*due, [&](const auto& value) {
    const auto found = logged->find(value.first);
    return found != logged->end() && found->second == value.second;
  });
}

bool is_same(const LoggedConflict& logged, const LoggedConflict& due) {
  return logged.change == due.change && logged.table == due.table && logged.operation == due.operation &&
         logged.kind == due.kind && logged.sqlstate == due.sqlstate && logged.action == due.action &&
         logged.before == due.before && logged.wanted == due.wanted && is_same(logged.there, due.there, due.is_other);
}

}  // namespace

std::string_view name_of(Conflict kind) { return kKinds[static_cast<size_t>(kind)]; }

std::string shown_text(uint32_t type, const std::string& bytes) {
  constexpr uint32_t kBigint = 20;
  if (type != kBigint) return bytes;
  uint64_t number = 0;
  for (const char c : bytes) number = number << 8 | static_cast<unsigned char>(c);
  return std::to_string(static_cast<int64_t>(number));
}

ShownRow show_row(int table, const Row& row, const std::vector<bool>& known) {
  ShownRow shown;
  const auto& columns = shapes_there()[static_cast<size_t>(table)].columns;
  for (size_t i = 0; i < row.size(); ++i) {
    if (!known[i] || columns[i].is_gone) continue;
    Value& value = shown[columns[i].name];
    if (!row[i]) continue;
    value = shown_text(columns[i].type, *row[i]);
    if (value->size() > kShownMax) value = value->substr(0, kShownMax) + "...";
  }
  return shown;
}

std::string describe(const LoggedConflict& entry) {
  const auto show = [](const std::optional<ShownRow>& row) {
    std::string text = row ? "(" : "none";
    for (const auto& [name, value] : row.value_or(ShownRow{})) {
      text += fmt::format("{}{} = {}", text.size() > 1 ? ", " : "", name, value ? value->substr(0, 20) : "NULL");
    }
    return row ? text + ")" : text;
  };
  return fmt::format("{}/{} {} {} {} '{}' {}: {} -> {}, there {}", base::to_string(entry.commit_lsn), entry.change,
                     entry.operation, entry.table, entry.kind.empty() ? "error" : entry.kind, entry.sqlstate,
                     entry.action, show(entry.before), show(entry.wanted), show(entry.there));
}

bool is_stuck(Data data, std::span<const Change> changes) {
  return !apply_by_rows(data, {}, {.commit_lsn = {}, .changes = changes, .logged = {}, .was_parked = true}).empty();
}

std::string apply_with_conflicts(Data& data, const ConflictRules& rules, const std::vector<Applied>& transactions) {
  Data by_rows = data;
  std::optional<LoggedConflict> unnoticed;
  bool any_logged = false;
  for (const Applied& transaction : transactions) {
    const std::vector<LoggedConflict> due = apply_by_rows(by_rows, rules, transaction);
    const auto& logged = transaction.logged;
    any_logged = any_logged || !logged.empty();
    if (logged.empty() && !due.empty()) {
      if (!unnoticed) unnoticed = due.front();
      continue;
    }
    for (size_t i = 0; i < std::max(due.size(), logged.size()); ++i) {
      if (i >= due.size()) return "the conflict log has one too many: " + describe(logged[i]);
      if (i >= logged.size()) return "the conflict log lacks " + describe(due[i]);
      if (!is_same(logged[i], due[i])) {
        return fmt::format("the conflict log has {} instead of {}", describe(logged[i]), describe(due[i]));
      }
    }
  }
  if (!unnoticed) {
    data = std::move(by_rows);
    return {};
  }
  Merged merged(data, rules);
  bool fits = !any_logged;
  for (const Applied& transaction : transactions) {
    for (const Change& change : transaction.changes) fits = fits && merged.add(change);
  }
  return fits && merged.end() ? "" : "the conflict log lacks " + describe(*unnoticed);
}

}  // namespace thalweg::simulation
