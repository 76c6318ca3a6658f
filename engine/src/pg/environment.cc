#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "pg/connection.h"

namespace thalweg::pg {

void forget_environment() {
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    if (variable.starts_with("PG")) names.emplace_back(variable.substr(0, variable.find('=')));
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

}  // namespace thalweg::pg
