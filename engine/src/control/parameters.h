#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include <nlohmann/json.hpp>

#include "control/conflict_detection.h"
#include "control/conflict_handlers.h"
#include "control/error_policies.h"
#include "control/statement_handlers.h"

// Stream parameters. The table below is the engine's side of engine/contract/parameters.json; a test compares the two.

namespace thalweg::control {

// The parameters of a few words; their names are in parameters.cc, in this order.
enum class CommitSerialization : uint8_t { full, dependent_transactions, none };
enum class OnTableTrouble : uint8_t { stop_stream, stop_table };
enum class SourcePlugin : uint8_t { automatic, pgoutput, thalweg };
enum class PropagationCompression : uint8_t { none, lz4, zstd };

// Immutable once parsed; every field holds its default unless the desired document gives another value.
struct StreamParameters {
  // apply
  int64_t parallelism = 4;
  CommitSerialization commit_serialization = CommitSerialization::dependent_transactions;
  bool disable_on_error = true;
  ErrorPolicyDefinitions error_policies;
  ConflictHandlerDefinitions conflict_handlers;
  ConflictDetectionDefinition conflict_detection;
  StatementHandlerDefinitions statement_handlers;
  int64_t conflict_retention_days = 30;
  OnTableTrouble on_table_trouble = OnTableTrouble::stop_stream;
  bool data_layer = true;
  int64_t group_size = 20'000;               // LCRs
  int64_t txn_lcr_spill_threshold = 10'000;  // LCRs
  int64_t txn_age_spill_threshold = 900;     // seconds
  int64_t spill_limit_mb = 10'240;
  int64_t memory_budget_mb = 256;
  int64_t metadata_cache_mb = 16;
  // capture
  int64_t heartbeat_interval = 10;  // seconds; 0: none
  SourcePlugin source_plugin = SourcePlugin::automatic;
  // queue
  int64_t queue_size = 16'384;  // LCRs
  int64_t queue_memory_mb = 64;
  int64_t queue_spill_limit_mb = 10'240;
  // propagation
  PropagationCompression propagation_compression = PropagationCompression::lz4;
  int64_t propagation_ack_interval_ms = 100;
  int64_t propagation_window_mb = 64;
  // instantiation
  int64_t copy_workers = 2;
  int64_t copy_range_rows = 500'000;
  int64_t copy_index_memory_mb = 256;
  bool initial_copy = true;

  // Whether a table's trouble stops the table alone; else it stops the stream.
  bool stops_tables() const { return on_table_trouble == OnTableTrouble::stop_table; }
  uint64_t queue_spill_limit_bytes() const { return static_cast<uint64_t>(queue_spill_limit_mb) << 20; }
  bool operator==(const StreamParameters&) const = default;
};

struct ParameterSpec {
  std::string_view name;
  bool live;  // takes effect while the stream runs
  std::variant<int64_t StreamParameters::*, bool StreamParameters::*, CommitSerialization StreamParameters::*,
               OnTableTrouble StreamParameters::*, SourcePlugin StreamParameters::*,
               PropagationCompression StreamParameters::*, ErrorPolicyDefinitions StreamParameters::*,
               ConflictHandlerDefinitions StreamParameters::*, ConflictDetectionDefinition StreamParameters::*,
               StatementHandlerDefinitions StreamParameters::*>
      field;
  int64_t minimum = 0;  // integers only
  int64_t maximum = 0;
  std::span<const std::string_view> values = {};  // enums only: their names
};

// The value as documents have it.
nlohmann::json value_of(const ParameterSpec& spec, const StreamParameters& parameters);

std::span<const ParameterSpec> parameter_specs();
const ParameterSpec* find_parameter(std::string_view name);

// With the defaults of those that take effect while the stream runs.
StreamParameters without_live(StreamParameters parameters);
// Whether going from one to the other needs more than live changes.
bool needs_restart(const StreamParameters& from, const StreamParameters& to);
// The same, of those of capture and queue alone, which a stream's destinations share.
bool capture_needs_restart(const StreamParameters& from, const StreamParameters& to);

}  // namespace thalweg::control
