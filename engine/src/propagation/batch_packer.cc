#include "propagation/batch_packer.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "lcr/frame.h"

namespace thalweg::propagation {

using namespace std::chrono_literals;
using telemetry::Activity;
using telemetry::ActivityScope;

namespace {

// How long a wait lasts before the stop flags are looked at again.
constexpr std::chrono::milliseconds kSlice{100};

}  // namespace

BatchPacker::BatchPacker(const SenderOptions& options, Compression compression, uint16_t version, SendWindow& window,
                         SenderShared& shared, std::function<void()> wake_link)
    : options_(options),
      compression_(compression),
      version_(version),
      window_(window),
      shared_(shared),
      wake_link_(std::move(wake_link)),
      compressor_(compression, options.zstd_level),
      raw_(compression == Compression::none ? 0 : options.batch_bytes) {}

base::Result<void> BatchPacker::run() {
  while (!stopping() && await_frame()) {
    // Before a wait for room: the queue may move what this consumer does not take.
    if (frame_taken_ == 0) options_.frames->release();
    const auto message = await_room();
    if (message.empty()) break;
    shared_.packer_time.enter(Activity::busy);
    shared_.packer_state.set("SENDING LCRS");
    const auto direct = message.subspan(kBatchHeaderBytes, options_.batch_bytes);
    publish(message, fill(compression_ == Compression::none ? direct : std::span(raw_)));
  }
  if (failed_) return std::unexpected(*failed_);
  shared_.packer_time.enter(Activity::network);
  while (!stopping() && !window_.await_empty(kSlice)) shared_.packer_state.set("WAITING FOR ACKNOWLEDGEMENT");
  shared_.packer_time.enter(Activity::idle);
  return {};
}

// An earlier receiver would take a frame that it does not know for corrupt.
bool BatchPacker::is_known_there(const std::byte* frame) const {
  if (version_ >= kVersionWithTruncatedPartitions || lcr::kind_of(frame) < lcr::FrameKind::partition) return true;
  return version_ >= kVersionWithPartitions && !lcr::FrameView::trusted(frame).has(lcr::kPartitionTruncated);
}

const std::byte* BatchPacker::browse(std::chrono::microseconds timeout) {
  while (!failed_) {  // where it stands then is not known
    const auto frame = options_.frames->browse(timeout);
    if (!frame) {
      failed_ = frame.error();
      break;
    }
    if (*frame == nullptr || is_known_there(*frame)) return *frame;
    options_.frames->dequeue();
  }
  return nullptr;
}

// False when there is no next frame and none will come.
bool BatchPacker::await_frame() {
  if (frame_taken_ > 0) return true;
  if (browse(0us) != nullptr) return true;
  shared_.packer_time.enter(Activity::idle);
  shared_.packer_state.set("WAITING ON EMPTY QUEUE");
  while (browse(draining() ? 0us : std::chrono::microseconds(kSlice)) == nullptr) {
    if (stopping() || draining() || failed_) return false;
  }
  return true;
}

std::span<std::byte> BatchPacker::await_room() {
  auto room = window_.open(0ms);
  while (room.empty() && !stopping()) {
    // The receiver's queue is full, or the network is slower than the capture: two different findings.
    const bool paused = shared_.receiver_paused.load(std::memory_order_relaxed);
    shared_.packer_time.enter(paused ? Activity::flow_control : Activity::network);
    shared_.packer_state.set(paused ? "PAUSED FOR FLOW CONTROL" : "WAITING FOR NETWORK");
    room = window_.open(kSlice);
  }
  return stopping() ? std::span<std::byte>{} : room;
}

// Copies frames until `raw` is full or the queue has been empty for long enough; how many bytes that were. At least one
// frame waits.
size_t BatchPacker::fill(std::span<std::byte> raw) {
  const Time opened = options_.clock->steady_now();
  size_t filled = 0;
  last_commit_ = {};
  while (filled < raw.size()) {
    if (frame_taken_ == 0) {
      frame_ = browse(0us);
      if (frame_ == nullptr) {
        if (!failed_ && linger(opened)) continue;
        break;
      }
      frame_bytes_ = reinterpret_cast<const lcr::FrameHeader*>(frame_)->length;
      // A frame is cut only where no batch could hold it.
      if (filled > 0 && frame_bytes_ > raw.size() - filled && frame_bytes_ <= raw.size()) break;
    }
    const size_t bytes = std::min(frame_bytes_ - frame_taken_, raw.size() - filled);
    std::memcpy(raw.data() + filled, frame_ + frame_taken_, bytes);
    filled += bytes;
    take_frame(bytes);
  }
  return filled;
}

// Counts `bytes` of the browsed frame as packed, and dequeues it with its last one.
void BatchPacker::take_frame(size_t bytes) {
  frame_taken_ += bytes;
  if (frame_taken_ < frame_bytes_) return;
  const auto frame = lcr::FrameView::trusted(frame_);
  if (lcr::is_change(frame.kind())) shared_.lcrs.add();
  if (frame.kind() == lcr::FrameKind::commit) {
    const lcr::TransactionMark mark = frame.transaction_mark();
    last_commit_ = mark.commit_time;
    if (begun_) shared_.markers.note({mark.commit_lsn, mark.commit_time, options_.clock->unix_now()});
  }
  if (frame.kind() != lcr::FrameKind::origin) begun_ = frame.kind() == lcr::FrameKind::begin;
  shared_.bytes.add(frame_bytes_);
  options_.frames->dequeue();
  frame_ = nullptr;
  frame_taken_ = 0;
}

// The queue is empty. True after a nap that may have brought more frames for this batch, false when it should go now:
// the link has nothing else to do, or the batch has waited for batch_delay. Naps instead of browsing, so that a
// producer that enqueues one by one does not wake this thread for each.
bool BatchPacker::linger(Time opened) {
  if (stopping() || draining()) return false;
  const Time now = options_.clock->steady_now();
  if (now - opened >= options_.batch_delay) return false;
  if (now - last_published_ >= options_.batch_delay && window_.all_sent()) return false;
  const ActivityScope scope(shared_.packer_time, Activity::idle);
  std::this_thread::sleep_for(options_.batch_delay - (now - opened));
  return true;
}

void BatchPacker::publish(std::span<std::byte> message, size_t raw_bytes) {
  const auto payload = message.subspan(kBatchHeaderBytes);
  size_t packed = 0;
  if (compression_ != Compression::none) {
    packed = compressor_.compress(std::span(raw_).first(raw_bytes), payload);
    if (packed == 0) std::memcpy(payload.data(), raw_.data(), raw_bytes);
  }
  const size_t bytes = kBatchHeaderBytes + (packed > 0 ? packed : raw_bytes);
  const base::UnixMicros now = options_.clock->unix_now();
  seal_batch(message.first(bytes), packed > 0 ? compression_ : Compression::none, static_cast<uint32_t>(raw_bytes),
             window_.open_sequence(), now);
  window_.commit(bytes);
  wake_link_();
  shared_.batches.add();
  shared_.packed_bytes.add(bytes);
  if (last_commit_.value != 0) {
    shared_.latency_us.set(static_cast<uint64_t>(std::max<int64_t>(now.value - last_commit_.value, 0)));
  }
  last_published_ = options_.clock->steady_now();
}

}  // namespace thalweg::propagation
