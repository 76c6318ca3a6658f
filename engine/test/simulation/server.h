#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "simulation/network.h"
#include "simulation/relational.h"
#include "simulation/scheduler.h"

// A database server of the world, as far as libpq sees it: sessions that take requests and give results, both of which
// travel for a while. libpq.cc has the client's side.

namespace thalweg::simulation {

struct Parameter {
  Value bytes;
  bool operator==(const Parameter&) const = default;
};

// The result of a statement.
struct Outcome {
  std::vector<Row> rows;  // texts
  size_t columns = 0;
  uint64_t affected = 0;
  std::string sqlstate;  // of an error
  std::string message;
  bool ok() const { return sqlstate.empty(); }
};
Outcome error(const char* sqlstate, std::string message);
Outcome rows(std::vector<Row> rows);
Outcome affected(uint64_t count);

struct Request {
  enum class Kind : uint8_t { simple, extended, prepare, execute, sync, copy_data, copy_end };
  Kind kind;
  std::string name;  // of a prepared statement
  std::string sql;   // or the bytes of copy_data
  std::vector<Parameter> parameters;
  Time arrives = 0;
};

struct Response {
  enum class Kind : uint8_t { result, end_of_statement, copy_data };
  Kind kind = Kind::result;
  ExecStatusType status = PGRES_COMMAND_OK;
  Outcome outcome;
  std::string bytes;  // copy_data
  Time arrives = 0;
};

// One connection, between the two sides. Owner: both sides hold it.
struct Channel {
  std::string application_name;
  std::string session_mark;  // thalweg.session, as it came with the startup packet
  bool replication = false;
  int pid = 0;
  Process* client = nullptr;
  Time latency = 0;
  std::deque<Request> to_server;
  std::deque<Response> to_client;
  Time last_to_server = 0;  // arrival of the last one: nothing overtakes
  Time last_to_client = 0;
  bool client_lost = false;      // the client has no connection any more (it broke, or the server died)
  Time server_notices = kNever;  // when the server finds out that the client has gone
  std::string lost_message;
};

class Server;

// The server's side of a channel. Subclasses know the statements.
class Session {
 public:
  Session(Server& server, std::shared_ptr<Channel> channel);
  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  void run();
  const Channel& channel() const { return *channel_; }

 protected:
  virtual Outcome execute(const std::string& sql, const std::vector<Parameter>& parameters) = 0;
  // Ends the transaction. commit() may fail like a statement.
  virtual Outcome commit() = 0;
  virtual void roll_back() = 0;
  // How many changes the transaction has made, and back to so many of them. Its locks stay.
  virtual size_t changes_made() const { return 0; }
  virtual void roll_back_to(size_t) {}
  virtual void set(const std::string&) {}  // SET ...
  virtual Outcome copy_in(const std::string& sql, const std::string& bytes) = 0;
  // Takes the connection over after START_REPLICATION; returns when it is gone.
  virtual void replicate(const std::string& sql) = 0;

  Server& server() { return server_; }
  Scheduler& scheduler();
  bool gone() const;
  // The next request that has arrived, or waits for one until `deadline`; false: none, or the client has gone.
  bool next_request(Request& request, Time deadline);
  void respond(Response response);
  // The server ends the connection by itself.
  void hang_up(const char* why);
  size_t unread_responses() const { return channel_->to_client.size(); }

 private:
  void handle(Request& request);
  Outcome savepoint_statement(const std::string& sql);
  Outcome statement(const std::string& sql, const std::vector<Parameter>& parameters);
  void end_implicit(bool failed, Outcome& outcome);
  void respond_with(Outcome outcome, bool end);
  void respond_status(ExecStatusType status);
  void run_copy(const std::string& sql);

  Server& server_;
  const std::shared_ptr<Channel> channel_;
  std::map<std::string, std::string> prepared_;
  struct Savepoint {
    std::string name;
    size_t changes;  // made before
  };
  std::vector<Savepoint> savepoints_;
  bool in_block_ = false;
  bool block_failed_ = false;
  bool skipping_ = false;  // until the next sync
};

class Server {
 public:
  Server(Scheduler& scheduler, Network& network, std::string name);
  virtual ~Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  static Server* find(const std::string& conninfo);

  Scheduler& scheduler() { return scheduler_; }
  const std::string& name() const { return name_; }
  bool is_up() const { return process_ != nullptr; }
  void start();
  void crash();
  // Connections break; what was sent may arrive or not.
  void break_connections();
  // A process died: its connections are noticed some time later.
  void client_died(const Process& client);
  void connect(const std::shared_ptr<Channel>& channel);

 protected:
  virtual std::unique_ptr<Session> make_session(std::shared_ptr<Channel> channel) = 0;
  virtual void began() {}    // on a fiber of nobody's
  virtual void crashed() {}  // what was not flushed is lost
  Process& process() { return *process_; }

 private:
  friend class Session;
  void lose(Channel& channel, const char* why);

  Scheduler& scheduler_;
  Network& network_;
  const std::string name_;
  std::vector<std::unique_ptr<Process>> processes_;  // every life of it
  Process* process_ = nullptr;
  int next_pid_ = 1000;
  std::vector<std::weak_ptr<Channel>> channels_;
};

}  // namespace thalweg::simulation
