#include "simulation/source.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "simulation/source_session.h"
#include "simulation/system_clock.h"
#include "simulation/verdict.h"

namespace thalweg::simulation {

namespace {
constexpr size_t kOpenMax = 4;  // transactions at the same time

size_t table_of(const TableShape& shape) { return static_cast<size_t>(&shape - shapes().data()); }
}  // namespace

Source::Source(Scheduler& scheduler, Network& network, SourceOptions options)
    : Server(scheduler, network, "source"), options_(options), locks_(scheduler) {}

std::unique_ptr<Session> Source::make_session(std::shared_ptr<Channel> channel) {
  return std::make_unique<SourceSession>(*this, std::move(channel));
}

void Source::crashed() {
  confirmed_ = saved_confirmed_;
  active_pid_ = 0;
  aborted_by_crash_ = true;
}

uint64_t Source::write(WalRecord record) {
  record.lsn = wal_end_;
  record.end = wal_end_ + 8 * (3 + scheduler().random(40));
  wal_end_ = record.end;
  wal_.push_back(std::move(record));
  return wal_.back().lsn;
}

// In a transaction of its own, which changes no row: not part of the history.
uint64_t Source::emit_message(const std::string& prefix, const std::string& content) {
  const uint32_t xid = next_xid_++;
  const auto record = [&](WalRecord::Kind kind) {
    return WalRecord{.kind = kind, .lsn = 0, .end = 0, .xid = xid, .subxid = xid, .changes = {}};
  };
  WalRecord message = record(WalRecord::Kind::message);
  message.prefix = prefix;
  message.content = content;
  const uint64_t lsn = write(std::move(message));
  WalRecord commit = record(WalRecord::Kind::commit);
  commit.commit_time = wall_now_micros() - base::kPostgresEpochMicros;
  write(std::move(commit));
  return lsn;
}

void Source::run_clients(Process& process) {
  scheduler().spawn(process, [this] {
    std::vector<OpenTransaction> open;
    while (begun_ < options_.transactions || !open.empty()) {
      scheduler().sleep_until(scheduler().now() +
                              static_cast<Time>(scheduler().random(static_cast<uint64_t>(options_.pause_max))));
      if (!is_up()) continue;
      if (std::exchange(aborted_by_crash_, false)) {
        for (auto& transaction : open) end(transaction, false);
        open.clear();
        continue;
      }
      step(open);
    }
    done_ = true;
  });
}

void Source::step(std::vector<OpenTransaction>& open) {
  if (begun_ < options_.transactions && (open.empty() || (open.size() < kOpenMax && scheduler().chance(4)))) {
    OpenTransaction fresh;
    fresh.xid = next_xid_++;
    fresh.subxids = {fresh.xid};
    const bool large = scheduler().chance(options_.large_once_in);
    fresh.changes_left = 1 + scheduler().random(large ? options_.large_changes_max : options_.changes_max);
    if (begun_ == 0) fresh.changes_left = options_.seed_rows;
    ++begun_;
    open.push_back(std::move(fresh));
  }
  const size_t which = scheduler().random(open.size());
  OpenTransaction& transaction = open[which];
  if (transaction.changes_left > 0) {
    --transaction.changes_left;
    if (transaction.subxids.size() < 3 && scheduler().chance(12)) transaction.subxids.push_back(next_xid_++);
    make_change(transaction);
    if (transaction.subxids.size() > 1 && scheduler().chance(6)) {
      const uint32_t subxid = transaction.subxids.back();
      transaction.subxids.pop_back();
      if (scheduler().chance(2)) undo(transaction, subxid);  // else it is released into its parent
    }
    return;
  }
  end(transaction, !scheduler().chance(10));
  open.erase(open.begin() + static_cast<ptrdiff_t>(which));
}

Row Source::random_row(const TableShape& shape, const Row& before) {
  Row row = before.empty() ? Row(shape.columns.size()) : before;
  for (size_t i = 0; i < row.size(); ++i) {
    const auto column = static_cast<int>(i);
    if (!before.empty() && scheduler().chance(2) && column != shape.key) continue;
    if (column == shape.key) {
      if (!before.empty() && !scheduler().chance(8)) continue;
      row[i] = int8_value(static_cast<int64_t>(scheduler().random(static_cast<uint64_t>(options_.keys))));
    } else if (column == shape.foreign) {
      const auto& parents = data_[static_cast<size_t>(shape.parent)].rows;
      if (parents.empty() || scheduler().chance(5)) {
        row[i] = std::nullopt;
      } else {
        row[i] = std::next(parents.begin(), static_cast<ptrdiff_t>(scheduler().random(parents.size())))->first;
      }
    } else if (const auto& own = options_.transformations[table_of(shape)];
               own && own->hides(i) && shape.columns[i].type != 20) {
      row[i] = random_secret();
    } else if (column == shape.unique) {
      row[i] = scheduler().chance(3) ? Value() : fmt::format("code{}", scheduler().random(12));
    } else if (shape.columns[i].type == 20) {
      row[i] = int8_value(shape.key < 0 ? static_cast<int64_t>(scheduler().random(4)) : next_value_++);
    } else if (shape.key < 0) {
      row[i] = fmt::format("text{}", scheduler().random(3));
    } else {
      const size_t size = scheduler().chance(options_.long_once_in) ? 65 + scheduler().random(options_.long_bytes_max)
                                                                    : scheduler().random(30);
      row[i] = random_text(size);
    }
  }
  return row;
}

// Each time another text, and perhaps a long one.
std::string Source::random_secret() {
  return std::string(kSecret) + std::to_string(next_value_++) + random_text(scheduler().random(100));
}

Change Source::random_change() {
  const auto table = static_cast<int>(scheduler().random(shapes().size()));
  const TableShape& shape = shapes()[static_cast<size_t>(table)];
  const Table& now = data_[static_cast<size_t>(table)];
  const size_t present = shape.key >= 0 ? now.rows.size() : now.bag.size();
  Change change{.kind = Change::Kind::insert, .table = table, .before = {}, .after = {}};
  const uint64_t dice = scheduler().random(10);
  if (present > 0 && dice >= 4) {
    change.kind = dice < 8 ? Change::Kind::update : Change::Kind::remove;
    size_t which = scheduler().random(present);
    if (scheduler().chance(options_.hot_once_in)) which = std::min<size_t>(which, scheduler().random(2));
    change.before = shape.key >= 0 ? std::next(now.rows.begin(), static_cast<ptrdiff_t>(which))->second
                                   : std::next(now.bag.begin(), static_cast<ptrdiff_t>(which))->first;
  }
  if (change.kind != Change::Kind::remove) change.after = random_row(shape, change.before);
  return change;
}

// Half of the texts are such that compression makes nothing of them.
std::string Source::random_text(size_t size) {
  std::string text(size, static_cast<char>('a' + scheduler().random(26)));
  if (scheduler().chance(2)) return text;
  uint64_t state = scheduler().random(UINT64_MAX);
  for (char& c : text) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    c = static_cast<char>(' ' + (state >> 57) % 95);
  }
  return text;
}

