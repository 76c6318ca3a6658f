#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "telemetry/log_search.h"

// GET and POST /v1/streams/{id}/searches: searches in the WAL that is kept of the stream's source.

namespace thalweg::control {

base::Result<telemetry::SearchRequest> parse_search(std::string_view text);  // fails with invalid_request

struct SearchQuery {
  telemetry::SearchPart part;
  bool is_whole = false;  // longer texts of values
};
// "after=100&limit=50&whole=1", each of them or none. Fails with invalid_request.
base::Result<SearchQuery> parse_search_query(std::string_view query);

nlohmann::json searches_document(const telemetry::SearchList& list);
nlohmann::json search_status_document(const telemetry::SearchStatus& status);
nlohmann::json search_document(const telemetry::FoundPart& found, bool is_whole);

}  // namespace thalweg::control
