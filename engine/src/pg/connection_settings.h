#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/networks.h"

// Internal to pg/: what of a conninfo libpq gets to see. Users write host, options and certificates, so nothing of it
// is taken on trust, whoever sent it: a setting that is not on the list is refused, an address is looked up and
// compared with the networks before libpq hears of it, and no path of this host goes in. A path could make OpenSSL load
// a library (sslkey=ENGINE:KEY), and its error messages tell which files there are.

namespace thalweg::pg {

// One server to try: libpq's keywords with values.
struct ServerSettings {
  std::vector<std::pair<std::string, std::string>> settings;
  std::chrono::seconds connect_timeout;
};

struct ConnectionSettings {
  std::vector<ServerSettings> servers;  // at least one; the next is tried when one cannot be reached
  // Certificates and keys, which libpq takes as files only. They lie in memory, for as long as this object does.
  std::vector<base::File> files;
};

// Looks host names up where the conninfo's networks restrict addresses, which may wait for a name server.
// Fails with connection_setting_refused, address_not_allowed, database_unreachable (a name that is unknown), or
// invalid_request (not a conninfo). No message holds a value but host names and addresses.
base::Result<ConnectionSettings> admitted_settings(const base::Conninfo& conninfo,
                                                   std::chrono::seconds connect_timeout_max);

}  // namespace thalweg::pg
