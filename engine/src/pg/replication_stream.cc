#include "pg/replication_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "pg/libpq_handles.h"

namespace thalweg::pg {

namespace {

using base::ErrorCode;

constexpr size_t kXLogDataHeaderBytes = 1 + 8 + 8 + 8;
constexpr size_t kKeepaliveBytes = 1 + 8 + 8 + 1;
constexpr uint32_t kNearRoundTripMicros = 2'000;
constexpr int kNearReceiveBufferBytes = 256 * 1024;
constexpr int kReadsBeforeCheck = 64;  // one check for all that the socket holds, but not for more than a few MiB
constexpr int kOptionSyntaxVersion = 150'000;  // from here CREATE_REPLICATION_SLOT takes a list of options
constexpr int kFailoverVersion = 170'000;

uint64_t load_u64(const std::byte* bytes) {
  uint64_t value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return std::endian::native == std::endian::little ? __builtin_bswap64(value) : value;
}

std::byte* store_u64(std::byte* out, uint64_t value) {
  if (std::endian::native == std::endian::little) value = __builtin_bswap64(value);
  std::memcpy(out, &value, sizeof value);
  return out + sizeof value;
}

base::UnixMicros from_postgres_time(uint64_t micros) {
  return {static_cast<int64_t>(micros) + base::kPostgresEpochMicros};
}

base::Result<StreamMessage> parse(std::span<const std::byte> bytes) {
  const char kind = bytes.empty() ? '\0' : static_cast<char>(bytes[0]);
  if (kind == 'w' && bytes.size() >= kXLogDataHeaderBytes) {
    return StreamMessage{.is_keepalive = false,
                         .reply_requested = false,
                         .wal_start = {load_u64(&bytes[1])},
                         .wal_end = {load_u64(&bytes[9])},
                         .server_time = from_postgres_time(load_u64(&bytes[17])),
                         .payload = bytes.subspan(kXLogDataHeaderBytes)};
  }
  if (kind == 'k' && bytes.size() == kKeepaliveBytes) {
    return StreamMessage{.is_keepalive = true,
                         .reply_requested = bytes[17] != std::byte{0},
                         .wal_start = {},
                         .wal_end = {load_u64(&bytes[1])},
                         .server_time = from_postgres_time(load_u64(&bytes[9])),
                         .payload = {}};
  }
  return base::fail(ErrorCode::protocol_violation,
                    fmt::format("A replication message of kind {} with {} bytes is not valid.", static_cast<int>(kind),
                                bytes.size()));
}

// A walsender sends each change by itself. Into an open window each becomes a segment of its own, with the whole of TCP
// behind it; into a full one they gather to large segments, at half the source's processor time. A near source fills a
// small window again at once, so the window is small there, but some of loopback's segments of 64 KiB large: the kernel
// drops what its bookkeeping for many small messages leaves no room for, and congestion control takes that for loss.
// A far one needs what TCP finds by itself.
void bound_window_of_near_source(int socket) {
  tcp_info info{};
  socklen_t length = sizeof info;
  // Not TCP: a local socket, whose buffers are the sender's.
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return;
  if (info.tcpi_rtt > kNearRoundTripMicros) return;
  // Only speed hangs on it: a system that refuses keeps its own size.
  static_cast<void>(
      setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &kNearReceiveBufferBytes, sizeof kNearReceiveBufferBytes));
}

// Not there, not allowed (output_plugin_libraries), not loadable: each has an SQLSTATE of wider meaning. All three have
// the library's name, in whatever language.
bool is_about_plugin(const base::Error& error) { return error.message.contains(name_of(OutputPlugin::thalweg_output)); }

// Translates the server's refusals that concern a slot; elsewhere the same SQLSTATEs mean other things.
void name_slot_error(base::Error& error, bool wal_level_is_logical) {
  if (error.sqlstate == "55006") error.code = ErrorCode::slot_in_use;
  if (error.sqlstate == "53400" || error.sqlstate == "53300") error.code = ErrorCode::slot_limit_reached;
  if (error.sqlstate == "55000") {
    error.code = wal_level_is_logical ? ErrorCode::slot_lost : ErrorCode::wal_level_too_low;
  }
  if (error.sqlstate == "42704") error.code = ErrorCode::slot_lost;
  if (error.sqlstate == "58P01") error.code = ErrorCode::slot_lost;  // the WAL segment has been removed
  if (is_about_plugin(error)) error.code = ErrorCode::output_plugin_unavailable;
}

// The replication commands' literals know no escapes: a backslash is itself.
std::string quote_option(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') quoted += c;
    quoted += c;
  }
  return quoted + "'";
}

}  // namespace

