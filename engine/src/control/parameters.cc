#include "control/parameters.h"

#include <algorithm>
#include <array>
#include <type_traits>

namespace thalweg::control {
namespace {

constexpr std::array<std::string_view, 3> kCommitSerializations = {"full", "dependent_transactions", "none"};

constexpr std::array<std::string_view, 2> kTableTroubles = {"stop_stream", "stop_table"};

constexpr std::array<std::string_view, 3> kSourcePlugins = {"auto", "pgoutput", "thalweg"};

constexpr std::array<std::string_view, 3> kCompressions = {"none", "lz4", "zstd"};

using P = StreamParameters;
const std::array kSpecs = {
    ParameterSpec{"parallelism", true, &P::parallelism, 1, 64},
    ParameterSpec{"commit_serialization", true, &P::commit_serialization, 0, 0, kCommitSerializations},
    ParameterSpec{"disable_on_error", true, &P::disable_on_error},
    ParameterSpec{"error_policies", true, &P::error_policies},
    ParameterSpec{"conflict_handlers", true, &P::conflict_handlers},
    ParameterSpec{"conflict_detection", false, &P::conflict_detection},
    ParameterSpec{"statement_handlers", false, &P::statement_handlers},
    ParameterSpec{"conflict_retention_days", true, &P::conflict_retention_days, 1, 3650},
    ParameterSpec{"on_table_trouble", false, &P::on_table_trouble, 0, 0, kTableTroubles},
    ParameterSpec{"data_layer", true, &P::data_layer},
    ParameterSpec{"group_size", true, &P::group_size, 1, 100'000},
    ParameterSpec{"txn_lcr_spill_threshold", true, &P::txn_lcr_spill_threshold, 100, 100'000'000},
    ParameterSpec{"txn_age_spill_threshold", true, &P::txn_age_spill_threshold, 1, 31'536'000},
    ParameterSpec{"spill_limit_mb", true, &P::spill_limit_mb, 16, 16'777'216},
    ParameterSpec{"memory_budget_mb", false, &P::memory_budget_mb, 32, 65'536},
    ParameterSpec{"metadata_cache_mb", false, &P::metadata_cache_mb, 1, 4096},
    ParameterSpec{"heartbeat_interval", false, &P::heartbeat_interval, 0, 3600},
    ParameterSpec{"source_plugin", false, &P::source_plugin, 0, 0, kSourcePlugins},
    ParameterSpec{"queue_size", false, &P::queue_size, 64, 1'048'576},
    ParameterSpec{"queue_memory_mb", false, &P::queue_memory_mb, 1, 16'384},
    ParameterSpec{"queue_spill_limit_mb", true, &P::queue_spill_limit_mb, 16, 16'777'216},
    ParameterSpec{"propagation_compression", false, &P::propagation_compression, 0, 0, kCompressions},
    ParameterSpec{"propagation_ack_interval_ms", false, &P::propagation_ack_interval_ms, 1, 60'000},
    ParameterSpec{"propagation_window_mb", false, &P::propagation_window_mb, 4, 4096},
    ParameterSpec{"copy_workers", false, &P::copy_workers, 1, 32},
    ParameterSpec{"copy_range_rows", false, &P::copy_range_rows, 1000, 1'000'000'000},
    ParameterSpec{"copy_index_memory_mb", false, &P::copy_index_memory_mb, 1, 65'536},
    ParameterSpec{"initial_copy", false, &P::initial_copy},
};

}  // namespace

std::span<const ParameterSpec> parameter_specs() { return kSpecs; }

const ParameterSpec* find_parameter(std::string_view name) {
  auto found = std::ranges::find(kSpecs, name, &ParameterSpec::name);
  return found == kSpecs.end() ? nullptr : &*found;
}

nlohmann::json value_of(const ParameterSpec& spec, const StreamParameters& parameters) {
  return std::visit(
      [&](auto field) -> nlohmann::json {
        const auto& value = parameters.*field;
        if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(value)>>) {
          return spec.values[static_cast<size_t>(value)];
        } else {
          return value;
        }
      },
      spec.field);
}

StreamParameters without_live(StreamParameters parameters) {
  static const StreamParameters defaults;
  for (const ParameterSpec& spec : kSpecs) {
    if (spec.live) std::visit([&](auto field) { parameters.*field = defaults.*field; }, spec.field);
  }
  return parameters;
}

bool needs_restart(const StreamParameters& from, const StreamParameters& to) {
  return std::ranges::any_of(kSpecs, [&](const ParameterSpec& spec) {
    return !spec.live && std::visit([&](auto field) { return from.*field != to.*field; }, spec.field);
  });
}

bool capture_needs_restart(const StreamParameters& from, const StreamParameters& to) {
  return from.heartbeat_interval != to.heartbeat_interval || from.source_plugin != to.source_plugin ||
         from.queue_size != to.queue_size || from.queue_memory_mb != to.queue_memory_mb;
}

}  // namespace thalweg::control
