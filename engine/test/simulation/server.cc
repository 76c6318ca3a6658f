#include "simulation/server.h"

#include <algorithm>

namespace thalweg::simulation {

namespace {

std::vector<Server*>& servers() {
  static std::vector<Server*> all;
  return all;
}

constexpr Time kStatementMax = 100 * kMicrosecond;  // that a statement takes
constexpr uint32_t kSlowStatementOnceIn = 200;
constexpr Time kSlowStatementMax = 200 * kMillisecond;
constexpr Time kSoon = 50 * kMillisecond;
constexpr Time kNoticeMax = 3 * kSecond;  // how late a server misses a client that has died

}  // namespace

Outcome error(const char* sqlstate, std::string message) {
  Outcome outcome;
  outcome.sqlstate = sqlstate;
  outcome.message = std::move(message);
  return outcome;
}

Outcome rows(std::vector<Row> rows) {
  Outcome outcome;
  outcome.columns = rows.empty() ? 0 : rows.front().size();
  outcome.affected = rows.size();
  outcome.rows = std::move(rows);
  return outcome;
}

Outcome affected(uint64_t count) {
  Outcome outcome;
  outcome.affected = count;
  return outcome;
}

// --- Session

Session::Session(Server& server, std::shared_ptr<Channel> channel) : server_(server), channel_(std::move(channel)) {}

Scheduler& Session::scheduler() { return server_.scheduler(); }

bool Session::gone() const { return channel_->server_notices <= server_.scheduler().now(); }

bool Session::next_request(Request& request, Time deadline) {
  Scheduler& world = scheduler();
  auto& arriving = channel_->to_server;
  while (true) {
    if (!arriving.empty() && arriving.front().arrives <= world.now()) {
      request = std::move(arriving.front());
      arriving.pop_front();
      return true;
    }
    // That the client has gone is read behind all that it sent.
    if ((arriving.empty() && gone()) || world.now() >= deadline) return false;
    world.wait(channel_.get(),
               std::min(deadline, arriving.empty() ? channel_->server_notices : arriving.front().arrives));
  }
}

void Session::respond(Response response) {
  const auto jitter = static_cast<Time>(scheduler().random(static_cast<uint64_t>(channel_->latency)));
  if (channel_->client_lost) return;  // nothing arrives any more: else there would be a gap before it
  channel_->last_to_client = std::max(channel_->last_to_client, scheduler().now() + channel_->latency + jitter);
  response.arrives = channel_->last_to_client;
  channel_->to_client.push_back(std::move(response));
  Network::current()->changed();
}

void Session::respond_with(Outcome outcome, bool end) {
  Response response;
  response.status = !outcome.ok() ? PGRES_FATAL_ERROR : outcome.columns > 0 ? PGRES_TUPLES_OK : PGRES_COMMAND_OK;
  response.outcome = std::move(outcome);
  respond(std::move(response));
  Response terminator;
  terminator.kind = Response::Kind::end_of_statement;
  if (end) respond(terminator);
}

void Session::respond_status(ExecStatusType status) {
  Response response;
  response.status = status;
  respond(std::move(response));
}

void Session::hang_up(const char* why) {
  server_.lose(*channel_, why);
  Network::current()->changed();
}

void Session::run() {
  Request request;
  while (next_request(request, kNever)) {
    handle(request);
    request = {};
  }
  roll_back();
}

Outcome Session::statement(const std::string& sql, const std::vector<Parameter>& parameters) {
  Scheduler& world = scheduler();
  world.sleep_until(world.now() + static_cast<Time>(world.random(static_cast<uint64_t>(
                                      world.chance(kSlowStatementOnceIn) ? kSlowStatementMax : kStatementMax))));
  if (sql == "BEGIN") {
    in_block_ = true;
    return {};
  }
  if (sql.contains("SAVEPOINT ")) return savepoint_statement(sql);
  if (sql == "COMMIT") {
    savepoints_.clear();
    Outcome outcome;
    if (block_failed_) {
      roll_back();
    } else {
      outcome = commit();
    }
    in_block_ = block_failed_ = false;
    return outcome;
  }
  if (sql == "ROLLBACK") {
    savepoints_.clear();
    roll_back();
    in_block_ = block_failed_ = false;
    return {};
  }
  if (sql.starts_with("SET ")) {
    set(sql);
    return {};
  }
  if (sql.starts_with("DEALLOCATE ")) {
    prepared_.erase(sql.substr(11));
    return {};
  }
  if (sql.contains("'thalweg.session'")) {
    return rows({{channel_->session_mark, std::to_string(channel_->pid)}});
  }
  if (block_failed_) return error("25P02", "current transaction is aborted");
  Outcome outcome = execute(sql, parameters);
  if (!outcome.ok() && in_block_) block_failed_ = true;
  return outcome;
}

// SAVEPOINT a; ROLLBACK TO SAVEPOINT a; RELEASE SAVEPOINT a: one of them, or several in a row.
Outcome Session::savepoint_statement(const std::string& sql) {
  constexpr std::string_view kNext = "; ";
  if (const size_t end = sql.find(kNext); end != std::string::npos) {
    Outcome first = savepoint_statement(sql.substr(0, end));
    return first.ok() ? savepoint_statement(sql.substr(end + kNext.size())) : first;
  }
  const std::string name = sql.substr(sql.rfind(' ') + 1);
  const bool goes_back = sql.starts_with("ROLLBACK TO ");
  if (!in_block_) return error("25P01", "savepoints are for transaction blocks");
  if (block_failed_ && !goes_back) return error("25P02", "current transaction is aborted");
  if (sql.starts_with("SAVEPOINT ")) {
    savepoints_.push_back({.name = name, .changes = changes_made()});
    return {};
  }
  while (!savepoints_.empty() && savepoints_.back().name != name) savepoints_.pop_back();
  if (savepoints_.empty()) {
    block_failed_ = true;
    return error("3B001", "no savepoint " + name);
  }
  if (goes_back) {
    roll_back_to(savepoints_.back().changes);
    block_failed_ = false;
  } else {
    savepoints_.pop_back();
  }
  return {};
}

void Session::end_implicit(bool failed, Outcome& outcome) {
  if (in_block_) return;
  if (failed) {
    roll_back();
  } else if (Outcome committed = commit(); !committed.ok()) {
    outcome = std::move(committed);
  }
}

void Session::handle(Request& request) {
  switch (request.kind) {
    case Request::Kind::simple:
      if (request.sql.starts_with("START_REPLICATION")) return replicate(request.sql);
      if (request.sql.starts_with("COPY ")) return run_copy(request.sql);
      [[fallthrough]];
    case Request::Kind::extended: {
      Outcome outcome = statement(request.sql, request.parameters);
      end_implicit(!outcome.ok(), outcome);
      return respond_with(std::move(outcome), true);
    }
    case Request::Kind::prepare:
      if (skipping_) {
        respond_status(PGRES_PIPELINE_ABORTED);
      } else {
        prepared_[request.name] = request.sql;
        respond_status(PGRES_COMMAND_OK);
      }
      return respond({.kind = Response::Kind::end_of_statement, .outcome = {}, .bytes = {}});
    case Request::Kind::execute: {
      if (skipping_) {
        respond_status(PGRES_PIPELINE_ABORTED);
        return respond({.kind = Response::Kind::end_of_statement, .outcome = {}, .bytes = {}});
      }
      Outcome outcome = statement(request.name.empty() ? request.sql : prepared_[request.name], request.parameters);
      skipping_ = !outcome.ok();
      return respond_with(std::move(outcome), true);
    }
    case Request::Kind::sync: {
      Outcome outcome;
      end_implicit(skipping_, outcome);
      skipping_ = false;
      return respond_status(PGRES_PIPELINE_SYNC);
    }
    case Request::Kind::copy_data:
    case Request::Kind::copy_end:
      return;  // of a COPY that failed at once
  }
}

void Session::run_copy(const std::string& sql) {
  respond_status(PGRES_COPY_IN);
  std::string bytes;
  Request request;
  while (next_request(request, kNever)) {
    if (request.kind == Request::Kind::copy_data) bytes += request.sql;
    if (request.kind != Request::Kind::copy_end) continue;
    Outcome outcome = block_failed_ ? error("25P02", "current transaction is aborted") : copy_in(sql, bytes);
    if (!outcome.ok() && in_block_) block_failed_ = true;
    end_implicit(!outcome.ok(), outcome);
    return respond_with(std::move(outcome), true);
  }
}

// --- Server

Server::Server(Scheduler& scheduler, Network& network, std::string name)
    : scheduler_(scheduler), network_(network), name_(std::move(name)) {
  servers().push_back(this);
}

Server* Server::find(const std::string& conninfo) {
  for (Server* const server : servers()) {
    if (conninfo.find(server->name()) != std::string::npos) return server;
  }
  return nullptr;
}

void Server::start() {
  processes_.push_back(std::make_unique<Process>(Process{.name = name_}));
  process_ = processes_.back().get();
  began();
}

void Server::lose(Channel& channel, const char* why) {
  channel.client_lost = true;
  channel.lost_message = why;
  // Answers that are under way may still arrive, or not: a commit whose answer is lost.
  if (scheduler_.chance(2)) channel.to_client.clear();
}

void Server::crash() {
  if (process_ == nullptr) return;
  scheduler_.kill(*process_);
  process_ = nullptr;
  for (const auto& weak : channels_) {
    if (const auto channel = weak.lock()) lose(*channel, "server closed the connection unexpectedly");
  }
  channels_.clear();
  crashed();
  network_.changed();
}

void Server::break_connections() {
  for (const auto& weak : channels_) {
    const auto channel = weak.lock();
    if (!channel || channel->client_lost || !scheduler_.chance(2)) continue;
    lose(*channel, "connection reset by peer");
    if (scheduler_.chance(2)) channel->to_server.clear();
    channel->server_notices =
        scheduler_.now() + static_cast<Time>(scheduler_.random(static_cast<uint64_t>(kNoticeMax)));
    scheduler_.wake(channel.get());
  }
  network_.changed();
}

void Server::client_died(const Process& client) {
  const Time most = scheduler_.chance(2) ? kSoon : kNoticeMax;  // a kernel that lives on closes its connections
  for (const auto& weak : channels_) {
    const auto channel = weak.lock();
    if (!channel || channel->client != &client) continue;
    // Bytes that the network had taken arrive, unless the client's whole machine went.
    auto& arriving = channel->to_server;
    if (scheduler_.chance(2)) arriving.resize(scheduler_.random(arriving.size() + 1));
    channel->server_notices = std::min(
        channel->server_notices, scheduler_.now() + static_cast<Time>(scheduler_.random(static_cast<uint64_t>(most))));
    scheduler_.wake(channel.get());
  }
}

void Server::connect(const std::shared_ptr<Channel>& channel) {
  std::erase_if(channels_, [](const auto& weak) { return weak.expired(); });
  channel->pid = ++next_pid_;
  channels_.push_back(channel);
  scheduler_.spawn(*process_, [this, channel] {
    const auto session = make_session(channel);
    session->run();
  });
}

}  // namespace thalweg::simulation
