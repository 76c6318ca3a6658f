#include "pg/connection_settings.h"

#include <fmt/format.h>
#include <libpq-fe.h>
#include <netdb.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <span>

namespace thalweg::pg {

namespace {

using base::ErrorCode;
using Settings = std::vector<std::pair<std::string, std::string>>;

// They reach libpq as they are. Not here, and refused: hostaddr, which would pass by the networks; options, passfile,
// service, servicefile, krbsrvname, gsslib, requirepeer, sslpassword and whatever a later libpq brings.
constexpr std::array<std::string_view, 13> kPlainKeywords{"dbname",
                                                          "user",
                                                          "password",
                                                          "sslmode",
                                                          "keepalives",
                                                          "sslsni",
                                                          "keepalives_idle",
                                                          "keepalives_interval",
                                                          "keepalives_count",
                                                          "gssencmode",
                                                          "channel_binding",
                                                          "tcp_user_timeout",
                                                          "ssl_min_protocol_version"};
constexpr std::array<std::string_view, 4> kPemKeywords{"sslrootcert", "sslcert", "sslkey", "sslcrl"};
constexpr std::string_view kPemBegin = "-----BEGIN ";
constexpr std::string_view kDefaultPort = "5432";

// Nothing of the engine's account goes along with a user's settings: neither its tickets nor its passwords and keys in
// the files where libpq looks by itself.
constexpr std::string_view kNoFile = "/dev/null/none";
// A peer that falls silent is noticed within half a minute: until then a stream would show a state that is not so.
// While it owes an answer, PeerWatch notices it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kDefaults{{{"keepalives_idle", "10"},
                                                                                  {"keepalives_interval", "5"},
                                                                                  {"keepalives_count", "4"},
                                                                                  {"gssencmode", "disable"},
                                                                                  {"sslmode", "prefer"},
                                                                                  {"passfile", kNoFile},
                                                                                  {"sslcert", kNoFile}}};

struct Parsed {
  Settings plain;
  std::vector<std::string> hosts{""};  // "": libpq's own, a local socket
  std::vector<std::string> ports;
  std::string session_attributes;
  std::chrono::seconds connect_timeout;
};

std::unexpected<base::Error> refused(std::string message) {
  return base::fail(ErrorCode::connection_setting_refused, std::move(message));
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  while (true) {
    const size_t comma = list.find(',');
    parts.emplace_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    list.remove_prefix(comma + 1);
  }
}

base::Result<std::string> file_in_memory(std::string_view keyword, std::string_view pem,
                                         std::vector<base::File>& files) {
  if (pem.find(kPemBegin) == std::string_view::npos) {
    return refused(fmt::format("{} has to be the PEM contents (-----BEGIN ...), not the path of a file.", keyword));
  }
  base::File file{::memfd_create("thalweg-pem", MFD_CLOEXEC)};
  // libpq refuses a key that others might read.
  if (!file.is_open() || ::fchmod(file.descriptor(), 0600) != 0) {
    return std::unexpected(base::file_error(errno, "keep a certificate in memory"));
  }
  THALWEG_TRY(file.write_all(std::as_bytes(std::span{pem})));
  files.push_back(std::move(file));
  return fmt::format("/proc/self/fd/{}", files.back().descriptor());
}

base::Result<void> admit(Parsed& parsed, std::string_view keyword, std::string_view value,
                         std::vector<base::File>& files) {
  if (keyword == "host") {
    parsed.hosts = split(value);
  } else if (keyword == "port") {
    parsed.ports = split(value);
  } else if (keyword == "target_session_attrs") {
    parsed.session_attributes = value;
  } else if (keyword == "connect_timeout") {
    int seconds = 0;
    std::from_chars(value.data(), value.data() + value.size(), seconds);
    if (seconds > 0) parsed.connect_timeout = std::min(parsed.connect_timeout, std::chrono::seconds(seconds));
  } else if (std::ranges::find(kPemKeywords, keyword) != kPemKeywords.end()) {
    THALWEG_ASSIGN(std::string path, file_in_memory(keyword, value, files));
    parsed.plain.emplace_back(keyword, std::move(path));
  } else if (std::ranges::find(kPlainKeywords, keyword) != kPlainKeywords.end()) {
    parsed.plain.emplace_back(keyword, value);
  } else {
    return refused(fmt::format("{} may not be set.", keyword));
  }
  return {};
}

