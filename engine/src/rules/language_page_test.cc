#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "rules/entry_maker.h"
#include "support/engine_directory.h"

// The tables at the end of docs/reference/rule-language.md are the catalogue's. THALWEG_WRITE_GOLDEN=1 writes them
// anew.

namespace thalweg::rules {
namespace {

constexpr std::string_view kStart = "<!-- written by rules_test: THALWEG_WRITE_GOLDEN=1 -->\n";

// | name | arguments: result; arguments: result |
std::string table_of(Entry::Kind kind, std::string_view head) {
  std::map<std::string, std::string> rows;
  for (const Entry& entry : usable_entries()) {
    if (entry.kind != kind) continue;
    std::string arguments;
    for (const Type type : entry.arguments) arguments += (arguments.empty() ? "" : ", ") + std::string(name_of(type));
    std::string& row = rows[std::string(entry.name)];
    row += (row.empty() ? "" : "; ") + arguments + ": " + std::string(name_of(entry.result));
  }
  std::string table = "| " + std::string(head) + " | arguments: result |\n|---|---|\n";
  for (const auto& [name, row] : rows) {
    std::string escaped;
    for (const char c : name) escaped += c == '|' ? "\\|" : std::string(1, c);
    table += "| `" + escaped + "` | " + row + " |\n";
  }
  return table;
}

std::string casts() {
  std::map<std::string_view, std::set<std::string_view>> targets;
  for (const Entry& entry : usable_entries()) {
    if (entry.kind == Entry::Kind::cast) targets[name_of(entry.arguments[0])].insert(name_of(entry.result));
  }
  std::string table = "| cast from | to |\n|---|---|\n";
  for (const auto& [source, of_source] : targets) {
    std::string list;
    for (const std::string_view target : of_source) list += (list.empty() ? "" : ", ") + std::string(target);
    table += "| `" + std::string(source) + "` | " + list + " |\n";
  }
  return table;
}

TEST(LanguagePageTest, ListsTheCatalogue) {
  const auto path = std::filesystem::path(test::engine_directory()) / "../docs/reference/rule-language.md";
  std::ifstream in(path);
  const std::string page{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const size_t start = page.find(kStart);
  ASSERT_NE(start, std::string::npos);
  const std::string written = page.substr(0, start + kStart.size()) + "\n" +
                              table_of(Entry::Kind::operation, "operator") + "\n" +
                              table_of(Entry::Kind::function, "function") + "\n" + casts();
  if (std::getenv("THALWEG_WRITE_GOLDEN") != nullptr) std::ofstream(path) << written;
  EXPECT_EQ(page, written);
}

}  // namespace
}  // namespace thalweg::rules