std::string_view name_of(OutputPlugin plugin) {
  return plugin == OutputPlugin::pgoutput ? "pgoutput" : "thalweg_output";
}

struct ReplicationStream::Impl {
  Connection connection;
  BytesPtr message;                           // what receive() handed out last
  std::function<base::Result<void>()> check;  // none: nothing has to be asked
  bool unchecked = true;                      // libpq may hold what came after the last check

  Connection::Impl& libpq() { return *connection.impl_; }
  PGconn* conn() { return libpq().conn; }

  base::Result<void> consume_input() {
    THALWEG_TRY(libpq().consume_input());
    if (!check) return {};
    unchecked = true;
    for (int i = 1; i < kReadsBeforeCheck; ++i) {
      THALWEG_ASSIGN(const short ready, libpq().wait(POLLIN, std::chrono::milliseconds::zero()));
      if ((ready & POLLIN) == 0) break;
      THALWEG_TRY(libpq().consume_input());
    }
    return {};
  }

  // Succeeds once the messages that libpq holds may be handed out: `check` has passed since the last of them came.
  base::Result<void> pass_check() {
    if (!check || !unchecked) return {};
    THALWEG_TRY(check());
    unchecked = false;
    return {};
  }

  base::Error named(base::Error error) {
    bool logical = true;
    if (error.sqlstate == "55000") {
      const auto level = connection.script("SHOW wal_level");
      // A standby that is set to logical needs a primary that is, too: only the message says so.
      logical = (!level || level->text(0, 0) == "logical") && !error.message.contains("wal_level");
    }
    name_slot_error(error, logical);
    return error;
  }

  // The server has ended the stream: its reason.
  base::Error ended() {
    auto last = libpq().finish_command();
    if (last) return base::fail(ErrorCode::connection_lost, "the source ended the stream", libpq().side).error();
    base::Error error = std::move(last).error();
    // Decoding itself failed. A name that does not exist is the publication here: the slot was found at the start.
    if (error.sqlstate == "42704") {
      error.code = ErrorCode::publication_lost;
    } else {
      name_slot_error(error, true);
    }
    return error;
  }
};

ReplicationStream::ReplicationStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ReplicationStream::ReplicationStream(ReplicationStream&&) noexcept = default;
ReplicationStream& ReplicationStream::operator=(ReplicationStream&&) noexcept = default;
ReplicationStream::~ReplicationStream() = default;

base::Result<ReplicationStream> ReplicationStream::open(const base::Conninfo& conninfo,
                                                        const std::string& application_name) {
  return open(conninfo, ConnectOptions{.application_name = application_name});
}

base::Result<ReplicationStream> ReplicationStream::open(const base::Conninfo& conninfo, ConnectOptions options) {
  options.replication = Replication::database;
  auto connection = Connection::open(conninfo, options);
  if (!connection) {
    base::Error error = std::move(connection).error();
    // Senders are counted apart from other connections.
    if (error.sqlstate == "53300") error.code = ErrorCode::slot_limit_reached;
    return std::unexpected(std::move(error));
  }
  return ReplicationStream{
      std::unique_ptr<Impl>{new Impl{.connection = *std::move(connection), .message = {}, .check = {}}}};
}

base::Result<SystemIdentity> ReplicationStream::identify() {
  // Before the timeline is asked for: whoever is no standby then does not become one, nor change its timeline.
  THALWEG_ASSIGN(const Rows recovery, impl_->connection.script("SELECT pg_is_in_recovery()"));
  THALWEG_ASSIGN(const Rows rows, impl_->connection.script("IDENTIFY_SYSTEM"));
  const auto flushed = base::parse_lsn(rows.text(0, 2));
  if (rows.size() != 1 || rows.columns() < 4 || !flushed) {
    return base::fail(ErrorCode::protocol_violation, "IDENTIFY_SYSTEM gave no valid answer.");
  }
  return SystemIdentity{.system_identifier = std::string{rows.text(0, 0)},
                        .timeline = static_cast<int>(rows.integer(0, 1)),
                        .flushed = *flushed,
                        .database = std::string{rows.text(0, 3)},
                        .standby = recovery.boolean(0, 0)};
}

