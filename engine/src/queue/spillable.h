#pragma once

namespace thalweg::queue {

// A consumer whose frames a QueueSpiller moves to disk. Thread-safe towards its agent.
class Spillable {
 public:
  virtual ~Spillable() = default;
  // Moves one batch, if something is to be moved now. Whether it moved any.
  virtual bool move() = 0;
  virtual bool is_spilling() const = 0;
};

}  // namespace thalweg::queue