// Everything that other open transactions must not touch meanwhile.
bool Source::lock_for(uint32_t xid, const Change& change) {
  const TableShape& shape = shapes()[static_cast<size_t>(change.table)];
  const auto pid = static_cast<int>(xid);
  const std::string table = fmt::format("t{}", change.table);
  using Mode = Locks::Mode;
  if (change.kind == Change::Kind::truncate) return locks_.try_acquire(pid, table, Mode::exclusive);
  if (!locks_.try_acquire(pid, table, Mode::shared)) return false;
  for (const Row* row : {&change.before, &change.after}) {
    if (row->empty()) continue;
    if (shape.key < 0) {
      std::string content;
      for (const Value& value : *row) content += value.value_or("");
      if (!locks_.try_acquire(pid, fmt::format("b{}:{}", change.table, content), Mode::exclusive)) return false;
      continue;
    }
    const std::string& key = *(*row)[static_cast<size_t>(shape.key)];
    if (!locks_.try_acquire(pid, fmt::format("r{}:{}", change.table, key), Mode::exclusive)) return false;
    if (shape.unique >= 0 && (*row)[static_cast<size_t>(shape.unique)] &&
        !locks_.try_acquire(pid, fmt::format("u{}:{}", change.table, *(*row)[static_cast<size_t>(shape.unique)]),
                            Mode::exclusive))
      return false;
    if (shape.foreign >= 0 && (*row)[static_cast<size_t>(shape.foreign)] &&
        !locks_.try_acquire(pid, fmt::format("f{}:{}", shape.parent, *(*row)[static_cast<size_t>(shape.foreign)]),
                            Mode::shared))
      return false;
    const bool moves = change.kind != Change::Kind::update || change.before.front() != change.after.front();
    if (moves && !locks_.try_acquire(pid, fmt::format("f{}:{}", change.table, key), Mode::exclusive)) return false;
  }
  return true;
}