base::Result<Parsed> parse(const std::string& text, std::chrono::seconds timeout, std::vector<base::File>& files) {
  char* reason = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options{PQconninfoParse(text.c_str(), &reason),
                                                                             &PQconninfoFree};
  if (!options) {
    if (reason != nullptr) PQfreemem(reason);  // it may quote the password
    return base::fail(ErrorCode::invalid_request, "The connection string is not valid.");
  }
  Parsed parsed{.plain = {}, .hosts = {""}, .ports = {}, .session_attributes = "", .connect_timeout = timeout};
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val != nullptr && *option->val != '\0') {
      THALWEG_TRY(admit(parsed, option->keyword, option->val, files));
    }
  }
  if (parsed.ports.empty()) parsed.ports.emplace_back(kDefaultPort);
  if (parsed.ports.size() == 1) parsed.ports.resize(parsed.hosts.size(), parsed.ports.front());
  if (parsed.ports.size() != parsed.hosts.size()) return refused("There must be one port, or one for each host.");
  for (const auto& [keyword, value] : kDefaults) {
    const bool is_set =
        std::ranges::any_of(parsed.plain, [&](const auto& setting) { return setting.first == keyword; });
    if (!is_set) parsed.plain.emplace_back(keyword, value);
  }
  return parsed;
}

// Values of target_session_attrs, one for each time that all servers are tried. libpq would look at all servers twice
// for prefer-standby; here each is tried by itself, within its own time.
std::vector<std::string> passes_of(base::ServerRole role, const std::string& given) {
  switch (role) {
    case base::ServerRole::primary:
      return {"primary"};
    case base::ServerRole::standby:
      return {"standby"};
    case base::ServerRole::standby_first:
      return {"standby", "any"};
    case base::ServerRole::as_given:
      break;
  }
  if (given == "prefer-standby") return {"standby", "any"};
  return {given};
}

bool is_local(std::string_view host) { return host.empty() || host.starts_with('/') || host.starts_with('@'); }

std::string numeric(const addrinfo& address) {
  std::array<char, NI_MAXHOST> text{};
  const int failed =
      ::getnameinfo(address.ai_addr, address.ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return failed == 0 ? text.data() : "?";
}

// The host's addresses that the networks allow. libpq then connects to these, and looks nothing up: what was compared
// is what is used, however often the name's answer changes.
base::Result<std::vector<std::string>> allowed_addresses(const std::string& host, const base::Networks& within) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int failed = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found); failed != 0) {
    return base::fail(ErrorCode::database_unreachable,
                      fmt::format("The host name {} cannot be resolved: {}.", host, ::gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner{found, &::freeaddrinfo};
  std::vector<std::string> allowed;
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    if (within.allow(*address->ai_addr)) allowed.push_back(numeric(*address));
  }
  if (allowed.empty()) {
    return base::fail(ErrorCode::address_not_allowed,
                      fmt::format("{} leads to {}, which is outside these networks.", host, numeric(*found)));
  }
  return allowed;
}

// Adds the servers of one host; the failure is that of looking its name up.
base::Result<void> add_servers(std::vector<Settings>& servers, const std::string& host, const std::string& port,
                               const base::Networks* within) {
  Settings server{{"host", host}, {"port", port}};
  if (within != nullptr && is_local(host) && !within->allow_local()) {
    return base::fail(ErrorCode::address_not_allowed, "A local socket is a path of the engine's host.");
  }
  if (within == nullptr || is_local(host) || !within->restrict_addresses()) {
    servers.push_back(std::move(server));
    return {};
  }
  THALWEG_ASSIGN(const std::vector<std::string> addresses, allowed_addresses(host, *within));
  for (const std::string& address : addresses) {
    servers.push_back(server);
    servers.back().emplace_back("hostaddr", address);
  }
  return {};
}

}  // namespace

base::Result<ConnectionSettings> admitted_settings(const base::Conninfo& conninfo,
                                                   std::chrono::seconds connect_timeout_max) {
  ConnectionSettings admitted;
  THALWEG_ASSIGN(const Parsed parsed, parse(conninfo.text, connect_timeout_max, admitted.files));
  std::vector<Settings> servers;
  std::optional<base::Error> unknown;
  for (size_t i = 0; i < parsed.hosts.size(); ++i) {
    auto added = add_servers(servers, parsed.hosts[i], parsed.ports[i], conninfo.within.get());
    if (!added && added.error().code != ErrorCode::database_unreachable) return std::unexpected(added.error());
    if (!added) unknown = added.error();
  }
  if (servers.empty()) return std::unexpected(*unknown);
  for (const std::string& session_attributes : passes_of(conninfo.role, parsed.session_attributes)) {
    for (const Settings& server : servers) {
      ServerSettings& server_settings = admitted.servers.emplace_back(server, parsed.connect_timeout);
      server_settings.settings.insert(server_settings.settings.end(), parsed.plain.begin(), parsed.plain.end());
      if (!session_attributes.empty())
        server_settings.settings.emplace_back("target_session_attrs", session_attributes);
    }
  }
  return admitted;
}

}  // namespace thalweg::pg
