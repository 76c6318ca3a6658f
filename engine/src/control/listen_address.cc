#include "control/listen_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>

namespace thalweg::control {

using base::ErrorCode;

bool is_loopback(std::string_view host) {
  std::string text(host);
  in_addr four{};
  in6_addr six{};
  if (::inet_pton(AF_INET, text.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  if (::inet_pton(AF_INET6, text.c_str(), &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six);
  return text == "localhost";
}

base::Result<std::pair<std::string, int>> parse_listen_address(std::string_view text) {
  auto refused = [&] { return base::fail(ErrorCode::invalid_request, fmt::format("'{}' is not HOST:PORT", text)); };
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return refused();
  std::string_view host = text.substr(0, colon);
  std::string_view port_text = text.substr(colon + 1);
  int port = 0;
  auto [end, problem] = std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
  if (problem != std::errc{} || end != port_text.data() + port_text.size() || port < 0 || port > 65535)
    return refused();
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return refused();
  }
  if (host.empty()) return refused();
  return std::pair{std::string(host), port};
}

}  // namespace thalweg::control
