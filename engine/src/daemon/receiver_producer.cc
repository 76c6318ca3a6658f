#include "daemon/queue_producer.h"

namespace thalweg::daemon {
namespace {

class ReceiverProducer final : public QueueProducer {
 public:
  ReceiverProducer(const control::Delivery& delivery, int timeline, Peering& peering, queue::LcrQueue& queue,
                   const base::Clock& clock)
      : delivery_(delivery), timeline_(timeline), peering_(peering), queue_(queue), clock_(clock) {}

  base::Result<void> start(base::Lsn, const std::atomic<uint64_t>& confirmed) override {
    THALWEG_ASSIGN(propagation::ReceiverPort* const port, peering_.port());
    THALWEG_ASSIGN(const std::string engine, peering_.name());
    receiver_ = std::make_unique<propagation::Receiver>(propagation::ReceiverOptions{
        .stream_id = delivery_.stream.id,
        .engine = engine,
        .peer_engine = delivery_.stream.receive_from->engine,
        .timeline = static_cast<uint32_t>(timeline_),
        .queue = &queue_,
        .durable = [&confirmed] { return base::Lsn{confirmed.load(std::memory_order_acquire)}; },
        .clock = &clock_,
        .ack_interval = std::chrono::milliseconds(delivery_.destination.parameters.propagation_ack_interval_ms)});
    return receiver_->start(*port);
  }
  void quiesce() override { join(); }
  void join() override {
    if (!receiver_) return;
    receiver_->request_stop();
    receiver_->join();
  }
  std::optional<base::Error> failure() const override { return receiver_->status().error; }
  std::optional<base::Error> trouble() const override {
    const propagation::ReceiverStatus status = receiver_->status();
    return status.connected ? std::nullopt : status.link_error;
  }
  bool caught_up(base::Lsn) override { return receiver_->status().connected; }
  capture::CaptureStatus capture_status() const override { return {}; }
  telemetry::ComponentSample sample() const override { return receiver_->sample(); }
  std::vector<telemetry::RuleSample> rules() const override { return {}; }
  void add_to(telemetry::MarkerTrail& trail) const override { receiver_->add_to(trail); }
  base::Result<void> place_marker(const std::string&, const std::string&) override {
    return base::fail(base::ErrorCode::marker_refused,
                      "The engine that captures is " + delivery_.stream.receive_from->engine);
  }

 private:
  const control::Delivery delivery_;
  const int timeline_;
  Peering& peering_;
  queue::LcrQueue& queue_;
  const base::Clock& clock_;
  std::unique_ptr<propagation::Receiver> receiver_;
};

}  // namespace

std::unique_ptr<QueueProducer> make_receiver_producer(const control::Delivery& delivery, int timeline, Peering& peering,
                                                      queue::LcrQueue& queue, const base::Clock& clock) {
  return std::make_unique<ReceiverProducer>(delivery, timeline, peering, queue, clock);
}

}  // namespace thalweg::daemon
