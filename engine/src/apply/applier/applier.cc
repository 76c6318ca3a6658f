#include "apply/applier/applier.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "apply/applier/parking.h"
#include "apply/data_error.h"
#include "base/log.h"
#include "metadata/destination_version.h"

namespace thalweg::apply {

using base::ErrorCode;
using telemetry::Activity;
using telemetry::ActivityScope;

namespace {

constexpr std::string_view kDeadlockDetected = "40P01";
constexpr uint64_t kSmallGroupLcrs = 16;  // below, merging rows does not pay
constexpr uint64_t kSmallCallLcrs = 100;  // the same where the data layer takes most of them
constexpr int kTriesMax = 8;
constexpr std::chrono::milliseconds kFirstRetryDelay{5};
constexpr std::chrono::milliseconds kIdleWait{100};
constexpr pollfd kNothing{.fd = -1, .events = 0, .revents = 0};
constexpr uint64_t kAssignerBytesMax = 16 * 1024;  // a socket takes them while the server is at something else
const std::string kBegin = "BEGIN";
const std::string kCommit = "COMMIT";
const std::string kRollback = "ROLLBACK";

// The row of this applier is not there any more.
bool is_fenced(const StatementFailure& failure) {
  return failure.table == nullptr && failure.frame.empty() && !failure.below_sql && failure.error.sqlstate == "22012";
}

LsnRange range_of(const Transaction& transaction) {
  return {.first = transaction.commit_lsn, .end = transaction.end_lsn};
}

}  // namespace

Applier::Lane::Lane(SharedState& shared, metadata::MetadataCache& cache, int applier, int number)
    : tables(cache, shared.destination_conninfo, shared.connect_options(fmt::format("applier {} catalog", applier)),
             applier),
      progress(shared, applier + number * kAppliersMax) {
  static_assert(kAppliersMax * kGroupsMax <= ProgressWriter::kRowsMax);
}

Applier::Applier(SharedState& shared, metadata::MetadataCache& cache, int number)
    : shared_(shared), number_(number), lanes_{Lane(shared, cache, number, 0), Lane(shared, cache, number, 1)} {
  baton_.take();  // run() has it
  thread_ = std::thread([this] { run(); });
}

Applier::~Applier() { join(); }

void Applier::join() {
  if (!thread_.joinable()) return;
  wake_.ring();
  thread_.join();
}

void Applier::retire() {
  retiring_.store(true, std::memory_order_release);
  wake_.ring();
}

void Applier::revive() {
  join();
  retiring_.store(false, std::memory_order_relaxed);
  state_.set("INITIALIZING");
  active_.store(true, std::memory_order_release);
  thread_ = std::thread([this] { run(); });
}

void Applier::assign(Group* group, bool beside) {
  group->error.reset();
  before_.store(beside ? Before::open : Before::committed, std::memory_order_relaxed);
  rollback_requested_.store(false, std::memory_order_relaxed);
  assigned_.push(group);
  if (!baton_.take()) return;  // its thread has it, and looks once more
  bool left = false;           // something that may have to wait
  bool thread_came = false;    // while it could not have the baton it did not listen to the server
  while (true) {
    left = !attend(By::assigner) || (session_ && session_->unsent());
    show_wait();
    if (baton_.let_go()) break;
    thread_came = true;
  }
  if (left || thread_came) wake_.ring();
}

void Applier::tell_settled(bool committed) {
  before_.store(committed ? Before::committed : Before::failed, std::memory_order_release);
  wake_.ring();
}

Group* Applier::take_finished() {
  Group** const first = finished_.peek();
  if (first == nullptr) return nullptr;
  Group* const group = *first;
  finished_.pop();
  return group;
}

void Applier::request_rollback() {
  rollback_requested_.store(true, std::memory_order_relaxed);
  wake_.ring();
}

void Applier::set_dependency_wait(bool waits) {
  if (dependency_wait_.exchange(waits, std::memory_order_relaxed) != waits) wake_.ring();
}

base::Result<void> Applier::connect() {
  THALWEG_ASSIGN(auto session, DestinationSession::open(shared_.destination_conninfo,
                                                        shared_.connect_options(fmt::format("applier {}", number_))));
  session_.emplace(std::move(session));
  THALWEG_ASSIGN(has_data_layer_, has_data_layer(session_->connection()));
  backend_pid_.store(session_->connection().backend_pid(), std::memory_order_relaxed);
  for (Lane& lane : lanes_) {
    lane.executor.emplace(*session_, lane.tables, sets_, data_layer_calls_, merged_updates_);
    THALWEG_TRY(lane.progress.create_row(session_->connection()));
  }
  return {};
}

// Has the baton whenever it does not sleep.
void Applier::run() {
  {
    const ActivityScope network(time_, Activity::network);
    if (auto connected = connect(); !connected) shared_.error.set(connected.error());
  }
  while (true) {
    while (!attend(By::agent)) work_alone();
    const bool retiring = retiring_.load(std::memory_order_acquire);
    if ((shared_.ending() || retiring) && !sent_.empty()) {
      take_answer(session_->await_answer());  // gives up once apply is abandoned
      continue;
    }
    // A coordinator that has not yet seen the end may still assign a group, and waits for it to come back.
    if ((retiring || shared_.commits_ended.load(std::memory_order_acquire)) && assigned_.empty()) break;
    show_wait();
    const pollfd answers = session_ ? session_->polled() : kNothing;
    listens_ = answers.fd >= 0;
    if (!baton_.let_go()) continue;
    const bool heard = wake_.wait(kIdleWait, answers);
    while (!baton_.take()) wake_.wait(kIdleWait);
    heard_ = heard;
  }
  state_.set("IDLE");
  time_.enter(Activity::idle);
  for (Lane& lane : lanes_) {
    lane.executor.reset();
    lane.tables.disconnect();
  }
  session_.reset();
  backend_pid_.store(0, std::memory_order_relaxed);
  if (retiring_.load(std::memory_order_acquire)) active_.store(false, std::memory_order_release);
  shared_.coordinator_bell.ring();
}

// Takes the answers that have come, and sends what may go behind what is on its way. False: there is something else to
// do, and, by its thread, nothing is on its way.
bool Applier::attend(By by) {
  take_answers();
  while (failed_.empty() && !assigned_.empty()) {
    Lane* const lane = free_lane();
    if (lane == nullptr || !may_send(**assigned_.peek())) return !sent_.empty();
    if (by == By::assigner && !takes_no_time(*lane, **assigned_.peek())) return false;
    lane->group = *assigned_.peek();
    assigned_.pop();
    if (auto sent = send(*lane); !sent) {
      failed_.push_back({.lane = lane, .why = std::unexpected(std::move(sent).error())});
    } else {
      sent_.push_back(lane);
    }
  }
  return failed_.empty() || !sent_.empty();
}

void Applier::take_answers() {
  if (sent_.empty() && (!heard_ || !session_ || session_->broken())) return;
  heard_ = false;
  do {
    auto answer = session_->answer();
    if (answer && !*answer) return;
    if (sent_.empty()) return;  // a server that nobody asked has only to say that it goes: broken() tells
    take_answer(answer ? base::Result<Refusal>(std::move(**answer)) : std::unexpected(std::move(answer).error()));
  } while (!sent_.empty());
}

void Applier::take_answer(base::Result<Refusal> answer) {
  Lane& lane = *sent_.front();
  sent_.pop_front();
  if (!answer) {
    failed_.push_back({.lane = &lane, .why = std::unexpected(answer.error())});
    // No others come.
    for (Lane* const behind : std::exchange(sent_, {})) {
      failed_.push_back({.lane = behind, .why = std::unexpected(answer.error())});
    }
    return;
  }
  if (*answer) {
    failed_.push_back({.lane = &lane, .why = std::move(**answer)});
    return;
  }
  lane.progress.committed();
  for (const auto& transaction : lane.group->transactions) account(*transaction);
  publish_counts(*lane.executor);
  finish(lane);
}

Applier::Lane* Applier::free_lane() {
  const auto lane = std::ranges::find(lanes_, nullptr, &Lane::group);
  return lane == lanes_.end() ? nullptr : lane;
}

bool Applier::uses_data_layer() const {
  return has_data_layer_ && shared_.parameters.data_layer.load(std::memory_order_relaxed);
}

// In one round trip, behind what is on its way. That may fail without this one's doing so, too.
bool Applier::may_send(const Group& group) const {
  return session_ && !session_->broken() && !session_->prepares() && !shared_.ending() &&
         group.mode == GroupMode::together && before_.load(std::memory_order_acquire) == Before::committed &&
         group.lcrs < (uses_data_layer() ? kSmallCallLcrs : kSmallGroupLcrs) && !group.transactions.front()->spilled &&
         is_turn(group);
}

// Nothing that somebody else's thread, capture's perhaps, would have to wait for.
bool Applier::takes_no_time(const Lane& lane, const Group& group) const {
  const auto is_known = [&lane](const auto& table) { return lane.tables.has(*table); };
  return listens_ && group.bytes <= kAssignerBytesMax && std::ranges::all_of(group.transactions, [&](const auto& one) {
           return std::ranges::all_of(one->tables.all(), is_known);
         });
}

// The sync commits what came since the last one, unless a statement failed.
base::Result<void> Applier::send(Lane& lane) {
  time_.enter(Activity::busy);
  const LsnRange range = lane.group->range();
  lane.executor->use_data_layer(uses_data_layer());
  if (uses_data_layer()) {
    THALWEG_TRY(lane.executor->send_checked(*lane.group, lane.progress.row(range)));
  } else {
    THALWEG_TRY(lane.executor->send_checked(*lane.group, {}));
    THALWEG_TRY(lane.progress.send(*session_, range));
  }
  return session_->send_sync();
}

void Applier::show_wait() {
  const bool waits = dependency_wait_.load(std::memory_order_relaxed);
  state_.set(!sent_.empty() ? "EXECUTE TRANSACTION" : waits ? "WAIT DEPENDENCY" : "IDLE");
  time_.enter(!sent_.empty() ? Activity::execute : waits ? Activity::dependency : Activity::idle);
}

// A group that did not commit, or does not go in one round trip.
void Applier::work_alone() {
  state_.set("EXECUTE TRANSACTION");
  time_.enter(Activity::busy);
  base::Result<void> done;
  Lane* lane = lanes_.begin();
  if (!failed_.empty()) {
    lane = failed_.front().lane;
    auto why = std::move(failed_.front().why);
    failed_.pop_front();
    done = why ? take_refusal(*lane, *why) : std::unexpected(std::move(why).error());
  } else {
    lane->group = *assigned_.peek();
    assigned_.pop();
    done = execute(*lane->group);
  }
  if (!done) {
    lane->group->error = done.error();
    if (session_ && !session_->broken() && !roll_back()) shared_.error.set(done.error());
  }
  finish(*lane);
}

void Applier::finish(Lane& lane) {
  if (lane.executor) lane.executor->reset();
  lane.tables.release();
  Group* const group = std::exchange(lane.group, nullptr);
  if (!group->error) groups_.add();
  finished_.push(group);
  shared_.tell_coordinator();
}

base::Result<void> Applier::execute(Group& group) {
  if (shared_.error.is_set() || shared_.abandon.load(std::memory_order_relaxed)) {
    return base::fail(ErrorCode::engine_stopping, "apply ends");
  }
  return group.mode == GroupMode::together ? execute_together(group) : execute_singly(group);
}

base::Result<void> Applier::roll_back() {
  state_.set("ROLLBACK TRANSACTION");
  // After a failure the server skips everything up to the next sync, a ROLLBACK too. Without one the sync would commit
  // what was sent without BEGIN.
  if (session_->unsynced() > 0) {
    THALWEG_TRY(session_->run(kRollback));
    THALWEG_TRY(session_->sync());
  }
  THALWEG_TRY(session_->run(kRollback));
  THALWEG_TRY(session_->sync());
  return {};
}

bool Applier::is_turn(const Group& group) const {
  return shared_.parameters.commit_serialization.load(std::memory_order_relaxed) != CommitSerialization::full ||
         shared_.committed_through.load(std::memory_order_acquire) + 1 == group.number;
}

bool Applier::await_turn(const Group& group) {
  if (is_turn(group)) return true;
  state_.set("WAIT COMMIT");
  const ActivityScope waiting(time_, Activity::commit_order);
  rollback_requested_.store(false, std::memory_order_relaxed);
  waits_for_turn_.store(true, std::memory_order_release);
  bool turn = false;
  while (!turn) {
    turn = is_turn(group);
    if (turn || shared_.ending() || rollback_requested_.load(std::memory_order_relaxed)) break;
    wake_.wait(kIdleWait);
  }
  waits_for_turn_.store(false, std::memory_order_release);
  return turn;
}

base::Result<void> Applier::await_settled() {
  state_.set("WAIT DEPENDENCY");
  const ActivityScope waiting(time_, Activity::dependency);
  const auto begun = std::chrono::steady_clock::now();
  Before before = Before::open;
  while (true) {
    before = before_.load(std::memory_order_acquire);
    if (before != Before::open || shared_.ending() || rollback_requested_.load(std::memory_order_relaxed)) break;
    wake_.wait(kIdleWait);
    // Has the coordinator look who blocks the oldest group, which costs a query each time: not for an ordinary wait.
    if (std::chrono::steady_clock::now() - begun >= kIdleWait) waits_for_turn_.store(true, std::memory_order_release);
  }
  waits_for_turn_.store(false, std::memory_order_release);
  state_.set("EXECUTE TRANSACTION");
  if (before == Before::committed) return {};
  if (before == Before::open && !shared_.ending()) deadlocks_.add();
  return base::fail(ErrorCode::database_busy, "rolled back to be executed after transactions that it depends on");
}

base::Result<Refusal> Applier::commit(LsnRange range) {
  ProgressWriter& progress = lanes_.front().progress;
  THALWEG_TRY(progress.send(*session_, range));
  THALWEG_TRY(session_->run(session_->prepared(kCommit, {}), {}, {.any = true}));
  const ActivityScope committing(time_, Activity::commit);
  THALWEG_ASSIGN(Refusal refusal, session_->sync());
  if (!refusal) progress.committed();
  return refusal;
}

// Found by the server. What the coordinator finds is counted where this applier gives way.
void Applier::count_deadlock(const base::Error& error) {
  if (error.sqlstate == kDeadlockDetected) deadlocks_.add();
}

void Applier::refuse_group(Group& group, base::Error error) {
  fallbacks_.add();
  group.error = std::move(error);
}

base::Result<void> Applier::leave_data_layer(StatementFailure& failure) {
  if (failure.error.code == ErrorCode::database_busy) return {};  // comes again as it is
  const std::string_view sqlstate = failure.error.sqlstate;
  bool leaves = is_refused(sqlstate);
  if (!leaves && may_be_gone(sqlstate)) {
    THALWEG_ASSIGN(const bool answers, answers_calls(*session_));
    leaves = !answers;
  }
  if (leaves) {
    has_data_layer_ = false;
    base::log_event(base::LogLevel::warning, "data_layer_unusable",
                    {{"stream", shared_.stream_id}, {"applier", int64_t{number_}}, {"reason", failure.error.message}});
  }
  failure.error.code = ErrorCode::apply_failed;
  return {};
}

base::Result<bool> Applier::is_outdated(Lane& lane, const base::Error& error) {
  if (error.code != ErrorCode::destination_table_differs && !metadata::is_schema_change(error.sqlstate)) return false;
  return lane.tables.have_changed();
}

base::Result<void> Applier::execute_together(Group& group) {
  GroupExecutor& executor = *lanes_.front().executor;
  executor.use_data_layer(uses_data_layer());
  THALWEG_TRY(session_->run(session_->prepared(kBegin, {}), {}, {.any = true}));
  Refusal refusal;
  {
    const ActivityScope executing(time_, Activity::execute);
    GroupExecutor::Settle settle;
    if (before_.load(std::memory_order_acquire) != Before::committed) settle = [this] { return await_settled(); };
    THALWEG_ASSIGN(refusal, executor.execute_together(group, settle));
  }
  if (!refusal && !await_turn(group)) {
    THALWEG_TRY(roll_back());
    if (!shared_.ending()) deadlocks_.add();
    group.error = base::fail(ErrorCode::database_busy, "rolled back to let an earlier transaction commit").error();
    return {};
  }
  if (!refusal) {
    THALWEG_ASSIGN(refusal, commit(group.range()));
  }
  if (refusal) return take_refusal(lanes_.front(), *refusal);
  for (const auto& transaction : group.transactions) account(*transaction);
  publish_counts(executor);
  return {};
}

base::Result<void> Applier::take_refusal(Lane& lane, StatementFailure& failure) {
  if (session_->broken()) return std::unexpected(failure.error);
  if (is_fenced(failure)) return std::unexpected(taken_over(shared_.stream_id));
  THALWEG_TRY(roll_back());
  count_deadlock(failure.error);
  // It comes again singly, and finds the new metadata.
  THALWEG_ASSIGN(const bool outdated, is_outdated(lane, failure.error));
  if (failure.below_sql && outdated) {
    failure.error.code = ErrorCode::apply_failed;
  } else if (failure.below_sql) {
    THALWEG_TRY(leave_data_layer(failure));
  }
  refuse_group(*lane.group, final_error(failure, *lane.group->transactions.front()));
  return {};
}

base::Result<Refusal> Applier::execute_one(const Transaction& transaction, const base::Error* park_why) {
  THALWEG_TRY(session_->run(session_->prepared(kBegin, {}), {}, {.any = true}));
  GroupExecutor& executor = *lanes_.front().executor;
  Refusal refusal;
  {
    const ActivityScope executing(time_, Activity::execute);
    if (park_why != nullptr) {
      THALWEG_ASSIGN(refusal, park(*session_, shared_.stream_id, transaction, *park_why));
    } else {
      auto executed = executor.execute_rows(transaction);
      if (!executed && !is_about_data(executed.error().code)) return std::unexpected(executed.error());
      // A value that does not fit the destination's type is the data's fault, like what the server refuses.
      refusal = executed ? *executed : Refusal(StatementFailure{.error = executed.error()});
    }
  }
  if (!refusal) {
    THALWEG_ASSIGN(refusal, commit(range_of(transaction)));
  }
  if (!refusal) return refusal;
  if (session_->broken()) return std::unexpected(refusal->error);
  if (is_fenced(*refusal)) return std::unexpected(taken_over(shared_.stream_id));
  THALWEG_TRY(roll_back());
  count_deadlock(refusal->error);
  executor.reset();
  return refusal;
}

// Every group before this one has committed, so what fails here fails for good, but for other sessions' locks.
base::Result<void> Applier::execute_singly(Group& group) {
  GroupExecutor& executor = *lanes_.front().executor;
  ParkedSet parked;
  auto delay = kFirstRetryDelay;
  int tries = 0;
  while (group.done < group.transactions.size()) {
    Transaction& transaction = *group.transactions[group.done];
    state_.set("EXECUTE TRANSACTION");
    std::optional<base::Error> why = transaction.parked_with;
    if (!why && (transaction.park_behind || parked.shares(transaction.hashes()))) {
      why = base::fail(ErrorCode::parked_behind, "parked behind a transaction that changed the same rows").error();
    }
    THALWEG_ASSIGN(const Refusal refusal, execute_one(transaction, why ? &*why : nullptr));
    if (!refusal) {
      if (why) {
        transaction.parked_with = why;
        parked.add(transaction.hashes());
        executor.reset();
      } else {
        account(transaction);
        publish_counts(executor);
      }
      executor.reset();
      ++group.done;
      tries = 0;
      delay = kFirstRetryDelay;
      continue;
    }
    THALWEG_ASSIGN(const bool outdated, is_outdated(lanes_.front(), refusal->error));
    if (outdated && !shared_.ending()) {
      lanes_.front().tables.release();
      continue;
    }
    base::Error error = final_error(*refusal, transaction);
    if (error.code == ErrorCode::database_busy && ++tries < kTriesMax && !shared_.ending()) {
      const ActivityScope waiting(time_, Activity::lock);
      wake_.wait(delay);
      delay *= 2;
      continue;
    }
    if (why || !is_about_data(error.code) || shared_.parameters.disable_on_error.load(std::memory_order_relaxed)) {
      group.error = std::move(error);
      return {};
    }
    transaction.parked_with = std::move(error);  // comes round again, to be parked
  }
  return {};
}

void Applier::account(const Transaction& transaction) {
  lcrs_.add(transaction.lcrs);
  bytes_.add(transaction.bytes);
  transactions_.add();
  const int64_t micros = shared_.clock->unix_now().value - transaction.commit_time.value;
  latency_.record(std::chrono::microseconds(std::max<int64_t>(micros, 0)));
  latency_micros_.set(static_cast<uint64_t>(std::max<int64_t>(micros, 0)));
}

void Applier::publish_counts(GroupExecutor& executor) {
  const base::UnixMicros now = shared_.clock->unix_now();
  const std::lock_guard lock(tables_mutex_);
  for (const auto& [table, counts] : executor.take_counts()) {
    const telemetry::LastChange last{.at_source = counts.newest, .at_destination = now};
    auto& sum = tables_[table->quoted_name];
    sum.schema_name = table->source.schema_name;
    sum.table_name = table->source.table_name;
    sum.add({.schema_name = {},
             .table_name = {},
             .inserts = counts.inserts,
             .updates = counts.updates,
             .deletes = counts.deletes,
             .truncates = counts.truncates,
             .last_change = last});
  }
}

void Applier::add_tables(std::vector<telemetry::TableSample>& tables) const {
  const std::lock_guard lock(tables_mutex_);
  for (const auto& [name, table] : tables_) telemetry::add_table(tables, table);
}

telemetry::ComponentSample Applier::sample() const {
  return {.type = "APPLY",
          .name = "apply",
          .sub_component = "APPLY SERVER",
          .server = number_,
          .state = state_.get(),
          .time_ns = time_.sample(),
          .counters = {{"lcrs", lcrs_.get()},
                       {"transactions", transactions_.get()},
                       {"bytes", bytes_.get()},
                       {"groups", groups_.get()},
                       {"sets", sets_.get()},
                       {"data_layer_calls", data_layer_calls_.get()},
                       {"merged_updates", merged_updates_.get()},
                       {"fallbacks", fallbacks_.get()},
                       {"deadlocks", deadlocks_.get()}},
          .gauges = {{"latency_us", static_cast<int64_t>(latency_micros_.get())}}};
}

}  // namespace thalweg::apply
