#include "daemon/wait_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <condition_variable>

namespace thalweg::daemon {
namespace {

constexpr std::chrono::seconds kLook{1};
constexpr std::chrono::seconds kLong{3};  // shorter waits are everyday
constexpr std::chrono::seconds kAnswer{5};
constexpr std::chrono::steady_clock::duration kLookLast = std::chrono::seconds(30);  // of what waits for nobody

control::WaitStatus status_of(const pg::SessionBoard::Session& session, const std::vector<pg::Blocker>& blockers,
                              base::UnixMicros now) {
  control::WaitStatus status;
  status.statement = session.sql;
  const auto waited = std::chrono::steady_clock::now() - session.since;
  status.since = {now.value - std::chrono::duration_cast<std::chrono::microseconds>(waited).count()};
  for (const pg::Blocker& blocker : blockers) {
    status.blockers.push_back({.pid = blocker.pid,
                               .user = blocker.user,
                               .application_name = blocker.application_name,
                               .state = blocker.state,
                               .since = blocker.since});
  }
  return status;
}

bool is_same(const pg::SessionBoard::Session& left, const pg::SessionBoard::Session& right) {
  return left.id == right.id && left.since == right.since;
}

}  // namespace

WaitWatch::WaitWatch(const pg::SessionBoard& board, const base::Clock& clock)
    : board_(board), clock_(clock), thread_([this](const std::stop_token& stop) { run(stop); }) {}

// The thread is asked to stop, and joined; it may wait for a database.
WaitWatch::~WaitWatch() { abandon_ = true; }

void WaitWatch::run(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any pause;
  while (!stop.stop_requested()) {
    look();
    std::unique_lock lock(mutex);
    pause.wait_for(lock, stop, kLook, [] { return false; });
  }
}

void WaitWatch::look() {
  std::vector<Statement> now;
  for (pg::SessionBoard::Session& session : board_.busy(kLong)) {
    const auto is_of_session = [&](const Statement& statement) { return is_same(statement.session, session); };
    const auto known = std::ranges::find_if(statements_, is_of_session);
    if (known == statements_.end()) {
      now.push_back({.session = std::move(session), .blockers = {}, .next_look = {}});
    } else {
      now.push_back(std::move(*known));
    }
  }
  statements_ = std::move(now);
  std::vector<Wait> found;
  for (Statement& statement : statements_) {
    if (statement.next_look <= std::chrono::steady_clock::now()) ask(statement);
    if (statement.blockers.empty()) continue;
    found.push_back({statement.session, status_of(statement.session, statement.blockers, clock_.unix_now())});
  }
  std::lock_guard lock(mutex_);
  found_ = std::move(found);
}

// Most long statements work and wait for nobody: a copy, an index. The longer, the less often they are looked at.
void WaitWatch::ask(Statement& statement) const {
  auto blockers = pg::SessionBoard::blockers(
      statement.session,
      {.application_name = "thalweg waits", .connect_timeout = kAnswer, .abandon = &abandon_, .lifetime = kAnswer});
  if (!blockers) {
    spdlog::debug("what \"{}\" waits for is not known: {}", statement.session.sql, blockers.error().message);
  }
  statement.blockers = blockers ? *std::move(blockers) : std::vector<pg::Blocker>{};
  const auto now = std::chrono::steady_clock::now();
  const bool waits = !statement.blockers.empty();
  statement.next_look = now + (waits ? std::chrono::steady_clock::duration(kLook)
                                     : std::min((now - statement.session.since) / 5, kLookLast));
}

std::vector<control::WaitStatus> WaitWatch::waits(const control::StreamDefinition& definition) const {
  std::vector<control::WaitStatus> out;
  const auto add = [&](const Wait& wait, std::string_view side, const control::DatabaseRef& database,
                       const std::string& destination) {
    // Sessions at a standby source lead to one server or the other, the definition to none of them yet.
    if (wait.session.conninfo.text != database.conninfo.text) return;
    control::WaitStatus& status = out.emplace_back(wait.status);
    status.side = side;
    status.database = database.name;
    status.destination = destination;
  };
  const auto busy = board_.busy({});
  std::lock_guard lock(mutex_);
  for (const Wait& wait : found_) {
    const bool is_over =
        std::ranges::none_of(busy, [&](const auto& session) { return is_same(session, wait.session); });
    if (is_over) continue;
    add(wait, "source", definition.source, "");
    for (const control::DestinationDefinition& destination : definition.destinations) {
      if (!destination.send_to)
        add(wait, "destination", {.name = destination.name, .conninfo = destination.conninfo}, destination.id);
    }
  }
  return out;
}

}  // namespace thalweg::daemon
