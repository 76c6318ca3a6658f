#include "pg/own_session.h"

#include <cstdint>
#include <random>

#include <fmt/format.h>

namespace thalweg::pg {

namespace {

constexpr const char* kSessionQuery =
    "SELECT pg_catalog.current_setting('thalweg.session', true), pg_catalog.pg_backend_pid()";
constexpr int kLooks = 3;  // at a session whose login named another process

std::unexpected<base::Error> pooler(std::string message) {
  return base::fail(base::ErrorCode::connection_pooler, std::move(message));
}

}  // namespace

std::string new_session_mark() {
  std::random_device device;
  return fmt::format("{:016x}", uint64_t{device()} << 32 | device());
}

std::string session_mark_setting(const std::string& mark) { return "-c thalweg.session=" + mark; }

base::Result<void> expect_own_session(Connection& connection, const std::string& mark) {
  int64_t process = 0;
  for (int look = 0; look < kLooks; ++look) {
    THALWEG_ASSIGN(const Rows session, connection.script(kSessionQuery));
    const std::string_view found = session.text(0, 0);
    if (found.empty()) return pooler("The session's settings did not reach the server: something between drops them.");
    if (found != mark) return pooler("Another client has begun this session: something between hands sessions on.");
    if (look > 0 && session.integer(0, 1) != process) {
      return pooler("Statements reach different processes of the server: something between distributes them.");
    }
    process = session.integer(0, 1);
    if (process == connection.backend_pid()) break;
  }
  return {};
}

}  // namespace thalweg::pg
