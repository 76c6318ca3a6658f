#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "control/desired_state.h"
#include "daemon/identity.h"
#include "simulation/scheduler.h"

// An engine process of the world: runs the daemon's own sessions of its part of the stream and, like daemon::Stream,
// makes them anew after every failure.

namespace thalweg::simulation {

inline constexpr uint16_t kReceiverPort = 8700;

struct EngineOptions {
  std::string name;
  std::filesystem::path directory;
  std::string receive_from;  // the engine that captures; empty: this one does
  uint16_t port = 0;         // where it receives
  struct Destination {
    std::string name;    // the server's, and the destination's id
    std::string engine;  // that applies; empty: this one
    uint16_t port = 0;
    bool is_paused = false;
  };
  std::vector<Destination> destinations;  // several: each has a backlog; one: it reads the queue
  control::TableRules rules;
  control::TableTransformations transformations;
  control::DestinationNames names;
  control::StreamParameters parameters;
  uint64_t backlog_segment_bytes = 4096;
};

control::StreamDefinition definition_of(const EngineOptions& options);

// Errors that the world's faults may cause. Any other is a finding.
bool is_expected(base::ErrorCode code);

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
  // Ends the sessions in order, everything that is queued applied, and makes them anew.
  void restart_in_order() { restart_ = true; }
  void set_parallelism(int parallelism) { options_.parameters.parallelism = parallelism; }
  // Of one that has a backlog; the sessions go on.
  void set_paused(size_t destination, bool paused) { options_.destinations[destination].is_paused = paused; }
  // Whether what comes from another engine found no room when somebody last looked.
  bool is_held_back() const { return is_held_back_; }

 private:
  void run();

  Scheduler& scheduler_;
  EngineOptions options_;
  std::vector<std::unique_ptr<Process>> processes_;  // every life of it
  Process* process_ = nullptr;
  std::unique_ptr<daemon::Identity> identity_;
  std::atomic<bool> restart_{false};
  bool is_held_back_ = false;
};

}  // namespace thalweg::simulation
