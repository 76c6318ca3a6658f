#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"

// Where connections to databases may lead, as the administrator says it.

namespace thalweg::base {

// Ranges of addresses. Immutable.
class Networks {
 public:
  // Every address, but no local socket: its name is a path of this host.
  Networks() = default;
  // "10.0.0.0/8", "fd00::/8", "192.0.2.7", or "local" for sockets in this host's file system. Fails with
  // invalid_request, which names the range.
  static Result<Networks> parse(std::vector<std::string> ranges);

  bool allow(const sockaddr& address) const;  // IPv4 addresses in their IPv6 form count as IPv4
  bool allow_local() const { return local_; }
  bool restrict_addresses() const { return !ranges_.empty(); }
  const std::vector<std::string>& text() const { return text_; }
  bool operator==(const Networks& other) const { return text_ == other.text_; }

 private:
  struct Range {
    std::array<uint8_t, 16> address;  // IPv4 as ::ffff:a.b.c.d
    int bits;
  };
  static Result<Range> parse_range(const std::string& text);

  std::vector<std::string> text_;
  std::vector<Range> ranges_;
  bool local_ = false;
};

// The server, of several, that a connection is for. `as_given`: as target_session_attrs in the text says; the others
// override it. `standby_first`: any server where no standby answers.
enum class ServerRole : uint8_t { as_given, primary, standby, standby_first };

// How to reach a database. Holds a password and keys: never logged.
struct Conninfo {
  std::string text;                        // libpq's keywords and values; certificates and keys as PEM contents
  std::shared_ptr<const Networks> within;  // null: anywhere, for what nobody else has a hand in (tests)
  ServerRole role = ServerRole::as_given;
  ErrorSide side = ErrorSide::unknown;  // of a stream: what errors of its connections name

  Conninfo() = default;
  Conninfo(std::string conninfo) : text(std::move(conninfo)) {}  // NOLINT: a string is all that most callers have
  Conninfo(const char* conninfo) : text(conninfo) {}             // NOLINT
  bool empty() const { return text.empty(); }
  bool operator==(const Conninfo& other) const {
    const bool same = within == nullptr ? other.within == nullptr : other.within != nullptr && *within == *other.within;
    return text == other.text && role == other.role && same;
  }
  Conninfo for_role(ServerRole wanted) const {
    Conninfo out = *this;
    out.role = wanted;
    return out;
  }
};

}  // namespace thalweg::base
