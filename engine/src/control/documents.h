#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "control/managed_streams.h"

// The bodies of the control API's answers (engine/contract/*.example.json).

namespace thalweg::control {

std::string rfc3339(base::UnixMicros time);  // UTC, six decimals, "Z"

nlohmann::json identity_document(const IdentityView& identity);
nlohmann::json status_document(const EngineStatus& engine, std::span<const StreamStatus> streams);
nlohmann::json stats_document(const EngineStats& stats);
// One sample of GET /v1/stats/history: statistics, and of each stream what its status says in brief.
nlohmann::json history_sample_document(const EngineStats& stats, std::span<const StreamStatus> streams);
// `now`: ages count to it.
nlohmann::json transactions_document(const telemetry::TransactionSamples& transactions,
                                     std::chrono::steady_clock::time_point now);
nlohmann::json markers_document(const telemetry::MarkerTrail& trail);
nlohmann::json errors_document(const ParkedListView& list);
nlohmann::json dry_run_document(const DryRunView& tried);
nlohmann::json error_tree_document(const telemetry::ParkedTree& tree);
nlohmann::json error_contents_document(const ParkedContentsView& opened);
nlohmann::json failure_document(const base::Error& error);
nlohmann::json side_json(base::ErrorSide side);  // null: unknown
nlohmann::json to_json(const base::Error& error);
nlohmann::json to_json(const ReportedError& error);

// Never fails: bytes that are not UTF-8 (a server's message before the encoding is agreed) are replaced.
std::string to_text(const nlohmann::json& document);

}  // namespace thalweg::control
