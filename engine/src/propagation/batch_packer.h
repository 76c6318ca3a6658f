#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "propagation/batch_codec.h"
#include "propagation/send_window.h"
#include "propagation/sender.h"
#include "telemetry/agent.h"
#include "telemetry/marker_log.h"

namespace thalweg::propagation {

// State that the sender's threads share with each other and the samplers. Every field has one writer, named behind it.
struct SenderShared {
  telemetry::TimeAccount packer_time;                     // packer: the component's time
  telemetry::TimeAccount link_time;                       // link
  telemetry::StateText packer_state{"INITIALIZING"};      // packer
  telemetry::Counter lcrs, batches, bytes, packed_bytes;  // packer
  telemetry::Counter latency_us;                          // packer: age of the last commit when packed
  telemetry::Counter bytes_sent, batches_resent, acks;    // link
  telemetry::Counter breaks, round_trip_us, kernel_round_trip_us, peer_free_bytes;  // link
  telemetry::MarkerLog markers;                                                     // packer
  std::atomic<uint64_t> durable{0};          // link (release), capture and others read (acquire)
  std::atomic<bool> connected{false};        // link (release)
  std::atomic<bool> receiver_paused{false};  // link (relaxed): its last ACK said that its queue is full
  std::atomic<bool> drain{false};            // owner (release)
  std::atomic<bool> stop{false};             // owner, or whoever meets the error that ends it (release)
};

// Takes frames out of the queue and packs them into batches in the send window. Owner: the packing thread.
class BatchPacker {
 public:
  // `version`: of the protocol, the receiver's choice. `wake_link` is called after every batch.
  BatchPacker(const SenderOptions& options, Compression compression, uint16_t version, SendWindow& window,
              SenderShared& shared, std::function<void()> wake_link);

  // Until shared.stop, or, with shared.drain, until the queue is empty and everything is acknowledged. Fails with what
  // browsing fails with.
  base::Result<void> run();

 private:
  using Time = std::chrono::steady_clock::time_point;

  bool is_known_there(const std::byte* frame) const;
  // The next frame that the receiver knows.
  const std::byte* browse(std::chrono::microseconds timeout);
  bool await_frame();
  std::span<std::byte> await_room();
  size_t fill(std::span<std::byte> raw);
  void take_frame(size_t bytes);
  bool linger(Time opened);
  void publish(std::span<std::byte> message, size_t raw_bytes);
  bool stopping() const { return shared_.stop.load(std::memory_order_acquire); }
  bool draining() const { return shared_.drain.load(std::memory_order_acquire); }

  const SenderOptions& options_;
  const Compression compression_;
  const uint16_t version_;
  SendWindow& window_;
  SenderShared& shared_;
  std::function<void()> wake_link_;
  BatchCompressor compressor_;
  std::vector<std::byte> raw_;         // a batch before compression; empty without compression
  const std::byte* frame_ = nullptr;   // browsed, not dequeued
  std::optional<base::Error> failed_;  // why browsing failed
  size_t frame_bytes_ = 0;
  size_t frame_taken_ = 0;  // bytes of it that are in batches: a long frame spans several
  base::UnixMicros last_commit_;
  bool begun_ = false;  // the frame before was a BEGIN: a COMMIT now is a marker's
  Time last_published_{};
};

}  // namespace thalweg::propagation
