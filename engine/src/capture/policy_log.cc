#include "capture/policy_log.h"

#include <string>

#include "base/log.h"
#include "pg/connection.h"

namespace thalweg::capture {

void PolicyLog::note(const rules::Judgement& judgement, const rules::RuleTable& table, const lcr::FrameView& change) {
  const rules::Rule& rule = *judgement.by_policy;
  const auto now = clock_.steady_now();
  const auto [found, is_new] = entries_.try_emplace(&rule);
  Entry& entry = found->second;
  ++entry.changes;
  if (!is_new && now - entry.logged < kInterval) return;
  const std::string name = pg::quote_table(table.schema, table.name);
  const std::string lsn = base::to_string(change.lsn());
  const bool has_failed = judgement.failure != rules::Failure::none;
  base::log_event(
      base::LogLevel::warning, "rule_policy_decided",
      {{"table", name},
       {"rule", rule.name},
       {"counted_as", rule.on_error == rules::OnError::as_true ? "true" : "not true"},
       {"because", has_failed ? rules::message_of(judgement.failure) : "a value that it needs did not come"},
       {"sqlstate", has_failed ? rules::sqlstate_of(judgement.failure) : ""},
       {"operation", rules::operation_of(change.kind())},
       {"lsn", lsn},
       {"xid", uint64_t{change.xid().value}},
       {"changes", entry.changes}});
  entry = {.logged = now, .changes = 0};
}

}  // namespace thalweg::capture
