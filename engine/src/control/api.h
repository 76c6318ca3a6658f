#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "control/managed_streams.h"
#include "control/stats_history.h"

// Answers of the control API (engine/contract/control-api.md), independent of the transport of its requests.

namespace thalweg::control {

struct ApiRequest {
  std::string method;
  std::string path;
  std::string query;  // behind '?', as it came
  std::string body;
};

struct ApiAnswer {
  int status = 200;
  std::string body;
  std::string type = "application/json";
};

ApiAnswer failure_answer(const base::Error& error);
ApiAnswer failure_answer(base::ErrorCode code, std::string message);

// The most bytes that a request's body may have. None of another path has more than two certificates.
size_t body_bytes_max(std::string_view path);

// Thread-safe.
class Api {
 public:
  // `streams` outlives it.
  Api(ManagedStreams& streams, StatsHistoryOptions history) : streams_(streams), stats_history_(streams, history) {}

  // Never throws: a handler that does is an answer with status 503.
  ApiAnswer answer(const ApiRequest& request);

 private:
  ApiAnswer dispatch(const ApiRequest& request);
  ApiAnswer dispatch_stream(const ApiRequest& request, std::string_view path);
  ApiAnswer dispatch_destination(const ApiRequest& request, const StreamTarget& target, std::string_view path);
  ApiAnswer dispatch_errors(const ApiRequest& request, const StreamTarget& target, std::string_view path);
  ApiAnswer dispatch_conflicts(const ApiRequest& request, const StreamTarget& target, std::string_view path);
  ApiAnswer dispatch_change(const ApiRequest& request, const StreamTarget& target, int64_t error_id,
                            std::string_view number);
  ApiAnswer dispatch_searches(const ApiRequest& request, const std::string& stream, std::string_view path);
  ApiAnswer put_desired(const ApiRequest& request);
  ApiAnswer request_identity(const ApiRequest& request);
  ApiAnswer install_identity(const ApiRequest& request);
  ApiAnswer history(const ApiRequest& request);
  ApiAnswer rehearse(const ApiRequest& request);
  ApiAnswer check_rules(const ApiRequest& request);
  ApiAnswer test_rules(const ApiRequest& request);
  ApiAnswer place_marker(const ApiRequest& request, const std::string& stream);

  using Resolution = base::Result<void> (ManagedStreams::*)(const StreamTarget&, const TableRef&);
  ApiAnswer resolve(const ApiRequest& request, const StreamTarget& target, Resolution resolution);

  ManagedStreams& streams_;
  StatsHistory stats_history_;
};

}  // namespace thalweg::control