base::Result<int> ReplicationStream::timeline() {
  THALWEG_ASSIGN(const Rows rows, impl_->connection.script("IDENTIFY_SYSTEM"));
  return static_cast<int>(rows.integer(0, 1));
}

base::Result<TimelineHistory> ReplicationStream::timeline_history(int timeline) {
  if (timeline <= 1) return TimelineHistory(timeline);  // the first one comes from nowhere, and has no file
  THALWEG_ASSIGN(const Rows rows, impl_->connection.script(fmt::format("TIMELINE_HISTORY {}", timeline)));
  if (rows.size() != 1 || rows.columns() < 2) {
    return base::fail(ErrorCode::protocol_violation, "TIMELINE_HISTORY gave no valid answer.");
  }
  return TimelineHistory::parse(timeline, rows.text(0, 1));
}

std::string create_slot_sql(const std::string& slot, bool temporary, OutputPlugin plugin, const SlotPlace& place) {
  // A failover slot goes on at the standby that is promoted, where the standby synchronises slots. A standby has none
  // of its own, and a temporary slot ends with its session.
  const bool failover = place.server_version >= kFailoverVersion && !temporary && !place.standby;
  const bool options = place.server_version >= kOptionSyntaxVersion;
  return fmt::format("CREATE_REPLICATION_SLOT {}{} LOGICAL {} {}", quote_identifier(slot),
                     temporary ? " TEMPORARY" : "", name_of(plugin),
                     !options   ? "EXPORT_SNAPSHOT"
                     : failover ? "(SNAPSHOT 'export', FAILOVER true)"
                                : "(SNAPSHOT 'export')");
}

base::Result<CreatedSlot> ReplicationStream::create_slot(const std::string& slot, bool temporary, OutputPlugin plugin) {
  const char* standby = PQparameterStatus(impl_->conn(), "in_hot_standby");
  const SlotPlace place{.server_version = impl_->connection.server_version(),
                        .standby = standby && std::string_view(standby) == "on"};
  auto rows = impl_->connection.script(create_slot_sql(slot, temporary, plugin, place));
  if (!rows) return std::unexpected(impl_->named(std::move(rows).error()));
  const auto point = base::parse_lsn(rows->text(0, 1));
  if (rows->size() != 1 || !point || rows->text(0, 2).empty()) {
    return base::fail(ErrorCode::protocol_violation, "CREATE_REPLICATION_SLOT gave no valid answer.");
  }
  return CreatedSlot{.consistent_point = *point, .snapshot_name = std::string{rows->text(0, 2)}};
}

base::Result<void> ReplicationStream::start(const std::string& slot, base::Lsn from,
                                            const std::vector<std::string>& publications, StartOptions options) {
  std::string names;
  for (const std::string& publication : publications)
    names += (names.empty() ? "" : ",") + quote_identifier(publication);
  const std::string sql = fmt::format(
      "START_REPLICATION SLOT {} LOGICAL {} (proto_version '2', publication_names {}, binary '{}'{}{}{}{})",
      quote_identifier(slot), base::to_string(from), impl_->connection.quote_literal(names), options.binary,
      options.streaming ? ", streaming 'on'" : "", options.messages ? ", messages 'true'" : "",
      options.plugin == OutputPlugin::thalweg_output ? fmt::format(", batch_version '{}'", options.batch_version) : "",
      options.row_filters.empty() ? "" : fmt::format(", row_filters {}", quote_option(options.row_filters)));
  bound_window_of_near_source(PQsocket(impl_->conn()));
  return start(sql);
}

base::Result<base::Lsn> ReplicationStream::create_physical_slot(const std::string& slot, bool temporary) {
  auto rows = impl_->connection.script(fmt::format("CREATE_REPLICATION_SLOT {}{} PHYSICAL RESERVE_WAL",
                                                   quote_identifier(slot), temporary ? " TEMPORARY" : ""));
  if (!rows) return std::unexpected(impl_->named(std::move(rows).error()));
  // The position that the command itself answers with is of nothing: a physical slot has no consistent point.
  THALWEG_ASSIGN(const Rows found,
                 impl_->connection.script(fmt::format("SELECT restart_lsn FROM pg_catalog.pg_replication_slots WHERE "
                                                      "slot_name = {}",
                                                      impl_->connection.quote_literal(slot))));
  const auto restart = found.size() == 1 ? base::parse_lsn(found.text(0, 0)) : std::nullopt;
  if (!restart) return base::fail(ErrorCode::slot_lost, fmt::format("The slot {} has no position.", slot));
  return *restart;
}

