#pragma once

#include <optional>
#include <string>

#include "base/ids.h"
#include "rules/condition.h"

namespace thalweg::capture {

// Facts of a change's transaction that rules may read. Plain value.
struct TransactionFacts {
  bool is_committed = false;  // false: it comes in pieces, and nothing else of this is known
  bool is_tag_known = true;
  base::UnixMicros commit_time = {};
  std::optional<std::string> tag = {};  // the replication origin by which it came to the source; none: by none
};

// As rules take it; valid while both live. The commit time is NULL where there is no transaction, and where an origin's
// session has set none: the WAL has a zero then, the year 2000.
inline rules::ChangeContext context_of(const TransactionFacts& transaction, std::string_view source) {
  rules::ChangeContext context{
      .source = source, .is_committed = transaction.is_committed, .is_tag_known = transaction.is_tag_known};
  if (transaction.tag) context.tag = *transaction.tag;
  if (transaction.commit_time.value > base::kPostgresEpochMicros) context.commit_time = transaction.commit_time;
  return context;
}

}  // namespace thalweg::capture
