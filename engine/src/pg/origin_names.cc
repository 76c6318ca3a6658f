#include "pg/origin_names.h"

namespace thalweg::pg {

const std::string* OriginNames::find(uint16_t origin) const {
  const auto known = names_.find(origin);
  return known == names_.end() ? nullptr : &known->second;
}

base::Result<std::string_view> OriginNames::look(Connection& server, uint16_t origin) {
  if (const std::string* const known = find(origin)) return *known;
  THALWEG_ASSIGN(const Rows rows,
                 server.query("SELECT roname FROM pg_catalog.pg_replication_origin WHERE roident = $1::pg_catalog.oid",
                              {std::to_string(origin)}));
  return names_.emplace(origin, rows.size() == 0 ? std::string() : std::string(rows.text(0, 0))).first->second;
}

}  // namespace thalweg::pg
