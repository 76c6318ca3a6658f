#include "simulation/history.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace thalweg::simulation {

namespace {

std::string row_name(int table, const Value& key) { return fmt::format("{}/{}", table, *key); }
std::string existence_name(int table, const Value& key) { return fmt::format("{}!{}", table, *key); }

// The rows and tables that a transaction writes, and the parent rows that it needs.
struct Touches {
  std::set<std::string> writes;
  std::set<std::string> reads;
  std::set<int> tables;
  std::set<int> truncates;

  void add(const Change& change) {
    const TableShape& shape = shapes()[static_cast<size_t>(change.table)];
    tables.insert(change.table);
    if (change.kind == Change::Kind::truncate) {
      truncates.insert(change.table);
      return;
    }
    if (shape.key < 0) return;  // the rows of tables without a key are whatever they are: the sum counts
    const auto key = static_cast<size_t>(shape.key);
    const Value before = change.before.empty() ? Value() : change.before[key];
    const Value after = change.after.empty() ? Value() : change.after[key];
    for (const Value& value : {before, after}) {
      if (!value) continue;
      writes.insert(row_name(change.table, value));
      if (before != after) writes.insert(existence_name(change.table, value));
    }
    if (shape.foreign < 0) return;
    for (const Row* row : {&change.before, &change.after}) {
      if (row->empty() || !(*row)[static_cast<size_t>(shape.foreign)]) continue;
      // The old tuple that the source sends has the key only: the parent of a removed row is not known.
      if (row == &change.before) continue;
      reads.insert(existence_name(shape.parent, (*row)[static_cast<size_t>(shape.foreign)]));
    }
  }
};

}  // namespace

void History::add_dependencies(SourceTransaction& transaction) {
  const size_t own = transactions_.size();
  Touches touches;
  for (const Change& change : transaction.changes) touches.add(change);
  std::set<size_t> needs;
  for (const std::string& name : touches.writes) {
    const LastTouch& last = touched_[name];
    if (last.writer >= 0) needs.insert(static_cast<size_t>(last.writer));
    needs.insert(last.readers.begin(), last.readers.end());
  }
  for (const std::string& name : touches.reads) {
    const LastTouch& last = touched_[name];
    if (last.writer >= 0) needs.insert(static_cast<size_t>(last.writer));
  }
  std::set<size_t> after;
  for (size_t table = 0; table < truncated_.size(); ++table) {
    if (truncated_[table] < 0) continue;
    const auto truncate = static_cast<size_t>(truncated_[table]);
    after.insert(truncate);
    if (touches.tables.contains(static_cast<int>(table))) needs.insert(truncate);
  }
  for (size_t i = 0; i < own && !touches.truncates.empty(); ++i) {
    after.insert(i);
    const bool shares = std::ranges::any_of(touches.truncates, [&](int table) { return tables_[i].contains(table); });
    if (shares) needs.insert(i);
  }
  for (const std::string& name : touches.writes) touched_[name] = {.writer = static_cast<int64_t>(own), .readers = {}};
  for (const std::string& name : touches.reads) touched_[name].readers.push_back(own);
  for (const int table : touches.truncates) truncated_[static_cast<size_t>(table)] = static_cast<int64_t>(own);
  tables_.push_back(std::move(touches.tables));
  after.insert(needs.begin(), needs.end());
  after.erase(own);
  needs.erase(own);
  transaction.after.assign(after.begin(), after.end());
  transaction.needs.assign(needs.begin(), needs.end());
}

void History::commit(SourceTransaction transaction) {
  add_dependencies(transaction);
  for (const Change& change : transaction.changes) apply_change(final_, change);
  transactions_.push_back(std::move(transaction));
}

// Both what was applied and what was parked comes in the promised order.
std::string Expected::check_order(const History& history, Order order, size_t index) const {
  for (const size_t earlier : history.transactions()[index].after) {
    if (!keeps(earlier)) return fmt::format("transaction {} is there before {}, on which it depends", index, earlier);
  }
  if (order == Order::full && index >= kept_prefix_) {
    return fmt::format("transaction {} is there, {} is not", index, kept_prefix_);
  }
  return {};
}