bool Source::try_change(OpenTransaction& open, std::vector<Change> changes) {
  for (const Change& change : changes) {
    if (!lock_for(open.xid, change)) return false;
  }
  const uint32_t subxid = open.subxids.back();
  for (const Change& change : changes) {
    const TableShape& shape = shapes()[static_cast<size_t>(change.table)];
    // Foreign keys hold at the source: the parent is there, and no child is left behind.
    if (shape.foreign >= 0 && !change.after.empty()) {
      const Value& parent = change.after[static_cast<size_t>(shape.foreign)];
      if (parent && !data_[static_cast<size_t>(shape.parent)].rows.contains(*parent)) return false;
    }
    const bool leaves = change.kind == Change::Kind::remove ||
                        (change.kind == Change::Kind::update && change.before.front() != change.after.front());
    for (const TableShape& child : shapes()) {
      if (!leaves || child.parent != change.table) continue;
      const auto& rows_of_child = data_[static_cast<size_t>(&child - shapes().data())].rows;
      for (const auto& [key, row] : rows_of_child) {
        if (row[static_cast<size_t>(child.foreign)] == change.before.front()) return false;
      }
    }
    const Table before = data_[static_cast<size_t>(change.table)];
    if (!apply_change(data_, change)) return false;
    const bool truncates = change.kind == Change::Kind::truncate;
    open.done.push_back({.subxid = subxid, .change = change, .table_before = truncates ? before : Table{}});
  }
  write({.kind = WalRecord::Kind::change,
         .lsn = 0,
         .end = 0,
         .xid = open.xid,
         .subxid = subxid,
         .changes = std::move(changes)});
  return true;
}

bool Source::make_change(OpenTransaction& open) {
  if (scheduler().chance(60)) {
    const Change entries{.kind = Change::Kind::truncate, .table = 1, .before = {}, .after = {}};
    if (scheduler().chance(2)) return try_change(open, {entries});
    Change accounts = entries;
    accounts.table = 0;
    return try_change(open, {accounts, entries});  // as TRUNCATE account CASCADE
  }
  for (int tries = 0; tries < 6; ++tries) {
    if (try_change(open, {random_change()})) return true;
  }
  return false;
}

void Source::undo(OpenTransaction& open, uint32_t subxid) {
  const bool all = subxid == open.xid;
  for (auto done = open.done.rbegin(); done != open.done.rend(); ++done) {
    if (!all && done->subxid < subxid) continue;  // what began after it, and ended already, is part of it
    Change back = done->change;
    std::swap(back.before, back.after);
    if (back.kind == Change::Kind::truncate) {
      data_[static_cast<size_t>(back.table)] = done->table_before;
      continue;
    }
    if (done->change.kind == Change::Kind::insert) back.kind = Change::Kind::remove;
    if (done->change.kind == Change::Kind::remove) back.kind = Change::Kind::insert;
    if (!apply_change(data_, back)) fail("the model of the source cannot undo {}", describe(done->change));
  }
  std::set<uint32_t> aborted{subxid};
  for (const auto& done : open.done) {
    if (!all && done.subxid > subxid) aborted.insert(done.subxid);
  }
  std::erase_if(open.done, [&](const auto& done) { return all || done.subxid >= subxid; });
  for (auto each = aborted.rbegin(); each != aborted.rend(); ++each) {
    write({.kind = all ? WalRecord::Kind::abort : WalRecord::Kind::abort_subtransaction,
           .lsn = 0,
           .end = 0,
           .xid = open.xid,
           .subxid = *each,
           .changes = {}});
  }
}