base::Result<void> ReplicationStream::start_physical(const std::string& slot, base::Lsn from, int timeline) {
  return start(fmt::format("START_REPLICATION SLOT {} PHYSICAL {} TIMELINE {}", quote_identifier(slot),
                           base::to_string(from), timeline));
}

base::Result<void> ReplicationStream::start(const std::string& command) {
  THALWEG_TRY(impl_->libpq().ready_for_command());
  if (PQsendQuery(impl_->conn(), command.c_str()) == 0) return std::unexpected(impl_->libpq().send_failed());
  THALWEG_TRY(impl_->libpq().flush());
  auto result = impl_->libpq().finish_command();
  if (!result) return std::unexpected(impl_->named(std::move(result).error()));
  if (PQresultStatus(result->get()) != PGRES_COPY_BOTH) {
    return base::fail(ErrorCode::protocol_violation, "START_REPLICATION did not start a stream.");
  }
  return {};
}

base::Result<std::optional<StreamMessage>> ReplicationStream::receive(std::chrono::milliseconds timeout) {
  const auto started = std::chrono::steady_clock::now();
  impl_->message.reset();
  bool polled = false;
  while (true) {
    char* buffer = nullptr;
    const int length = PQgetCopyData(impl_->conn(), &buffer, 1);
    if (length > 0) {
      impl_->message.reset(buffer);
      THALWEG_TRY(impl_->pass_check());
      THALWEG_ASSIGN(const StreamMessage message, parse(std::as_bytes(std::span{buffer, static_cast<size_t>(length)})));
      return message;
    }
    if (length < 0) return std::unexpected(impl_->ended());
    auto left = timeout;
    if (polled) {
      const auto spent = std::chrono::steady_clock::now() - started;
      left = timeout - std::chrono::duration_cast<std::chrono::milliseconds>(spent);
      if (left.count() <= 0) return std::optional<StreamMessage>{};
    }
    polled = true;
    // Feedback that did not fit into the socket goes out as soon as it can; libpq may read meanwhile.
    const bool unsent = PQflush(impl_->conn()) == 1;
    if (unsent) impl_->unchecked = true;
    if (left == std::chrono::milliseconds::zero()) {
      THALWEG_TRY(impl_->consume_input());  // reads without waiting: no need to ask first
      continue;
    }
    THALWEG_ASSIGN(const short ready, impl_->libpq().wait(static_cast<short>(POLLIN | (unsent ? POLLOUT : 0)), left));
    if ((ready & (POLLIN | POLLERR | POLLHUP)) != 0) THALWEG_TRY(impl_->consume_input());
  }
}

void ReplicationStream::guard_with(std::function<base::Result<void>()> check) {
  impl_->check = std::move(check);
  impl_->unchecked = true;
}

bool ReplicationStream::over_tcp() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  return getpeername(PQsocket(impl_->conn()), reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
         address.ss_family != AF_UNIX;
}

base::Result<void> ReplicationStream::send_feedback(const Feedback& feedback) {
  std::array<std::byte, 1 + 8 + 8 + 8 + 8 + 1> message;
  message[0] = static_cast<std::byte>('r');
  std::byte* out = &message[1];
  out = store_u64(out, feedback.written.value);
  out = store_u64(out, feedback.flushed.value);
  out = store_u64(out, feedback.applied.value);
  const auto now =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  out = store_u64(out, static_cast<uint64_t>(now - base::kPostgresEpochMicros));
  *out = static_cast<std::byte>(feedback.reply_requested ? 1 : 0);
  const int sent =
      PQputCopyData(impl_->conn(), reinterpret_cast<const char*>(message.data()), static_cast<int>(message.size()));
  if (sent < 0 || PQflush(impl_->conn()) < 0) return std::unexpected(impl_->libpq().lost());
  impl_->unchecked = true;  // libpq reads while a full socket keeps it from writing
  return {};                // what the socket did not take now, receive() sends
}

Connection& ReplicationStream::connection() { return impl_->connection; }

Connection::Canceller ReplicationStream::canceller() const { return impl_->connection.canceller(); }

}  // namespace thalweg::pg
