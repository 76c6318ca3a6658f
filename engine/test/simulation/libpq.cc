// libpq for the world: the client's side of a Channel, behind the functions of libpq-fe.h that engine/src/pg calls. The
// code above it, in pg/, is the engine's own.

#include <libpq-fe.h>
#include <poll.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "simulation/libpq_wait.h"
#include "simulation/server.h"

using thalweg::simulation::Channel;
using thalweg::simulation::Network;
using thalweg::simulation::Outcome;
using thalweg::simulation::Parameter;
using thalweg::simulation::Request;
using thalweg::simulation::Response;
using thalweg::simulation::Scheduler;
using thalweg::simulation::Server;
using thalweg::simulation::Time;

struct pg_result {
  ExecStatusType status = PGRES_COMMAND_OK;
  Outcome outcome;
  std::string count;
};

struct pg_conn {
  Server* server = nullptr;
  std::shared_ptr<Channel> channel;
  int descriptor = -1;
  Time connected_at = 0;
  bool connected = false;
  bool bad = false;
  std::string message;
  std::deque<Request> unflushed;
  std::deque<Response> received;
  size_t outstanding = 0;  // statements and syncs without an answer
  bool in_pipeline = false;
  bool told_of_loss = false;  // the result that says that the connection is lost was handed out
};

namespace {

Scheduler& world() { return *Scheduler::current(); }

void queue(PGconn* conn, Request request) {
  if (request.kind != Request::Kind::copy_data && request.kind != Request::Kind::copy_end) ++conn->outstanding;
  conn->unflushed.push_back(std::move(request));
}

std::vector<Parameter> parameters_of(int count, const char* const* values, const int* lengths, const int* formats) {
  std::vector<Parameter> parameters(static_cast<size_t>(count));
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (values[i] == nullptr) continue;
    parameters[i].bytes = formats[i] == 1 ? std::string(values[i], static_cast<size_t>(lengths[i])) : values[i];
  }
  return parameters;
}

std::string session_mark_in(std::string_view options) {
  constexpr std::string_view kSetting = "thalweg.session=";
  const size_t at = options.find(kSetting);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = options.substr(at + kSetting.size());
  return std::string{rest.substr(0, rest.find(' '))};
}

bool is_lost(const PGconn* conn) { return conn->connected && conn->channel->client_lost; }

// Answers that have arrived become the client's.
void receive(PGconn* conn) {
  auto& arriving = conn->channel->to_client;
  while (!arriving.empty() && arriving.front().arrives <= world().now()) {
    conn->received.push_back(std::move(arriving.front()));
    arriving.pop_front();
  }
}

void make_bad(PGconn* conn) {
  conn->bad = true;
  conn->message = conn->channel->lost_message;
}

}  // namespace

namespace thalweg::simulation {

short database_events(const void* connection, short wanted, Time& changes) {
  const auto& conn = *static_cast<const PGconn*>(connection);
  const Time now = world().now();
  if (!conn.connected) {
    if (conn.connected_at <= now) return static_cast<short>(wanted & (POLLIN | POLLOUT));
    changes = std::min(changes, conn.connected_at);
    return 0;
  }
  short events = static_cast<short>(wanted & POLLOUT);
  const auto& arriving = conn.channel->to_client;
  if (!arriving.empty()) {
    if (arriving.front().arrives <= now) {
      events = static_cast<short>(events | (wanted & POLLIN));
    } else {
      changes = std::min(changes, arriving.front().arrives);
    }
  } else if (conn.channel->client_lost) {
    events = static_cast<short>(events | POLLIN | POLLHUP);
  }
  return events;
}

}  // namespace thalweg::simulation

extern "C" {

PGconn* PQconnectStartParams(const char* const* keywords, const char* const* values, int) {
  auto* const conn = new PGconn;
  conn->channel = std::make_shared<Channel>();
  for (size_t i = 0; keywords[i] != nullptr; ++i) {
    const std::string keyword = keywords[i];
    if (keyword == "host") conn->server = Server::find(values[i]);
    if (keyword == "application_name") conn->channel->application_name = values[i];
    if (keyword == "replication") conn->channel->replication = true;
    if (keyword == "options") conn->channel->session_mark = session_mark_in(values[i]);
  }
  conn->channel->client = &world().process();
  conn->channel->latency = static_cast<Time>(1'000 + world().random(world().chance(4) ? 2'000'000 : 100'000));
  conn->connected_at = world().now() + 3 * conn->channel->latency;
  conn->descriptor = Network::current()->open(Network::Kind::database);
  Network::current()->find(conn->descriptor)->connection = conn;
  return conn;
}

PostgresPollingStatusType PQconnectPoll(PGconn* conn) {
  if (world().now() < conn->connected_at) return PGRES_POLLING_READING;
  if (conn->server == nullptr || !conn->server->is_up()) {
    conn->bad = true;
    conn->message = "connection refused";
    return PGRES_POLLING_FAILED;
  }
  conn->server->connect(conn->channel);
  conn->connected = true;
  return PGRES_POLLING_OK;
}