std::optional<Change> Source::passed(const Change& change) const {
  const auto table = static_cast<size_t>(change.table);
  std::optional<Change> passed = options_.rules[table] ? options_.rules[table]->passed(change) : change;
  if (passed) passed->is_partial = passed->kind == Change::Kind::update && leaves_value_out(change);
  if (passed && options_.transformations[table]) passed = options_.transformations[table]->changed(*passed);
  return passed;
}

void Source::end(OpenTransaction& open, bool commits) {
  if (!commits) {
    undo(open, open.xid);
    locks_.release(static_cast<int>(open.xid));
    return;
  }
  const uint64_t lsn = write({.kind = WalRecord::Kind::commit,
                              .lsn = 0,
                              .end = 0,
                              .xid = open.xid,
                              .subxid = open.xid,
                              .changes = {},
                              .commit_time = wall_now_micros() - base::kPostgresEpochMicros});
  SourceTransaction transaction{
      .commit_lsn = lsn, .end_lsn = wal_end_, .xid = open.xid, .changes = {}, .after = {}, .needs = {}};
  trace("transaction {} commits at {:X}: {} changes", history_.transactions().size(), lsn, open.done.size());
  for (const auto& done : open.done) {
    trace("    {}", describe(done.change));
    auto change = passed(done.change);
    if (!change || change->kind != done.change.kind) trace("      is sent as {}", change ? describe(*change) : "-");
    if (!change) continue;
    if (change->kind != done.change.kind) ++migrations_;
    transaction.changes.push_back(*std::move(change));
  }
  history_.commit(std::move(transaction));
  locks_.release(static_cast<int>(open.xid));
}

std::string Source::fate_of(uint32_t xid) const {
  uint32_t top = xid;
  for (const WalRecord& record : wal_) {
    if (record.subxid == xid) top = record.xid;
  }
  for (const WalRecord& record : wal_) {
    using Kind = WalRecord::Kind;
    if (record.kind == Kind::abort_subtransaction && record.subxid == xid) return "aborted";
    if (record.kind == Kind::abort && record.xid == top) return "aborted";
    if (record.kind == Kind::commit && record.xid == top) return "committed";
  }
  return "in progress";
}

bool Source::is_table_locked(const std::string& oid) {
  constexpr int kLooker = -1;
  bool is_locked = false;
  for (const TableShape& shape : shapes()) {
    if (std::to_string(shape.oid) != oid) continue;
    is_locked = !locks_.try_acquire(kLooker, fmt::format("t{}", table_of(shape)), Locks::Mode::shared);
  }
  locks_.release(kLooker);
  return is_locked;
}

// The slot may forget only what no crash of the destination can take away.
void Source::check_feedback(uint64_t flushed) {
  if (flushed > wal_end_) fail("{:X} is confirmed, the source's WAL ends at {:X}", flushed, wal_end_);
  if (flushed <= confirmed_) return;
  const auto& all = history_.transactions();
  for (size_t i = destination_ ? destination_->durable().expected.kept_prefix() : all.size(); i < all.size(); ++i) {
    if (all[i].commit_lsn >= flushed) break;
    if (!all[i].changes.empty() && !destination_->durable().expected.keeps(i)) {
      fail("{:X} is confirmed to the source, but transaction {} at {:X} is not durable at the destination", flushed, i,
           all[i].commit_lsn);
    }
  }
  confirmed_ = flushed;
  if (scheduler().chance(2)) saved_confirmed_ = confirmed_;
}

}  // namespace thalweg::simulation
