#include "instantiation/lost_identity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace thalweg::instantiation {
namespace {

constexpr size_t kNamedMax = 5;  // leaves that a reason or cure names

std::string_view words_of(IdentityFlaw flaw) {
  switch (flaw) {
    case IdentityFlaw::no_key:
      return "it has no primary key";
    case IdentityFlaw::nothing:
      return "that is set to NOTHING";
    case IdentityFlaw::dropped:
      return "the index that was chosen for it is gone";
    case IdentityFlaw::invalid:
      return "the index for it is invalid";
    case IdentityFlaw::deferrable:
      return "the key for it is deferrable";
    case IdentityFlaw::generated:
      return "the index for it has a generated column, which is not replicated";
  }
  std::unreachable();
}

std::vector<std::string> statements_of(const std::vector<LostIdentity>& lost) {
  std::vector<std::string> statements;
  for (size_t i = 0; i < std::min(lost.size(), kNamedMax); ++i) statements.push_back(cure_sql_of(lost[i]));
  return statements;
}

// Further words where a key would help. A key alone is no identity while that is something else.
std::string key_instead(const LostIdentity& table) {
  switch (table.flaw) {
    case IdentityFlaw::no_key:
      return " Or add a primary key, at each destination too.";
    case IdentityFlaw::nothing:
    case IdentityFlaw::dropped:
    case IdentityFlaw::invalid:
      return fmt::format(
          " Or add a primary key, at each destination too, and run ALTER TABLE {} REPLICA IDENTITY DEFAULT;",
          table.name.quoted());
    case IdentityFlaw::deferrable:
    case IdentityFlaw::generated:
      return {};
  }
  std::unreachable();
}

}  // namespace

std::string reason_of(const LostIdentity& table) {
  // Servers before PostgreSQL 18 let updates pass that tell nobody which row they change.
  const std::string_view what =
      table.flaw == IdentityFlaw::generated
          ? "Updates and deletes of its rows are refused at the source, or cannot be applied."
          : "PostgreSQL refuses updates and deletes of its rows at the source; inserts continue to arrive.";
  return fmt::format("{} has no replica identity: {}. {}", table.name.quoted(), words_of(table.flaw), what);
}

std::string reason_of_leaves(const TableName& root, const std::vector<LostIdentity>& lost) {
  std::string names;
  for (size_t i = 0; i < std::min(lost.size(), kNamedMax); ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : ", ", lost[i].name.quoted());
  }
  if (lost.size() > kNamedMax) names += fmt::format(" and {} more", lost.size() - kNamedMax);
  const bool is_one = lost.size() == 1;
  return fmt::format(
      "Partitions of {}: {} {} no replica identity: PostgreSQL refuses updates and deletes of {} rows at "
      "the source.",
      root.quoted(), names, is_one ? "has" : "have", is_one ? "its" : "their");
}

std::string cure_of(const LostIdentity& table) {
  const std::string cure = fmt::format("At the source, run {}", cure_sql_of(table));
  if (!table.usable_index.empty()) return cure;
  return fmt::format("{} Old rows then go into the WAL whole.{}", cure, key_instead(table));
}

std::string cure_of_leaves(const TableName& root, const std::vector<LostIdentity>& lost) {
  std::string cure = fmt::format("At the source, run {}", fmt::join(statements_of(lost), " "));
  if (lost.size() > kNamedMax) cure += fmt::format(" Do so for the {} others, too.", lost.size() - kNamedMax);
  if (std::ranges::none_of(lost, [](const LostIdentity& leaf) { return leaf.usable_index.empty(); })) return cure;
  cure += " Do so for partitions that are added from now on, too.";
  const auto lacks_key = [](const LostIdentity& leaf) { return leaf.flaw == IdentityFlaw::no_key; };
  if (std::ranges::all_of(lost, lacks_key)) {
    cure +=
        fmt::format(" Or add a primary key to {}, which partitions get by themselves, and to the destinations' tables.",
                    root.quoted());
  }
  return cure;
}

// The identity to choose. FULL is always possible.
std::string cure_sql_of(const LostIdentity& table) {
  std::string identity = "FULL";
  if (!table.usable_index.empty()) {
    identity = table.is_usable_index_primary ? "DEFAULT"
                                             : fmt::format("USING INDEX {}", pg::quote_identifier(table.usable_index));
  }
  return fmt::format("ALTER TABLE {} REPLICA IDENTITY {};", table.name.quoted(), identity);
}

std::string cure_sql_of_leaves(const std::vector<LostIdentity>& lost) {
  return fmt::format("{}", fmt::join(statements_of(lost), "\n"));
}

}  // namespace thalweg::instantiation
