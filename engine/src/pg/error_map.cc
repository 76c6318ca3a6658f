#include <algorithm>
#include <array>

#include "pg/connection.h"

// SQLSTATE to the engine's catalogue (PostgreSQL documentation, appendix A). A state that is not here is
// database_error.

namespace thalweg::pg {

namespace {

using base::ErrorCode;

struct Mapping {
  std::string_view prefix;  // no prefix is a prefix of another
  ErrorCode code;
};

constexpr std::array kMappings{
    Mapping{"08", ErrorCode::connection_lost},
    Mapping{"25006", ErrorCode::destination_read_only},  // only destinations are written
    Mapping{"28", ErrorCode::authentication_failed},
    Mapping{"3D000", ErrorCode::missing_database},
    Mapping{"3F000", ErrorCode::missing_table},
    Mapping{"40", ErrorCode::database_busy},  // serialization failure, deadlock
    Mapping{"42501", ErrorCode::insufficient_privilege},
    Mapping{"42P01", ErrorCode::missing_table},
    Mapping{"53100", ErrorCode::disk_full},
    Mapping{"53200", ErrorCode::database_busy},   // out of memory
    Mapping{"53300", ErrorCode::database_busy},   // too many connections
    Mapping{"55P03", ErrorCode::database_busy},   // lock not available
    Mapping{"57014", ErrorCode::database_busy},   // query cancelled
    Mapping{"57P0", ErrorCode::connection_lost},  // shutdown, crash of another backend, starting up
};

// The server's own messages under these SQLSTATEs name objects, addresses and limits only. Other messages quote values
// (bad data, violated constraints and views' conditions), or say whatever a function has raised.
constexpr std::array<std::string_view, 16> kStatesWithoutRows{
    "08", "25", "28", "3D", "3F", "40", "42501", "42703", "42704", "42883", "42P01", "53", "54", "55", "57", "58"};

bool names_no_rows(std::string_view sqlstate) {
  return std::ranges::any_of(kStatesWithoutRows, [&](std::string_view state) { return sqlstate.starts_with(state); });
}

}  // namespace

base::Error error_from_sqlstate(std::string_view sqlstate, std::string message) {
  ErrorCode code = ErrorCode::database_error;
  for (const auto& mapping : kMappings) {
    if (sqlstate.starts_with(mapping.prefix)) code = mapping.code;
  }
  base::Error error = base::fail(code, std::move(message)).error();
  error.sqlstate = sqlstate;
  error.may_show_rows = !names_no_rows(sqlstate);
  return error;
}

}  // namespace thalweg::pg
