#include "pg/session_board.h"

#include <fmt/format.h>

#include <algorithm>

namespace thalweg::pg {
namespace {

constexpr size_t kShownMax = 400;  // bytes of a statement
constexpr std::chrono::milliseconds kEndPatience{3000};
constexpr std::chrono::seconds kEndConnect{3};

// On one line, cut between two characters. A copy's without its condition: that holds keys of rows, and whoever may see
// the stream sees this.
std::string beginning_of(std::string_view sql) {
  std::string out;
  if (sql.starts_with("COPY (")) sql = sql.substr(0, sql.find(" WHERE "));
  for (const char c : sql) {
    const bool is_space = c == '\n' || c == '\t' || c == ' ';
    if (is_space && (out.empty() || out.back() == ' ')) continue;
    const bool begins_character = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (out.size() >= kShownMax && begins_character) return out + "...";
    out += is_space ? ' ' : c;
  }
  return out;
}

}  // namespace

std::vector<SessionBoard::Session> SessionBoard::busy(std::chrono::milliseconds longer_than) const {
  const auto now = std::chrono::steady_clock::now();
  std::lock_guard lock(mutex_);
  std::vector<Session> out;
  std::ranges::copy_if(open_, std::back_inserter(out), [&](const Session& session) {
    return !session.sql.empty() && now - session.since > longer_than;
  });
  return out;
}

base::Result<std::vector<Blocker>> SessionBoard::blockers(const Session& session, ConnectOptions options) {
  options.server = session.server;
  THALWEG_ASSIGN(Connection connection, Connection::open(session.conninfo, options));
  THALWEG_ASSIGN(const Rows rows,
                 connection.query("SELECT DISTINCT b.pid, coalesce(a.usename::text, ''), coalesce(a.application_name, "
                                  "''), coalesce(a.state, ''), (extract(epoch FROM a.xact_start) * 1000000)::bigint "
                                  "FROM unnest(pg_blocking_pids($1::integer)) b (pid) LEFT JOIN pg_stat_activity a ON "
                                  "a.pid = b.pid ORDER BY 1",
                                  {std::to_string(session.pid)}));
  std::vector<Blocker> out;
  for (size_t row = 0; row < rows.size(); ++row) {
    Blocker& blocker = out.emplace_back();
    blocker.pid = static_cast<int>(rows.integer(row, 0));
    blocker.user = rows.text(row, 1);
    blocker.application_name = rows.text(row, 2);
    blocker.state = rows.text(row, 3);
    if (!rows.is_null(row, 4)) blocker.since = base::UnixMicros{rows.integer(row, 4)};
  }
  return out;
}

base::Result<void> SessionBoard::end_given_up(const base::Conninfo& conninfo) {
  const std::lock_guard one_at_a_time(ending_);
  std::vector<Session> left;
  {
    std::lock_guard lock(mutex_);
    std::ranges::copy_if(given_up_, std::back_inserter(left),
                         [&](const Session& session) { return session.conninfo.text == conninfo.text; });
  }
  for (const Session& session : left) {
    if (auto ended = terminate(session); !ended) {
      if (ended.error().code == base::ErrorCode::database_unreachable && leads_elsewhere(session)) continue;
      return ended;
    }
    std::lock_guard lock(mutex_);
    std::erase_if(given_up_, [&](const Session& given_up) { return given_up.id == session.id; });
  }
  return {};
}

// Whether another one of several servers answers now: what the dead one did, it did not do there.
bool SessionBoard::leads_elsewhere(const Session& session) {
  SessionBoard board;
  const auto now =
      Connection::open(session.conninfo,
                       {.application_name = session.application_name, .connect_timeout = kEndConnect, .board = &board});
  return now && board.open_.front().server != session.server;
}

// The process number may be another session's by now: that one does not bear our name.
base::Result<void> SessionBoard::terminate(const Session& session) {
  ConnectOptions options;
  options.application_name = session.application_name;
  options.connect_timeout = kEndConnect;
  options.lifetime = kEndConnect + 2 * kEndPatience;
  options.server = session.server;
  THALWEG_ASSIGN(Connection connection, Connection::open(session.conninfo, options));
  THALWEG_ASSIGN(
      const Rows left,
      connection.query("WITH own AS MATERIALIZED (SELECT pid FROM pg_stat_activity WHERE pid = $1::integer "
                       "AND application_name = left($2, 63) AND usename = current_user) SELECT pid FROM own "
                       "WHERE NOT pg_terminate_backend(pid, $3::bigint)",
                       {std::to_string(session.pid), session.application_name, std::to_string(kEndPatience.count())}));
  if (left.size() == 0) return {};
  return base::fail(base::ErrorCode::database_busy,
                    fmt::format("Server process {} has not ended within {} s. It executes: {}", session.pid,
                                kEndPatience / std::chrono::seconds(1), session.sql),
                    session.conninfo.side);
}

// --- Connection's

SessionBoard::Place SessionBoard::enter(Session session) {
  std::lock_guard lock(mutex_);
  session.id = ++last_id_;
  return open_.insert(open_.end(), std::move(session));
}

void SessionBoard::begin(Place place, std::string_view sql) {
  std::string shown = beginning_of(sql);
  std::lock_guard lock(mutex_);
  place->sql = std::move(shown);
  place->since = std::chrono::steady_clock::now();
}

void SessionBoard::end(Place place) {
  std::lock_guard lock(mutex_);
  place->sql.clear();
}

void SessionBoard::leave(Place place, bool given_up) {
  std::lock_guard lock(mutex_);
  if (given_up) {
    given_up_.splice(given_up_.end(), open_, place);
  } else {
    open_.erase(place);
  }
}

}  // namespace thalweg::pg
