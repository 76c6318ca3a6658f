#include "instantiation/table_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

namespace thalweg::instantiation {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 6> kNames = {"DROPPED",     "REPLACED",           "RENAMED",
                                                    "UNPUBLISHED", "PARTITIONS CHANGED", "UNIDENTIFIED"};
constexpr size_t kNamedMax = 5;  // partitions that a reason names

// "a, b and 3 more", each once
class Listed {
 public:
  void add(const TableName& name) {
    if (!added_.insert(name).second) return;
    if (added_.size() <= kNamedMax) names_ += (names_.empty() ? "" : ", ") + name.quoted();
  }
  bool any() const { return !added_.empty(); }
  std::string text() const {
    return added_.size() > kNamedMax ? fmt::format("{} and {} more", names_, added_.size() - kNamedMax) : names_;
  }

 private:
  std::string names_;
  std::set<TableName> added_;
};

void add_sentence(std::string& to, const Listed& partitions, std::string_view what) {
  if (!partitions.any()) return;
  to += fmt::format("{}{} {}", to.empty() ? "" : " ", partitions.text(), what);
}

std::string changed_partitions(const TableIdentity& was, const SourceTable& now, std::span<const WrittenLeaf> written,
                               const SourceTables& source) {
  Listed gone, emptied, attached, away, outside;
  for (const Leaf& leaf : was.leaves) {
    const auto found = std::ranges::find(now.now.leaves, leaf.relation, &Leaf::relation);
    if (found == now.now.leaves.end()) {
      gone.add(leaf.name);
    } else if (found->file != leaf.file) {
      emptied.add(leaf.name);
    } else if (leaf.attached != 0 && found->attached != leaf.attached) {
      away.add(found->name);
    }
  }
  for (const WrittenLeaf& leaf : written) {
    if (leaf.truncated) {
      if (source.tells_of(leaf)) emptied.add(leaf.name);
      continue;
    }
    const bool is_missed = !was.has_leaf(leaf.relation) && !now.now.has_leaf(leaf.relation);
    if (is_missed && source.tells_of(leaf)) gone.add(leaf.name);
  }
  for (const Leaf& leaf : now.now.leaves) {
    const auto is_known = [&](const Leaf& known) {
      return known.relation == leaf.relation && known.file == leaf.file && known.name == leaf.name;
    };
    if (std::ranges::any_of(was.leaves, is_known)) continue;
    const auto is_it = [&](uint32_t relation) { return relation == leaf.relation; };
    const bool is_new = !was.has_leaf(leaf.relation);
    if (std::ranges::any_of(now.outside_wal, is_it)) {
      outside.add(leaf.name);
    } else if (std::ranges::any_of(now.with_rows, is_it)) {
      attached.add(leaf.name);
    } else if (is_new && leaf.file != leaf.first_file()) {
      emptied.add(leaf.name);
    }
  }
  std::string reason;
  add_sentence(reason, emptied, "was truncated or rewritten, which PostgreSQL does not publish of a partition alone.");
  add_sentence(reason, attached, "was attached with rows, which PostgreSQL does not publish.");
  add_sentence(reason, away, "was detached and attached again: what was written to it meanwhile was not published.");
  add_sentence(reason, gone, "was detached or dropped: its rows are still at the destination.");
  add_sentence(reason, outside, "is unlogged or foreign: its changes are in no WAL.");
  return reason;
}

// PostgreSQL looks at the relation whose row it is: a partition does not get its root's REPLICA IDENTITY. A relation
// that is not published needs none.
bool is_unidentified(const TableIdentity& was, const SourceTable& now) {
  return !was.inserts_only && now.published == Published::changes && !now.unidentified.empty();
}

TableTrouble unidentified_trouble(const SourceTable& now) {
  const bool is_itself = now.unidentified.front().relation == now.now.relation;
  return {.kind = TroubleKind::unidentified,
          .reason = is_itself ? reason_of(now.unidentified.front()) : reason_of_leaves(now.name, now.unidentified),
          .since = {},
          .now = now.name,
          .cure = is_itself ? cure_of(now.unidentified.front()) : cure_of_leaves(now.name, now.unidentified),
          .cure_sql = is_itself ? cure_sql_of(now.unidentified.front()) : cure_sql_of_leaves(now.unidentified)};
}

// Empty: all that was captured of it goes on arriving, and nothing else.
std::string wrongly_published(const TableName& name, const TableIdentity& was, const SourceTable& now) {
  const bool same_entry = was.publication_entry == 0 || now.now.publication_entry == 0 ||
                          now.now.publication_entry == was.publication_entry;
  const Published wanted = was.inserts_only ? Published::inserts : Published::changes;
  if (same_entry && (now.published == wanted || now.published == Published::unknown)) return {};
  if (was.inserts_only && now.published == Published::changes) {
    return fmt::format(
        "{} was put into a publication of the stream that sends updates and deletes, which it has given up.",
        name.quoted());
  }
  if (!was.inserts_only && now.published == Published::inserts) {
    return fmt::format("{} was put into the stream's publication of inserts: updates and deletes are missing.",
                       name.quoted());
  }
  return fmt::format("{} was taken out of the stream's publication, or published in part: changes are missing.",
                     name.quoted());
}

}  // namespace

