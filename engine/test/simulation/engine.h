#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apply/parameters.h"
#include "base/error.h"
#include "propagation/link.h"
#include "simulation/scheduler.h"

// An engine process of the world: builds the components of its part of the path from the engine's own libraries and,
// like daemon::Stream, builds them anew whenever one of them ends.

namespace thalweg::simulation {

enum class Part : uint8_t {
  whole,     // capture, queue, apply
  sending,   // capture, queue, sender
  receiving  // receiver, queue, apply
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
};

class Engine {
 public:
  Engine(Scheduler& scheduler, EngineOptions options) : scheduler_(scheduler), options_(std::move(options)) {}

  void start();
  // kill -9.
  void crash();
  bool is_up() const { return process_ != nullptr; }
  const Process* process() const { return process_; }
  const EngineOptions& options() const { return options_; }
  // Ends the components in order, everything that is queued applied, and builds them anew.
  void restart_in_order() { restart_ = true; }
  void set_parallelism(int parallelism) { options_.apply.parallelism = parallelism; }
  uint64_t pipelines() const { return pipelines_; }

 private:
  void run();
  std::optional<base::Error> run_whole();
  std::optional<base::Error> run_sending();
  std::optional<base::Error> run_receiving(class ReceiverPortOwner& port);
  template <typename Failure, typename States>
  std::optional<base::Error> watch(Failure failure, States states);

  Scheduler& scheduler_;
  EngineOptions options_;
  std::vector<std::unique_ptr<Process>> processes_;
  Process* process_ = nullptr;
  bool restart_ = false;
  uint64_t pipelines_ = 0;
};

}  // namespace thalweg::simulation
