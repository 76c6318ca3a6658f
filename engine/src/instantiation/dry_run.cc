#include "instantiation/dry_run.h"

#include <fmt/format.h>

#include "pg/text_array.h"

namespace thalweg::instantiation {
namespace {

// A DO block takes no parameters and gives no rows: statements go in as array literals, failures come out as settings,
// which end with the transaction. A lock that a session of somebody else's holds for long ends the wait for it.
// Many statements share a subtransaction, and have one each only where one of them fails.
constexpr size_t kTogether = 50;
constexpr int kSecondsMax = 60;
constexpr std::string_view kCancelled = "57014";
constexpr const char* kBlock = R"sql(
DECLARE
  statements text[] := {1};
  tables text[] := {2};
  others text[] := {3};
  decisive bool[] := {4};
  broken text[] := '{{}}';
  failed int[] := '{{}}';
  states text[] := '{{}}';
  messages text[] := '{{}}';
  state text;
  message text;
  together bool;
BEGIN
  FOR head IN 1 .. cardinality(statements) BY {0} LOOP
    BEGIN
      together := NOT (tables[head : head + {0} - 1] && broken OR others[head : head + {0} - 1] && broken);
      IF together THEN EXECUTE array_to_string(statements[head : head + {0} - 1], ';'); END IF;
    EXCEPTION WHEN OTHERS THEN
      together := false;
    END;
    CONTINUE WHEN together;
    FOR i IN head .. least(head + {0} - 1, cardinality(statements)) LOOP
      CONTINUE WHEN tables[i] = ANY(broken) OR others[i] = ANY(broken);
      BEGIN
        EXECUTE statements[i];
      EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
        failed := failed || (i - 1);
        states := states || state;
        messages := messages || message;
        IF decisive[i] THEN broken := broken || tables[i]; END IF;
      END;
    END LOOP;
  END LOOP;
  PERFORM set_config('thalweg.failed', failed::text, true), set_config('thalweg.states', states::text, true),
          set_config('thalweg.messages', messages::text, true);
END
)sql";

constexpr const char* kFailures =
    "SELECT * FROM unnest(current_setting('thalweg.failed')::int[], current_setting('thalweg.states')::text[], "
    "current_setting('thalweg.messages')::text[])";

// Without it, later statements about the same table or type make no sense.
bool is_decisive(const Statement& statement) { return statement.is_essential() && statement.part != Part::primary_key; }

}  // namespace

base::Result<std::vector<Refusal>> dry_run(pg::Connection& connection, const std::vector<Statement>& statements) {
  std::vector<std::string> sql;
  std::vector<std::string> tables;
  std::vector<std::string> others;
  std::vector<std::string> decisive;
  for (const Statement& statement : statements) {
    THALWEG_TRY(statement.check_alone());
    sql.push_back(statement.sql);
    tables.push_back(statement.table.quoted());
    others.push_back(statement.references.value_or(statement.table).quoted());
    decisive.emplace_back(is_decisive(statement) ? "t" : "f");
  }
  const auto literal = [&](const std::vector<std::string>& array) {
    return connection.quote_literal(pg::text_array(array));
  };
  const std::string block =
      fmt::format(fmt::runtime(kBlock), kTogether, literal(sql), literal(tables), literal(others), literal(decisive));
  auto tried =
      connection.script(fmt::format("SET LOCAL lock_timeout = '3s'; SET LOCAL statement_timeout = '{}s'; DO {}",
                                    kSecondsMax, connection.quote_literal(block)));
  if (!tried && tried.error().sqlstate == kCancelled) {
    tried.error().message += fmt::format(
        ". All {} statements have {} s together: what keeps the destination's server is its load, or a definition that "
        "is "
        "very large",
        statements.size(), kSecondsMax);
  }
  if (!tried) return std::unexpected(tried.error());
  THALWEG_ASSIGN(pg::Rows rows, connection.query(kFailures, {}));
  std::vector<Refusal> refusals;
  for (size_t i = 0; i < rows.size(); ++i) {
    refusals.push_back({.statement = static_cast<size_t>(rows.integer(i, 0)),
                        .sqlstate = std::string(rows.text(i, 1)),
                        .message = std::string(rows.text(i, 2))});
  }
  return refusals;
}

}  // namespace thalweg::instantiation
