// Feeds foreign text to the parser, types what it accepts against a table of every kind of column, and evaluates it:
// all of it is total and memory-safe, a refusal lies inside the text, and evaluating twice gives one verdict.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rules/condition.h"
#include "rules/parser.h"
#include "rules/rule_samples.h"
#include "rules/sample_columns.h"

namespace thalweg::rules {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// NULL everywhere, but for the texts, the integers and the document.
SampleFrame row() {
  SampleRow values;
  for (const SampleColumn& column : kSampleColumns) {
    if (column.type == Type::int4) {
      values.push_back(SampleValue::int4(3));
    } else if (column.type == Type::text || column.type == Type::varchar) {
      values.push_back(SampleValue::of("grö%_\\3"));
    } else if (column.type == Type::jsonb) {
      values.push_back(SampleValue::of("\1{\"a\": [1, \"b\\\\c\", {\"n\": null}], \"größe\": \"3\"}"));
    } else {
      values.push_back(SampleValue::null());
    }
  }
  return SampleFrame::insert(values);
}

void try_text(std::string_view text) {
  const auto parsed = parse(text);
  if (!parsed) {
    require(parsed.error().offset <= text.size() && parsed.error().line >= 1 && parsed.error().column >= 1);
    return;
  }
  static const RuleTable kTable = sample_columns_table();
  static const SampleFrame kRow = row();
  auto condition = Condition::compile(text, kTable);
  if (!condition) {
    require(condition.error().offset <= text.size());
    return;
  }
  static Scratch scratch;
  const ChangeContext context{.source = "source", .tag = {}, .commit_time = {}};
  const Verdict once = condition->evaluate(kRow.view(), context, scratch);
  const Verdict again = condition->evaluate(kRow.view(), context, scratch);
  require(once.outcome == again.outcome && once.failure == again.failure);
}

}  // namespace
}  // namespace thalweg::rules

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  thalweg::rules::try_text({reinterpret_cast<const char*>(data), size});
  return 0;
}
