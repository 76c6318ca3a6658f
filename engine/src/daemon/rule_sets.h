#pragma once

#include <string>

#include "capture/stream_rules.h"
#include "control/desired_state.h"
#include "transform/step.h"

// The rules and transformations of the desired document as those components take them that keep them.

namespace thalweg::daemon {

rules::RuleSets rule_sets(const control::RulesDefinition& definition);
// `key`: of keyed masks; empty where it is only asked whether the steps fit.
transform::Steps steps_of(const control::Transformations& definitions, const std::string& key);
capture::StreamRules stream_rules(const control::StreamDefinition& definition);
// Whether a rule of the stream or of one of its destinations reads its transaction's tag or commit time.
bool reads_transaction(const control::StreamDefinition& definition);
capture::StreamRules destination_rules(const control::Delivery& delivery);

}  // namespace thalweg::daemon
