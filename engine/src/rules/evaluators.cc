#include "rules/evaluators.h"

#include <unordered_map>

namespace thalweg::rules {

const Evaluator* find_evaluator(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const Evaluator*> made;
    for (const auto evaluators :
         {integer_evaluators(), real_evaluators(), numeric_evaluators(), text_evaluators(), text_part_evaluators(),
          time_evaluators(), calendar_evaluators(), bit_evaluators(), byte_evaluators(), digest_evaluators(),
          document_evaluators(), divisor_evaluators()}) {
      for (const Evaluator& evaluator : evaluators) made.emplace(evaluator.name, &evaluator);
    }
    return made;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

}  // namespace thalweg::rules
