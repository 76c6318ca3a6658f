#include <utility>

#include "daemon/queue_consumer.h"
#include "propagation/sender.h"

namespace thalweg::daemon {
namespace {

propagation::Compression compression_of(control::PropagationCompression parameter) {
  switch (parameter) {
    case control::PropagationCompression::none:
      return propagation::Compression::none;
    case control::PropagationCompression::lz4:
      return propagation::Compression::lz4;
    case control::PropagationCompression::zstd:
      return propagation::Compression::zstd;
  }
  std::unreachable();
}

constexpr std::chrono::milliseconds kReceiverWait{2'000};  // a stop waits for it, too

class SenderConsumer final : public QueueConsumer {
 public:
  SenderConsumer(const control::Delivery& delivery, int timeline, const Peering& peering, queue::FrameSource& frames,
                 const base::Clock& clock)
      : delivery_(delivery), timeline_(timeline), peering_(peering), frames_(frames), clock_(clock) {}

  base::Result<base::Lsn> start() override {
    THALWEG_ASSIGN(const std::string engine, peering_.name());
    THALWEG_ASSIGN(const propagation::LinkSecurity security, peering_.security());
    const control::StreamParameters& parameters = delivery_.destination.parameters;
    sender_ = std::make_unique<propagation::Sender>(
        propagation::SenderOptions{.stream_id = delivery_.stream.id,
                                   .engine = engine,
                                   .peer_engine = delivery_.destination.send_to->engine,
                                   .host = delivery_.destination.send_to->host,
                                   .port = static_cast<uint16_t>(delivery_.destination.send_to->port),
                                   .security = security,
                                   .timeline = static_cast<uint32_t>(timeline_),
                                   .frames = &frames_,
                                   .clock = &clock_,
                                   .compression = compression_of(parameters.propagation_compression),
                                   .window_bytes = static_cast<size_t>(parameters.propagation_window_mb) << 20,
                                   .versions = {}});
    THALWEG_TRY(sender_->start());
    THALWEG_ASSIGN(begins_at_, sender_->await_receiver(kReceiverWait));
    return begins_at_;
  }
  void set_parameters(const control::StreamParameters&) override {}  // none of the sender's is live
  void request_stop(bool drain) override {
    if (sender_) sender_->request_stop(drain);
  }
  bool is_running() const override { return sender_ && sender_->status().running; }
  void join() override {
    if (sender_) sender_->join();
  }
  std::optional<base::Error> failure() const override { return sender_->status().error; }
  std::optional<base::Error> trouble() const override {
    const propagation::SenderStatus status = sender_->status();
    return status.connected ? std::nullopt : status.link_error;
  }
  const std::atomic<uint64_t>& confirmed() const override { return sender_->durable_lsn(); }
  base::Lsn applied() const override { return sender_->durable(); }
  base::Lsn begins_at() const override { return begins_at_; }
  void add_to(control::StreamStats& stats) const override { stats.components.push_back(sender_->sample()); }
  void add_to(telemetry::MarkerTrail& trail) const override { sender_->add_to(trail); }
  std::vector<telemetry::TableSample> tables() const override { return {}; }
  apply::Apply* apply() override { return nullptr; }

 private:
  const control::Delivery delivery_;
  const int timeline_;
  const Peering& peering_;
  queue::FrameSource& frames_;
  const base::Clock& clock_;
  std::unique_ptr<propagation::Sender> sender_;
  base::Lsn begins_at_;
};

}  // namespace

std::unique_ptr<QueueConsumer> make_sender_consumer(const control::Delivery& delivery, int timeline,
                                                    const Peering& peering, queue::FrameSource& frames,
                                                    const base::Clock& clock) {
  return std::make_unique<SenderConsumer>(delivery, timeline, peering, frames, clock);
}

}  // namespace thalweg::daemon
