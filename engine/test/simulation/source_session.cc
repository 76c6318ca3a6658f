#include "simulation/source_session.h"

#include <cstdio>

#include <fmt/format.h>

#include "simulation/system_clock.h"
#include "simulation/verdict.h"

namespace thalweg::simulation {

namespace {

constexpr Time kSenderTimeout = 10 * kSecond;  // wal_sender_timeout
constexpr size_t kUnreadMax = 64;              // messages that a socket holds
constexpr Time kLook = 50 * kMillisecond;

std::string u64(uint64_t value) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[static_cast<size_t>(7 - i)] = static_cast<char>(value >> (8 * i));
  return bytes;
}

uint64_t load_u64(const std::string& bytes, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

std::string now_text() { return u64(static_cast<uint64_t>(wall_now_micros() - base::kPostgresEpochMicros)); }
std::string lsn_text(uint64_t lsn) { return base::to_string(base::Lsn{lsn}); }

}  // namespace

SourceSession::~SourceSession() {
  if (holds_slot_) source_.active_pid_ = 0;
}

Outcome SourceSession::copy_in(const std::string& sql, const std::string&) {
  fail("the source was asked to {}", sql);
  return error("42601", "unknown statement");
}

Outcome SourceSession::execute(const std::string& sql, const std::vector<Parameter>& parameters) {
  const auto is = [&](const char* beginning) { return sql.starts_with(beginning); };
  if (is("IDENTIFY_SYSTEM")) return rows({{"7000", "1", lsn_text(source_.wal_end_), "postgres"}});
  if (is("SELECT pg_is_in_recovery()")) return rows({{"f"}});
  if (is("SHOW wal_sender_timeout")) return rows({{"10s"}});
  if (is("SHOW wal_level")) return rows({{"logical"}});
  if (is("SELECT s.plugin, s.database, s.wal_status")) {
    const bool active = source_.active_pid_ != 0;
    return rows({{source_.options_.batch_bytes > 0 ? "thalweg_output" : "pgoutput", "postgres", "reserved",
                  lsn_text(Source::kBegin), lsn_text(source_.confirmed_),
                  active ? Value(std::to_string(source_.active_pid_)) : Value(),
                  active ? Value(source_.holder_) : Value(), Value(), "f"}});
  }
  if (is("WITH RECURSIVE part(")) return rows({{"f", "f"}});
  if (is("SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_logical_emit_message(true, ")) {
    return rows({{lsn_text(source_.emit_message(*parameters[0].bytes, *parameters[1].bytes))}});
  }
  if (is("SELECT CASE WHEN pg_is_in_recovery()")) return rows({{lsn_text(source_.wal_end_)}});
  if (const auto looked = catalogue_statement(sql, parameters)) return *looked;
  if (const auto described = table_statement(sql, parameters)) return *described;
  fail("the model of the source does not know this statement: {}", sql);
  return error("42601", "unknown statement");
}

// Questions of a capture with transformations about columns, and about the transaction that changed the rows:
// engine/src/capture/catalogue_look.cc.
std::optional<Outcome> SourceSession::catalogue_statement(const std::string& sql,
                                                          const std::vector<Parameter>& parameters) {
  const auto is = [&](const char* beginning) { return sql.starts_with(beginning); };
  const auto attributes_of = [](const std::string& oid, const Row& behind) {
    std::vector<Row> found;
    for (const TableShape& shape : shapes()) {
      for (size_t i = 0; i < shape.columns.size() && std::to_string(shape.oid) == oid; ++i) {
        found.push_back({std::to_string(i + 1), shape.columns[i].name, "f", "f"});
        found.back().insert(found.back().end(), behind.begin(), behind.end());
      }
    }
    return rows(std::move(found));
  };
  if (is("SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn()")) {
    return rows({{lsn_text(source_.wal_end_)}});
  }
  if (is("SELECT attnum, attname, attisdropped, ")) return attributes_of(*parameters[0].bytes, {});
  if (is("SELECT pg_catalog.pg_xact_status(")) {
    return rows({{source_.fate_of(static_cast<uint32_t>(std::stoul(*parameters[0].bytes)))}});
  }
  if (is("SELECT a.attnum, a.attname, a.attisdropped, ")) {
    const bool has_ended = source_.fate_of(static_cast<uint32_t>(std::stoul(*parameters[0].bytes))) != "in progress";
    const bool is_locked = source_.is_table_locked(*parameters[1].bytes);
    return attributes_of(*parameters[1].bytes, {has_ended ? "t" : "f", is_locked ? "t" : "f"});
  }
  if (is("SELECT pg_catalog.pg_sleep(0.05)")) {
    scheduler().sleep_until(scheduler().now() + 50 * kMillisecond);
    return rows({{""}});
  }
  return std::nullopt;
}

// Questions of a capture with rules to the catalogue: engine/src/capture/row_filter.cc and rules/source_table.cc.
std::optional<Outcome> SourceSession::table_statement(const std::string& sql,
                                                      const std::vector<Parameter>& parameters) const {
  const auto is = [&](const char* beginning) { return sql.starts_with(beginning); };
  if (is("SELECT c.oid, n.nspname, c.relname FROM unnest(")) {
    std::vector<Row> found;
    for (const TableShape& shape : shapes()) {
      if (!parameters[1].bytes->contains(shape.name)) continue;
      found.push_back({std::to_string(shape.oid), "public", shape.name});
    }
    return rows(std::move(found));
  }
  if (is("SELECT datlocprovider = 'c'")) return rows({{"f", "t"}});
  if (is("SELECT s.system_identifier")) return rows({{"7/5"}});
  if (is("SELECT oid FROM pg_catalog.pg_class")) {
    std::vector<Row> existing;
    for (const TableShape& shape : shapes()) {
      if (parameters[0].bytes->contains(std::to_string(shape.oid))) existing.push_back({std::to_string(shape.oid)});
    }
    return rows(std::move(existing));
  }
  if (is("SELECT relkind = 'p'")) return rows({{"f"}});
  if (is("SELECT r.oid, n.nspname, r.relname, ")) {
    std::vector<Row> columns;
    for (const TableShape& shape : shapes()) {
      const std::string oid = std::to_string(shape.oid);
      if (!parameters[0].bytes->contains(oid)) continue;
      for (const ColumnShape& column : shape.columns) {
        const bool is_text = column.type == 25;
        columns.push_back({oid, "public", shape.name, "f", "f", column.name, std::to_string(column.type),
                           is_text ? "c" : "n", is_text ? "950" : "0"});
      }
    }
    return rows(std::move(columns));
  }
  if (!is("SELECT a.attname, CASE WHEN NOT c.collisdeterministic")) return std::nullopt;
  std::vector<Row> collations;
  for (const TableShape& shape : shapes()) {
    if (std::to_string(shape.oid) != *parameters[0].bytes) continue;
    for (const ColumnShape& column : shape.columns) {
      if (column.type == 25) collations.push_back({column.name, "c", "950"});
    }
  }
  return rows(std::move(collations));
}

void SourceSession::send(uint64_t lsn, const std::string& payload) {
  Response response;
  response.kind = Response::Kind::copy_data;
  response.bytes = "w" + u64(lsn) + u64(source_.wal_end_) + now_text() + payload;
  respond(std::move(response));
}

// docs/formats/output-batch.md
void SourceSession::add_to_batch(uint64_t lsn, const std::string& payload) {
  if (batch_.empty()) {
    batch_ = std::string(1, static_cast<char>(batch_version_));
    batch_lsn_ = lsn;
  }
  batch_ += u64(payload.size()).substr(4) + u64(lsn) + payload;
  if (batch_.size() >= source_.options_.batch_bytes) send_batch();
}

void SourceSession::send_batch() {
  if (!batch_.empty()) send(batch_lsn_, std::exchange(batch_, {}));
}

void SourceSession::send_keepalive(uint64_t lsn, bool reply) {
  Response response;
  response.kind = Response::Kind::copy_data;
  response.bytes = "k" + u64(lsn) + now_text() + std::string(1, reply ? '\1' : '\0');
  respond(std::move(response));
}

bool SourceSession::take_feedback(uint64_t position) {
  Request request;
  while (next_request(request, scheduler().now())) {
    if (request.kind != Request::Kind::copy_data) return false;
    heard_ = scheduler().now();
    source_.check_feedback(load_u64(request.sql, 9));
    constexpr size_t kReplyRequested = 33;
    if (request.sql[kReplyRequested] != '\0') send_keepalive(position, false);
  }
  return !gone();
}

Outcome SourceSession::take_slot(const std::string& sql, uint64_t& start) {
  if (source_.active_pid_ != 0) return error("55006", "replication slot is active");
  unsigned high = 0;
  unsigned low = 0;
  const size_t at = sql.find("LOGICAL ");
  if (at == std::string::npos || std::sscanf(sql.c_str() + at, "LOGICAL %X/%X", &high, &low) != 2) {
    fail("the model of the source does not know this statement: {}", sql);
  }
  start = std::max(uint64_t{high} << 32 | low, source_.confirmed_);
  source_.active_pid_ = channel().pid;
  source_.holder_ = channel().application_name;
  holds_slot_ = true;
  return {};
}

// docs/formats/output-batch.md
Outcome SourceSession::take_batch_version(const std::string& sql) {
  const bool batches = source_.options_.batch_bytes > 0;
  const size_t at = sql.find("batch_version '");
  batch_version_ = 0;
  const bool asked =
      at != std::string::npos && std::sscanf(sql.c_str() + at, "batch_version '%d'", &batch_version_) == 1;
  if (batches != asked) fail("the slot's plugin {} batches: {}", batches ? "sends" : "knows no", sql);
  if (batch_version_ > source_.options_.batch_version_max) return error("0A000", "batch_version is not supported");
  return {};
}

// Sends what transactions have committed from `start` on, as pgoutput does, until the client has gone.
void SourceSession::replicate(const std::string& sql) {
  uint64_t start = 0;
  Response begun;
  begun.outcome = take_batch_version(sql);
  if (begun.outcome.ok()) begun.outcome = take_slot(sql, start);
  begun.status = begun.outcome.ok() ? PGRES_COPY_BOTH : PGRES_FATAL_ERROR;
  const bool failed = !begun.outcome.ok();
  respond(begun);
  if (failed) {
    Response end;
    end.kind = Response::Kind::end_of_statement;
    return respond(end);
  }
  trace("walsender {} starts at {:X}", channel().pid, start);
  size_t next = 0;
  const SourceOptions& options = source_.options_;
  const bool streams = sql.find("streaming 'on'") != std::string::npos;
  LogicalDecoding decoding(
      {.start = start,
       .buffered_max = streams ? options.decoding_buffered_max : SIZE_MAX,
       .lists_subtransactions = batch_version_ > 1,
       .full_identity = options.full_identity,
       .forgets = [&] { return options.forgets_once_in > 0 && scheduler().chance(options.forgets_once_in); }},
      [&](uint64_t lsn, const std::string& payload) {
        batch_version_ > 0 ? add_to_batch(lsn, payload) : send(lsn, payload);
        if (!batch_.empty()) return;
        // In the midst of a transaction, too; then it is as far as what came before the commit.
        if (scheduler().chance(40)) send_keepalive(source_.wal_[next].lsn, scheduler().chance(8));
      });
  heard_ = scheduler().now();
  uint64_t kept_alive = 0;
  bool asked = false;
  const auto position_of = [&] { return next < source_.wal_.size() ? source_.wal_[next].lsn : source_.wal_end_; };
  while (take_feedback(position_of())) {
    const Time silent = scheduler().now() - heard_;
    if (silent < kSenderTimeout / 2) asked = false;
    if (silent >= kSenderTimeout) {
      trace("walsender {} gives its silent client up", channel().pid);
      break;
    }
    const uint64_t position = position_of();
    if (silent >= kSenderTimeout / 2 && !std::exchange(asked, true)) send_keepalive(position, true);
    if (unread_responses() < kUnreadMax && next < source_.wal_.size()) {
      decoding.decode(source_.wal_[next]);
      send_batch();
      ++next;
      if (scheduler().chance(50)) decoding.forget_tables();
      scheduler().maybe_yield(4);
      continue;
    }
    if (next == source_.wal_.size() && position > kept_alive && scheduler().chance(2)) {
      kept_alive = position;
      send_keepalive(position, scheduler().chance(8));
    }
    scheduler().sleep_until(scheduler().now() + static_cast<Time>(scheduler().random(static_cast<uint64_t>(kLook))));
  }
  if (!gone()) hang_up("terminating walsender process");
}

}  // namespace thalweg::simulation
