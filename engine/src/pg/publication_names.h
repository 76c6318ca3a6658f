#pragma once

#include <string>

namespace thalweg::pg {

// A stream's publications at its source. Each of its tables is in one of the two.
struct PublicationNames {
  std::string changes;  // insert, update, delete, truncate
  std::string inserts;  // insert, truncate: of tables whose updates and deletes are given up
};

}  // namespace thalweg::pg
