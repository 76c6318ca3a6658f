#include "daemon/queue_producer.h"
#include "daemon/rule_sets.h"
#include "daemon/source_objects.h"
#include "daemon/source_servers.h"

namespace thalweg::daemon {
namespace {

// The second one only where a table is in it: streams that an older engine made have none.
std::vector<std::string> asked_for(const control::StreamDefinition& definition) {
  const pg::PublicationNames names = publications_of(definition.id);
  if (definition.inserts_only.empty()) return {names.changes};
  return {names.changes, names.inserts};
}

class CaptureProducer final : public QueueProducer {
 public:
  CaptureProducer(const control::StreamDefinition& definition, CaptureIdentity identity, const CapturePlaces& places,
                  queue::LcrQueue& queue, const base::Clock& clock, capture::ChangeTap* tap)
      : options_{.stream_id = definition.id,
                 .source_conninfo = definition.source.conninfo,
                 .primary_conninfo = primary_of(definition).conninfo,
                 .slot = slot_name(definition.id),
                 .publications = asked_for(definition),
                 .start = {},
                 .system_identifier = std::move(identity.system_identifier),
                 .timeline = identity.timeline,
                 .queue = &queue,
                 .confirmed_lsn = nullptr,
                 .clock = &clock,
                 .heartbeat_interval = std::chrono::seconds(definition.parameters.heartbeat_interval),
                 .rules = stream_rules(definition),
                 .tap = tap} {
    options_.rules.relations_file = places.folder / "ruled-relations.json";
    if (definition.capture_kind != control::CaptureKind::wal) return;
    make_ = capture::make_wal_capture;
    options_.mining.folder = mining_folder(places.folder);
    options_.mining.archive = places.archive;
    options_.mining.staging_bytes_max = static_cast<uint64_t>(definition.staging_limit_mb) << 20;
    options_.mining.keep_bytes = static_cast<uint64_t>(definition.wal_keep_mb) << 20;
    options_.mining.memory_bytes = static_cast<uint64_t>(definition.capture_memory_mb) << 20;
  }

  base::Result<void> start(base::Lsn from, const std::atomic<uint64_t>& confirmed) override {
    options_.start = from;
    options_.confirmed_lsn = &confirmed;
    capture_ = make_(options_);
    capture_->start();
    return {};
  }
  void quiesce() override {
    capture_->request_stop();
    capture_->await_quiet();
  }
  void join() override {
    capture_->request_stop();
    capture_->join();
  }
  std::optional<base::Error> failure() const override { return capture_->status().error; }
  std::optional<base::Error> trouble() const override { return capture_->status().trouble; }
  bool caught_up(base::Lsn applied) override {
    const capture::CaptureStatus status = capture_->status();
    if (!backlog_end_) backlog_end_ = status.source_end;
    return backlog_end_ && applied >= backlog_end_ && status.captured >= backlog_end_;
  }
  capture::CaptureStatus capture_status() const override { return capture_->status(); }
  telemetry::ComponentSample sample() const override { return capture_->sample(); }
  std::vector<telemetry::ComponentSample> parts() const override { return capture_->parts(); }
  std::vector<telemetry::RuleSample> rules() const override { return capture_->rules(); }
  void add_to(telemetry::MarkerTrail& trail) const override { capture_->add_to(trail); }
  base::Result<void> place_marker(const std::string& id, const std::string& label) override {
    return capture_->place_marker(id, label);
  }

 private:
  std::unique_ptr<capture::Capture> (*make_)(capture::CaptureOptions) = capture::make_logical_capture;
  capture::CaptureOptions options_;
  std::unique_ptr<capture::Capture> capture_;
  base::Lsn backlog_end_;  // the source's WAL end when capture first saw it
};

}  // namespace

std::unique_ptr<QueueProducer> make_capture_producer(const control::StreamDefinition& definition,
                                                     CaptureIdentity identity, const CapturePlaces& places,
                                                     queue::LcrQueue& queue, const base::Clock& clock,
                                                     capture::ChangeTap* tap) {
  return std::make_unique<CaptureProducer>(definition, std::move(identity), places, queue, clock, tap);
}

}  // namespace thalweg::daemon