void PQfinish(PGconn* conn) {
  if (conn->connected && !conn->channel->client_lost) {
    conn->channel->server_notices = world().now() + conn->channel->latency;
    world().wake(conn->channel.get());
  }
  Network::current()->close(conn->descriptor);
  delete conn;
}

int PQsocket(const PGconn* conn) { return conn->bad ? -1 : conn->descriptor; }
ConnStatusType PQstatus(const PGconn* conn) {
  return conn->bad ? CONNECTION_BAD : conn->connected ? CONNECTION_OK : CONNECTION_STARTED;
}
char* PQerrorMessage(const PGconn* conn) { return const_cast<char*>(conn->message.c_str()); }
int PQconnectionNeedsPassword(const PGconn*) { return 0; }
char* PQhost(const PGconn* conn) { return const_cast<char*>(conn->server->name().c_str()); }
char* PQport(const PGconn*) { return const_cast<char*>("5432"); }
int PQserverVersion(const PGconn*) { return 150'000; }
int PQbackendPID(const PGconn* conn) { return conn->channel->pid; }
// The world's databases are named by "host=NAME" and nothing else.
PQconninfoOption* PQconninfoParse(const char* conninfo, char**) {
  auto* const options = static_cast<PQconninfoOption*>(std::calloc(2, sizeof(PQconninfoOption)));
  options->keyword = const_cast<char*>("host");
  options->val = strdup(std::strchr(conninfo, '=') + 1);
  return options;
}
void PQconninfoFree(PQconninfoOption* options) {
  std::free(options->val);
  std::free(options);
}
PQnoticeReceiver PQsetNoticeReceiver(PGconn*, PQnoticeReceiver, void*) { return nullptr; }
PGVerbosity PQsetErrorVerbosity(PGconn*, PGVerbosity) { return PQERRORS_DEFAULT; }
int PQsetnonblocking(PGconn*, int) { return 0; }
PGcancel* PQgetCancel(PGconn*) { return nullptr; }
int PQcancel(PGcancel*, char*, int) { return 0; }
void PQfreeCancel(PGcancel*) {}
PGnotify* PQnotifies(PGconn*) { return nullptr; }
void PQfreemem(void* memory) { std::free(memory); }

int PQsendQuery(PGconn* conn, const char* sql) {
  if (conn->bad) return 0;
  queue(conn, {.kind = Request::Kind::simple, .name = {}, .sql = sql, .parameters = {}});
  return 1;
}

int PQsendQueryParams(PGconn* conn, const char* sql, int count, const Oid*, const char* const* values,
                      const int* lengths, const int* formats, int) {
  if (conn->bad) return 0;
  queue(conn, {.kind = conn->in_pipeline ? Request::Kind::execute : Request::Kind::extended,
               .name = {},
               .sql = sql,
               .parameters = parameters_of(count, values, lengths, formats)});
  return 1;
}

int PQsendPrepare(PGconn* conn, const char* name, const char* sql, int, const Oid*) {
  if (conn->bad) return 0;
  queue(conn, {.kind = Request::Kind::prepare, .name = name, .sql = sql, .parameters = {}});
  return 1;
}

int PQsendQueryPrepared(PGconn* conn, const char* name, int count, const char* const* values, const int* lengths,
                        const int* formats, int) {
  if (conn->bad) return 0;
  queue(conn, {.kind = Request::Kind::execute,
               .name = name,
               .sql = {},
               .parameters = parameters_of(count, values, lengths, formats)});
  return 1;
}

int PQpipelineSync(PGconn* conn) {
  if (conn->bad) return 0;
  queue(conn, {.kind = Request::Kind::sync, .name = {}, .sql = {}, .parameters = {}});
  return 1;
}

int PQenterPipelineMode(PGconn* conn) {
  conn->in_pipeline = true;
  return conn->bad ? 0 : 1;
}
int PQexitPipelineMode(PGconn* conn) {
  conn->in_pipeline = false;
  return 1;
}
PGpipelineStatus PQpipelineStatus(const PGconn* conn) { return conn->in_pipeline ? PQ_PIPELINE_ON : PQ_PIPELINE_OFF; }
PGTransactionStatusType PQtransactionStatus(const PGconn* conn) {
  return conn->outstanding > 0 ? PQTRANS_ACTIVE : PQTRANS_IDLE;
}

int PQflush(PGconn* conn) {
  if (is_lost(conn)) {
    conn->unflushed.clear();
    return 0;  // what it cannot send any more is noticed by reading
  }
  Channel& channel = *conn->channel;
  for (Request& request : conn->unflushed) {
    const auto jitter = static_cast<Time>(world().random(static_cast<uint64_t>(channel.latency)));
    channel.last_to_server = std::max(channel.last_to_server, world().now() + channel.latency + jitter);
    request.arrives = channel.last_to_server;
    channel.to_server.push_back(std::move(request));
  }
  if (!conn->unflushed.empty()) world().wake(&channel);
  conn->unflushed.clear();
  return 0;
}

int PQconsumeInput(PGconn* conn) {
  if (conn->bad) return 0;
  receive(conn);
  if (is_lost(conn) && conn->received.empty() && conn->channel->to_client.empty()) {
    make_bad(conn);
    return 0;
  }
  return 1;
}

int PQisBusy(PGconn* conn) { return conn->received.empty() && conn->outstanding > 0 && !conn->bad ? 1 : 0; }

PGresult* PQgetResult(PGconn* conn) {
  if (conn->received.empty()) {
    if (!conn->bad || conn->told_of_loss || conn->outstanding == 0) return nullptr;
    conn->told_of_loss = true;
    conn->outstanding = 0;
    auto* const lost = new PGresult;
    lost->status = PGRES_FATAL_ERROR;
    lost->outcome.message = conn->message;
    return lost;
  }
  Response response = std::move(conn->received.front());
  conn->received.pop_front();
  if (response.kind == Response::Kind::end_of_statement) {
    --conn->outstanding;
    return nullptr;
  }
  if (response.status == PGRES_PIPELINE_SYNC) --conn->outstanding;
  auto* const result = new PGresult;
  result->status = response.status;
  result->outcome = std::move(response.outcome);
  result->count = std::to_string(result->outcome.affected);
  return result;
}

void PQclear(PGresult* result) { delete result; }
ExecStatusType PQresultStatus(const PGresult* result) { return result == nullptr ? PGRES_FATAL_ERROR : result->status; }
int PQntuples(const PGresult* result) { return static_cast<int>(result->outcome.rows.size()); }
int PQnfields(const PGresult* result) { return static_cast<int>(result->outcome.columns); }
int PQgetisnull(const PGresult* result, int row, int column) {
  return result->outcome.rows.at(static_cast<size_t>(row)).at(static_cast<size_t>(column)) ? 0 : 1;
}
char* PQgetvalue(const PGresult* result, int row, int column) {
  const auto& value = result->outcome.rows.at(static_cast<size_t>(row)).at(static_cast<size_t>(column));
  return const_cast<char*>(value ? value->c_str() : "");
}
int PQgetlength(const PGresult* result, int row, int column) {
  const auto& value = result->outcome.rows.at(static_cast<size_t>(row)).at(static_cast<size_t>(column));
  return value ? static_cast<int>(value->size()) : 0;
}
char* PQcmdTuples(PGresult* result) { return result->count.data(); }
char* PQresultErrorField(const PGresult* result, int code) {
  const Outcome& outcome = result->outcome;
  if (code == PG_DIAG_SQLSTATE && !outcome.sqlstate.empty()) return const_cast<char*>(outcome.sqlstate.c_str());
  if (code == PG_DIAG_MESSAGE_PRIMARY) return const_cast<char*>(outcome.message.c_str());
  return nullptr;
}
char* PQresultErrorMessage(const PGresult* result) { return const_cast<char*>(result->outcome.message.c_str()); }

int PQputCopyData(PGconn* conn, const char* bytes, int size) {
  if (conn->bad || is_lost(conn)) return -1;
  queue(conn, {.kind = Request::Kind::copy_data,
               .name = {},
               .sql = std::string(bytes, static_cast<size_t>(size)),
               .parameters = {}});
  return 1;
}

int PQputCopyEnd(PGconn* conn, const char*) {
  if (conn->bad || is_lost(conn)) return -1;
  queue(conn, {.kind = Request::Kind::copy_end, .name = {}, .sql = {}, .parameters = {}});
  return 1;
}

int PQgetCopyData(PGconn* conn, char** buffer, int) {
  if (conn->received.empty()) return conn->bad ? -1 : 0;
  if (conn->received.front().kind != Response::Kind::copy_data) return -1;
  const std::string bytes = std::move(conn->received.front().bytes);
  conn->received.pop_front();
  if (conn->channel->to_client.size() < 8) world().wake(conn->channel.get());  // the server may wait for room
  *buffer = static_cast<char*>(std::malloc(bytes.size() + 1));
  std::memcpy(*buffer, bytes.data(), bytes.size());
  return static_cast<int>(bytes.size());
}

char* PQescapeLiteral(PGconn*, const char* text, size_t size) {
  const std::string quoted = "'" + std::string(text, size) + "'";
  auto* const copy = static_cast<char*>(std::malloc(quoted.size() + 1));
  std::memcpy(copy, quoted.c_str(), quoted.size() + 1);
  return copy;
}

}  // extern "C"