std::string Expected::advance(const History& history, Order order, const ConflictRules* conflicts, const Claim& claim) {
  const auto& all = history.transactions();
  applied_.resize(all.size());
  kept_.resize(all.size());
  std::vector<size_t> came;
  std::vector<size_t> fresh;  // applied
  size_t found = 0;
  for (size_t i = prefix_; i < all.size(); ++i) {
    const base::Lsn commit{all[i].commit_lsn};
    const bool claimed = all[i].changes.empty() || commit < claim.low_watermark || claim.ranges.contains(commit);
    if (kept_[i] && !claimed) return fmt::format("progress forgets transaction {} at {:X}", i, commit.value);
    const bool is_parked = claim.parked.contains(commit.value);
    if (is_parked && !claimed) return fmt::format("transaction {} is parked, and comes again", i);
    if (is_parked && applied_[i]) return fmt::format("transaction {} is parked, and was applied", i);
    if (is_parked) ++found;
    if (claimed && !kept_[i]) came.push_back(i);
    if (claimed && !is_parked && !applied_[i]) fresh.push_back(i);
  }
  if (found < claim.parked.size()) return "the error queue holds what was applied, or what never was";
  for (const size_t i : came) kept_[i] = true;
  for (const size_t i : fresh) applied_[i] = true;
  while (kept_prefix_ < all.size() && kept_[kept_prefix_]) ++kept_prefix_;
  while (prefix_ < all.size() && applied_[prefix_]) ++prefix_;
  for (const size_t i : came) {
    if (all[i].changes.empty()) continue;
    if (std::string wrong = check_order(history, order, i); !wrong.empty()) return wrong;
  }
  for (const size_t i : fresh) {
    for (const size_t earlier : all[i].needs) {
      if (!has(earlier)) return fmt::format("transaction {} is applied, {} is parked, which it needs", i, earlier);
    }
  }
  count_ += fresh.size();
  return conflicts == nullptr ? apply_fresh(history, fresh)
                              : apply_fresh(history, fresh, came, *conflicts, claim.logged);
}

bool Expected::is_stuck(const History& history) const {
  const auto& all = history.transactions();
  return prefix_ < all.size() && simulation::is_stuck(data_, all[prefix_].changes);
}

std::string Expected::apply_fresh(const History& history, const std::vector<size_t>& fresh) {
  const auto& all = history.transactions();
  for (const size_t i : fresh) {
    for (const Change& change : all[i].changes) {
      if (!apply_change(data_, change, UniqueCheck::at_end)) {
        return fmt::format("transaction {} cannot follow what is there: {}", i, describe(change));
      }
    }
  }
  for (const size_t i : fresh) {
    for (const Change& change : all[i].changes) {
      if (!keeps_unique(data_, change)) {
        return fmt::format("transaction {} leaves a unique value twice: {}", i, describe(change));
      }
    }
  }
  return {};
}

std::string Expected::apply_fresh(const History& history, const std::vector<size_t>& fresh,
                                  const std::vector<size_t>& came, const ConflictRules& conflicts,
                                  const std::vector<LoggedConflict>& logged) {
  const auto& all = history.transactions();
  std::map<base::Lsn, std::vector<LoggedConflict>> by_transaction;
  for (const LoggedConflict& entry : logged) by_transaction[entry.commit_lsn].push_back(entry);
  std::vector<Applied> applied;
  size_t matched = 0;
  for (const size_t i : fresh) {
    const base::Lsn commit{all[i].commit_lsn};
    applied.push_back({.commit_lsn = commit,
                       .changes = all[i].changes,
                       .logged = by_transaction[commit],
                       .was_parked = std::ranges::find(came, i) == came.end()});
    matched += applied.back().logged.size();
  }
  if (matched < logged.size()) return "the conflict log has a change of no transaction that was applied with it";
  return apply_with_conflicts(data_, conflicts, applied);
}

}  // namespace thalweg::simulation
