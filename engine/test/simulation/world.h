#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace thalweg::simulation {

struct WorldResult {
  bool ok = false;
  std::string failure;
  uint64_t steps = 0;
  double simulated_seconds = 0;
  uint64_t fingerprint = 0;
  uint64_t transactions = 0;
  uint64_t faults = 0;
  uint64_t migrations = 0;  // of rows, into a subset or out of it
  uint64_t conflicts = 0;   // in the conflict logs
};

// Lives through everything that `seed` decides: a source and its clients, destinations, engines, and their faults; then
// without faults, until the destination has all of the source. `directory` is for files of this world.
WorldResult run_world(uint64_t seed, const std::filesystem::path& directory);

}  // namespace thalweg::simulation