std::string to_json(const TableIdentity& identity) {
  json leaves = json::array();
  for (const Leaf& leaf : identity.leaves) {
    json entry = {leaf.relation, leaf.file, leaf.name.schema, leaf.name.name};
    // Without it the text is as an older engine has written it, which statements compare with what is stored.
    if (leaf.attached != 0) entry.push_back(leaf.attached);
    leaves.push_back(std::move(entry));
  }
  json out = {{"relation", identity.relation}, {"entry", identity.publication_entry}, {"leaves", std::move(leaves)}};
  if (identity.inserts_only) out["inserts_only"] = true;
  return out.dump();
}

TableIdentity identity_from_json(std::string_view text) {
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object()) return {};
  TableIdentity identity;
  identity.relation = document.value("relation", 0U);
  identity.publication_entry = document.value("entry", 0U);
  identity.inserts_only = document.value("inserts_only", false);
  for (const json& leaf : document.value("leaves", json::array())) {
    if (!leaf.is_array() || leaf.size() < 4 || leaf.size() > 5) return {};  // an older engine's have four
    identity.leaves.push_back({.relation = leaf[0],
                               .file = leaf[1],
                               .name = {leaf[2].get<std::string>(), leaf[3].get<std::string>()},
                               .attached = leaf.size() == 5 ? leaf[4].get<uint32_t>() : 0});
  }
  return identity;
}

bool TableIdentity::has_leaf(uint32_t leaf) const {
  return std::ranges::find(leaves, leaf, &Leaf::relation) != leaves.end();
}

const SourceTable* SourceTables::find(uint32_t relation) const {
  const auto found = std::ranges::find_if(tables, [&](const auto& table) { return table.now.relation == relation; });
  return found == tables.end() ? nullptr : &*found;
}

bool SourceTables::tells_of(const WrittenLeaf& leaf) const {
  const bool is_later = running_from != 0 && static_cast<int32_t>(leaf.xid - running_from) >= 0;
  return leaf.commit_lsn < applied && !is_later && !running.contains(leaf.xid);
}

SourceTable* SourceTables::find(uint32_t relation) {
  const auto found = std::ranges::find_if(tables, [&](const auto& table) { return table.now.relation == relation; });
  return found == tables.end() ? nullptr : &*found;
}

const SourceTable* SourceTables::find(const TableName& name) const {
  const auto found = std::ranges::find(tables, name, &SourceTable::name);
  return found == tables.end() ? nullptr : &*found;
}

std::string_view name_of(TroubleKind kind) { return kNames.at(static_cast<size_t>(kind)); }

std::optional<TroubleKind> trouble_kind(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<TroubleKind>(found - kNames.begin());
}

std::string cure_of(const TableTrouble& trouble, bool stopped) {
  switch (trouble.kind) {
    case TroubleKind::dropped:
      return "Take the table out of the stream; or create it again at the source and copy it again.";
    case TroubleKind::replaced:
      return "Copy the table again: the destination's rows are deleted and the new table's are copied. If rules of "
             "tables do not fit the new table, correct them or narrow their scope first: the copy cannot begin before.";
    case TroubleKind::renamed:
      return "Follow the rename: the stream's rules and the destination's table get the new name.";
    case TroubleKind::unpublished:
      return "Copy the table again: it is published again, its rows at the destination are deleted and copied anew.";
    case TroubleKind::unidentified:
      return trouble.cure;
    case TroubleKind::partitions_changed:
      return stopped ? "Copy the table again: partitions that the destination lacks are made."
                     : "Copy the table again: partitions that the destination lacks are made. Or mend the destination "
                       "by hand (drop or empty the partition that went; make and fill the one that came), then accept "
                       "the partitions as they are.";
  }
  return {};
}

std::optional<TableTrouble> examine(const TableName& name, const TableIdentity& was, const SourceTables& now,
                                    std::span<const WrittenLeaf> written) {
  const SourceTable* const named = now.find(name);
  const SourceTable* const captured = now.find(was.relation);
  TableTrouble trouble;
  if (captured == nullptr || captured->name != name) {
    if (named != nullptr) {
      trouble.kind = TroubleKind::replaced;
      trouble.reason = captured == nullptr
                           ? fmt::format("{} was dropped, and another table was created under its name.", name.quoted())
                           : fmt::format("The table that was captured as {} is {} now, and another one has its name.",
                                         name.quoted(), captured->name.quoted());
      return trouble;
    }
    if (captured == nullptr) {
      trouble.reason = fmt::format("{} was dropped at the source.", name.quoted());
      return trouble;
    }
    trouble.kind = TroubleKind::renamed;
    trouble.now = captured->name;
    trouble.reason = fmt::format("{} was renamed to {} at the source. Its changes still go to the destination's table.",
                                 name.quoted(), captured->name.quoted());
  }
  if (std::string wrong = wrongly_published(name, was, *captured); !wrong.empty()) {
    trouble.kind = TroubleKind::unpublished;
    trouble.reason = std::move(wrong);
    return trouble;
  }
  if (std::string changed = changed_partitions(was, *captured, written, now); !changed.empty()) {
    trouble.kind = TroubleKind::partitions_changed;
    trouble.reason = fmt::format("Partitions of {}: {}", name.quoted(), changed);
    return trouble;
  }
  const bool is_renamed = trouble.kind == TroubleKind::renamed;
  if (!is_unidentified(was, *captured)) return is_renamed ? std::optional(std::move(trouble)) : std::nullopt;
  // The more pressing of the two: somebody's application fails.
  TableTrouble unidentified = unidentified_trouble(*captured);
  if (is_renamed) {
    unidentified.reason = fmt::format("{} {}", trouble.reason, unidentified.reason);
    unidentified.cure += " " + cure_of(trouble, false);
  }
  return unidentified;
}

}  // namespace thalweg::instantiation
