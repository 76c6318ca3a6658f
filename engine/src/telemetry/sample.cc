#include "telemetry/sample.h"

#include <algorithm>

namespace thalweg::telemetry {

void add_table(std::vector<TableSample>& to, const TableSample& more) {
  const auto found = std::ranges::find_if(to, [&](const TableSample& table) { return table.is_same_table(more); });
  if (found == to.end()) {
    to.push_back(more);
  } else {
    found->add(more);
  }
}

}  // namespace thalweg::telemetry
