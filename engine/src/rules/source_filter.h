#pragma once

#include <string>
#include <string_view>

#include "rules/rule_set.h"

namespace thalweg::rules {

// Rules of a table about one kind of its changes, for the source's output plugin (docs/formats/row-filters.md).
struct SourceFilter {
  enum class Place : uint8_t {
    none,    // the rules let every change of the kind pass
    source,  // `text` says which changes pass
    engine,  // for `reason`, a few words
  };
  Place place = Place::none;
  std::string text;
  std::string reason;
};

// Of INSERTs or UPDATEs (`kind`). The source is asked only what neither fails nor lacks a value that the engine has,
// and what the source and the engine answer alike: `text` passes exactly the changes that the sets do. A change of
// which the source has not every value that `text` reads is to be sent. `source`: the value of the attribute.
SourceFilter source_filter(const RuleSets& sets, const RuleTable& table, Kinds kind, std::string_view source);

}  // namespace thalweg::rules
