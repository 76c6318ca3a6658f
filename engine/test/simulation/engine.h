#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apply/parameters.h"
#include "base/error.h"
#include "daemon/identity.h"
#include "daemon/peering.h"
#include "propagation/link.h"
#include "simulation/scheduler.h"

// An engine process of the world: builds the components of its part of the path from the engine's own libraries and,
// like daemon::Stream, builds them anew whenever one of them ends.

namespace thalweg::simulation {

inline constexpr uint16_t kReceiverPort = 8700;

enum class Part : uint8_t {
  whole,       // capture, queue, apply
  sending,     // capture, queue, sender
  receiving,   // receiver, queue, apply
  fanning_out  // capture, queue, a backlog and an apply for each destination
};

struct EngineOptions {
  std::string name;
  Part part = Part::whole;
  std::filesystem::path directory;
  size_t queue_slots = 512;
  size_t queue_bytes = 256 * 1024;
  apply::ApplyParameters apply;
  propagation::Compression compression = propagation::Compression::none;
  size_t batch_bytes = 4096;
  std::chrono::seconds heartbeat_interval{0};
  // Of the path's two ends, what is this engine's:
  std::string destination = "destination";  // server's name
  std::string peer;                         // the other engine
  uint16_t port = kReceiverPort;            // where the one that receives listens
  struct Destination {
    std::string name;
    std::string engine;  // that applies; empty: this one
    uint16_t port = 0;
  };
  std::vector<Destination> destinations;  // where it fans out
  uint64_t backlog_segment_bytes = 4096;
};

class Pipeline;

// What the world's faults may well cause. Anything else is a finding.
bool is_expected(base::ErrorCode code);
// What an operator may be told who executes a parked transaction.
bool is_expected_of_operator(base::ErrorCode code);
// The parked transaction that an operator tries next: mostly the oldest.
template <typename Parked>
int64_t pick_parked(Scheduler& scheduler, const std::vector<Parked>& parked) {
  return parked[scheduler.chance(4) ? scheduler.random(parked.size()) : 0].id;
}

class Engine {
 public:
  Engine(Scheduler& scheduler, EngineOptions options);
  ~Engine();

  void start();
  // kill -9.
  void crash();
  bool is_up() const { return process_ != nullptr; }
  const Process* process() const { return process_; }
  const EngineOptions& options() const { return options_; }
  // Ends the components in order, everything that is queued applied, and builds them anew.
  void restart_in_order() { restart_ = true; }
  void set_parallelism(int parallelism) { options_.apply.parallelism = parallelism; }
  // What comes from the other engine finds no room.
  bool is_held_back() const;

 private:
  void run();
  void run_fan_out();
  void execute_parked(Pipeline& pipeline);
  // Until something of it fails, or it is to be restarted in order (no error).
  std::optional<base::Error> run(Pipeline& pipeline);

  Scheduler& scheduler_;
  EngineOptions options_;
  std::vector<std::unique_ptr<Process>> processes_;  // every life of it
  Process* process_ = nullptr;
  const Pipeline* pipeline_ = nullptr;  // that runs
  std::unique_ptr<daemon::Identity> identity_;
  std::unique_ptr<daemon::Peering> peering_;  // where it fans out
  std::atomic<bool> restart_{false};
};

}  // namespace thalweg::simulation
