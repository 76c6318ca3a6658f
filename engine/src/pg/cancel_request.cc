#include "pg/cancel_request.h"

#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <spdlog/spdlog.h>

#include "pg/libpq_handles.h"

namespace thalweg::pg {

struct CancelRequest::State {
  explicit State(PGcancel* the_handle) : handle(the_handle) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (handle != nullptr) PQfreeCancel(handle);
  }

  PGcancel* const handle;
  std::mutex mutex;  // guards what follows
  std::condition_variable ended;
  bool is_under_way = false;
  std::string refusal;
};

CancelRequest::CancelRequest(PGconn* conn) : state_(std::make_shared<State>(PQgetCancel(conn))) {}

bool CancelRequest::send(std::chrono::milliseconds patience) const {
  State& state = *state_;
  if (state.handle == nullptr) return true;
  std::unique_lock lock(state.mutex);
  if (!state.is_under_way) {
    state.refusal.clear();
    std::thread([state = state_] {
      std::array<char, 256> reason{};
      const bool is_taken = PQcancel(state->handle, reason.data(), reason.size()) != 0;
      const std::lock_guard end_lock(state->mutex);
      if (!is_taken) state->refusal = tidy_message(reason.data());
      state->is_under_way = false;
      state->ended.notify_all();
    }).detach();
    state.is_under_way = true;  // not before the thread is there: making it may fail
  }
  const bool has_ended = state.ended.wait_for(lock, patience, [&] { return !state.is_under_way; });
  if (!state.refusal.empty()) spdlog::warn("a statement could not be cancelled: {}", state.refusal);
  return has_ended;
}

}  // namespace thalweg::pg
