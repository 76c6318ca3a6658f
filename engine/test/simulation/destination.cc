#include "simulation/destination.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "simulation/destination_session.h"
#include "simulation/verdict.h"

namespace thalweg::simulation {

namespace {

constexpr Time kFsyncMax = 10 * kMillisecond;
constexpr Time kWalWriterPause = 400 * kMillisecond;  // an asynchronous commit is on disk so long after it, at most
constexpr int kOperator = 1;                          // a pid of nobody else
constexpr int kOwner = 2;                             // another

std::string hex_text(const std::string& bytes) {
  std::string text = "\\x";
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

}  // namespace

Destination::Destination(Scheduler& scheduler, Network& network, std::string name, const History& history, Order order,
                         bool has_data_layer, const ConflictRules* conflicts)
    : Server(scheduler, network, std::move(name)),
      history_(history),
      order_(order),
      has_data_layer_(has_data_layer),
      conflicts_(conflicts),
      locks_(scheduler) {}

void Destination::register_stream(base::Lsn start) {
  working_.stream = StreamRow{.epoch = 0, .low_watermark = start};
  check(working_);
  log_ = {working_};
}

std::unique_ptr<Session> Destination::make_session(std::shared_ptr<Channel> channel) {
  return std::make_unique<DestinationSession>(*this, std::move(channel));
}

void Destination::began() {
  scheduler().spawn(process(), [this] {
    while (true) {
      scheduler().sleep_until(scheduler().now() +
                              static_cast<Time>(scheduler().random(static_cast<uint64_t>(kWalWriterPause))));
      flush(flushed_ + log_.size() - 1);
    }
  });
}

// Commits after the last flush may be lost, but none survives without all that came before it.
void Destination::crashed() {
  const size_t survives = scheduler().random(log_.size());
  log_ = {log_[survives]};
  flushed_ += survives;
  working_ = log_.back();
  locks_.clear();
}

void Destination::flush(uint64_t up_to) {
  if (up_to <= flushed_) return;
  log_.erase(log_.begin(), log_.begin() + static_cast<ptrdiff_t>(up_to - flushed_));
  flushed_ = up_to;
}

void Destination::commit(const std::vector<std::function<void(DestinationState&)>>& changes, bool synchronous) {
  if (changes.empty()) return;
  DestinationState next = log_.back();
  for (const auto& change : changes) change(next);
  check(next);
  // The working state knows what the committed one should look like, too: it becomes the committed one after a crash.
  log_.push_back(std::move(next));
  const uint64_t number = flushed_ + log_.size() - 1;
  if (!synchronous) return;
  scheduler().sleep_until(scheduler().now() + static_cast<Time>(scheduler().random(static_cast<uint64_t>(kFsyncMax))));
  flush(number);
}

void Destination::check(DestinationState& state) {
  if (!state.stream) return;
  Expected::Claim claim{.low_watermark = state.stream->low_watermark,
                        .ranges = {},
                        .parked = {},
                        .logged = std::exchange(state.logged, {})};
  for (const auto& [applier, row] : state.progress) {
    claim.low_watermark = std::max(claim.low_watermark, row.low_watermark);
    const auto decoded = apply::LsnRanges::decode_hex(hex_text(row.ranges));
    if (!decoded) {
      fail("progress of applier {} cannot be read: {}", applier, decoded.error().message);
      return;
    }
    for (const apply::LsnRange& range : decoded->list()) claim.ranges.add(range);
  }
  for (const auto& [id, row] : state.error_queue) claim.parked.insert(row.commit_lsn.value);
  for (const LoggedConflict& entry : claim.logged) trace("{} logs {}", name(), describe(entry));
  state.conflicts += claim.logged.size();
  const std::string wrong = state.expected.advance(history_, order_, conflicts_, claim);
  if (!wrong.empty()) {
    fail("at a commit of {}: {}", name(), wrong);
    return;
  }
  if (state.data != state.expected.data()) {
    fail("{} is not what its progress says:{}", name(), describe_difference(state.data, state.expected.data()));
  }
}

bool Destination::refuses(int table, const Row& row) const {
  const TableShape& shape = shapes()[static_cast<size_t>(table)];
  if (refused_once_in_ == 0 || shape.key < 0) return false;
  const std::string& key = *row[static_cast<size_t>(shape.key)];
  return static_cast<unsigned char>(key.back()) % refused_once_in_ == 0;
}

void Destination::alter_tables() {
  for (int64_t& version : table_versions_) version += static_cast<int64_t>(scheduler().random(2));
}

// All or none: who holds some and waits for others may be in a deadlock, which nobody detects here.
void Destination::lock_tables() {
  const auto lock_all = [this] {
    for (size_t table = 0; table < shapes().size(); ++table) {
      if (!locks_.try_acquire(kOwner, fmt::format("t{}", table), Locks::Mode::exclusive)) return false;
    }
    return true;
  };
  while (!lock_all()) {
    locks_.release(kOwner);
    scheduler().sleep_until(scheduler().now() + kMillisecond);
  }
}

void Destination::unlock_tables() { locks_.release(kOwner); }

void Destination::lock_rows_for_a_while() {
  scheduler().spawn(process(), [this] {
    const Time until = scheduler().now() + static_cast<Time>(scheduler().random(2 * kSecond));
    for (size_t table = 0; table < shapes().size(); ++table) {
      for (const auto& [key, row] : working_.data[table].rows) {
        if (scheduler().chance(4))
          locks_.try_acquire(kOperator, fmt::format("r{}:{}", table, key), Locks::Mode::exclusive);
      }
    }
    scheduler().sleep_until(until);
    locks_.release(kOperator);
  });
}

}  // namespace thalweg::simulation
