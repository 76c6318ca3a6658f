#pragma once

#include <span>
#include <string>
#include <string_view>

#include "control/managed_streams.h"

// The same numbers as /v1/status and /v1/stats in Prometheus' text exposition format 0.0.4. Every name is listed in
// engine/contract/metrics.json; a test compares the two.

namespace thalweg::control {

struct MetricSpec {
  std::string_view name;
  std::string_view type;    // counter, gauge, histogram
  std::string_view unit;    // "" where it is a plain number
  std::string_view labels;  // comma-separated
  std::string_view help;
};

std::span<const MetricSpec> metric_specs();

std::string metrics_text(const EngineStatus& engine, std::span<const StreamStatus> streams, const EngineStats& stats);

}  // namespace thalweg::control
