#pragma once

#include <string>

#include "instantiation/dry_run.h"
#include "instantiation/shape.h"

// Cures for refusals by the destination. Pure.

namespace thalweg::instantiation {

struct Cure {
  std::string words;
  std::string sql;
  bool ends_the_rehearsal = false;  // what was tried after it says nothing
};
// Versions as 150020.
Cure cure_of_refusal(const Refusal& refusal, int source_version, int destination_version);

// Gives the destination's enum the labels of the source's, in the source's order. Empty when it has them all.
std::string missing_labels_sql(const TypeShape& source, const TypeShape& destination, const pg::Connection& quoting);

}  // namespace thalweg::instantiation
