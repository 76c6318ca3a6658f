#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "pg/connection.h"

namespace thalweg::pg {

// Names of a server's replication origins (pg_replication_origin), by the numbers that its WAL has. A number may be
// given to another origin once its own was dropped: the name is that of the first look. Owner: one thread.
class OriginNames {
 public:
  // Null: nobody has looked yet.
  const std::string* find(uint16_t origin) const;
  // Looks unless it is known. Empty: the server has it no more. Valid while this lives.
  base::Result<std::string_view> look(Connection& server, uint16_t origin);

 private:
  std::map<uint16_t, std::string> names_;
};

}  // namespace thalweg::pg
