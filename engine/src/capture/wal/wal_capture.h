#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <vector>

#include "capture/capture_agent.h"
#include "capture/logical/source_end_probe.h"
#include "capture/wal/mined_tables.h"
#include "capture/wal/wal_folder.h"
#include "capture/wal/wal_shipment.h"
#include "mining/builder.h"
#include "mining/change_sink.h"
#include "pg/connection.h"
#include "shipment/staged_wal.h"
#include "wal/wal_reader.h"

namespace thalweg::capture {

// The agent of a capture that mines the source's WAL: one thread reads what a shipment stages, builds changes,
// translates and enqueues them. The shipment's thread tells the source what is staged; whether destinations have it
// concerns this host's disk only.
//
// Thread-safe as Capture says. Everything without a comment belongs to the agent's thread.
class WalCapture final : public CaptureAgent, private mining::ChangeSink {
 public:
  explicit WalCapture(CaptureOptions options);
  ~WalCapture() override;
  std::vector<telemetry::ComponentSample> parts() const override;

 private:
  // Positions that mining had reached at one time.
  struct Mark {
    base::Lsn position;          // everything that commits before it is enqueued
    base::Lsn restart;           // transactions that end there or behind have no row before this
    base::UnixMicros time = {};  // of the last commit
    bool has_dictionary = false;
  };
  static MiningPosition position_of(const Mark& mark) {
    return {
        .confirmed = mark.position, .restart = mark.restart, .time = mark.time, .has_dictionary = mark.has_dictionary};
  }

  base::Result<void> work() override;
  base::Result<void> await_end() override;
  void release() override;
  base::Result<void> while_held_back() override;

  base::Result<void> connect();
  base::Result<void> open_shipment();
  base::Result<void> begin_mining();
  base::Result<void> mine_until_stopped();
  base::Result<void> mine(std::span<const std::byte> bytes);
  void await_wal(uint32_t ticket);
  base::Result<void> serve_timers();
  base::Result<void> look_at_source();
  base::Result<void> put_due_progress(std::chrono::steady_clock::time_point now);
  // `at_once`: whatever the interval, unless many wait for their turn.
  base::Result<void> save_due_dictionary(bool at_once);
  // The state as far as destinations have got; `at_once`: however short ago the last one was written.
  base::Result<void> note_confirmed(bool at_once);
  // WAL that is kept for searches leaves room for what comes, so that it never holds up the shipment.
  uint64_t crowding_bytes() const;
  base::Result<void> drop_unneeded();
  void note_kept();
  // None: what is staged can grow. Else nothing more is received, and all that was is mined: only what somebody does at
  // the source or here goes on.
  std::optional<base::Error> staging_trouble(std::chrono::steady_clock::time_point now);
  // Between two records only.
  Mark mark() const;
  void add_mark(bool has_dictionary);
  void note_mined_again();
  base::Lsn staged_end() const;
  base::Lsn readable_end() const;

  // ChangeSink
  base::Result<void> begin(base::Xid xid, const lcr::TransactionMark& mark) override;
  base::Result<void> describe(const mining::MinedTable& table) override;
  base::Result<void> change(const lcr::RowFrame& row) override;
  base::Result<void> truncate(const mining::TruncateChange& truncate) override;
  base::Result<void> message(base::Xid xid, std::string_view content) override;
  base::Result<void> rolled_back(base::Xid xid, base::Xid subxid, base::Lsn lsn) override;
  base::Result<void> commit(base::Xid xid, const lcr::TransactionMark& mark) override;
  base::Result<void> commit_streamed(base::Xid xid, const lcr::TransactionMark& mark,
                                     std::span<const base::Xid> subtransactions) override;
  // Translates message_.
  base::Result<void> translate(MessagePlace place, base::Lsn lsn);
  void note_commit_time(const lcr::TransactionMark& mark);
  // None: the source does not have it any more.
  base::Result<std::optional<std::string>> origin_name(uint16_t origin, base::Xid xid);
  void set_mark(base::Xid xid, const lcr::TransactionMark& mark);

  const uint64_t dictionary_interval_;  // bytes of WAL
  WalFolder folder_;
  shipment::WalIdentity source_;
  MiningState state_on_disk_;
  MinedTables tables_;
  std::optional<SourceEndProbe> probe_;
  std::optional<dictionary::Dictionary> dictionary_;
  const std::optional<shipment::Archive> archive_;
  std::optional<shipment::StagedWal> staged_;
  std::optional<wal::WalReader> reader_;
  std::optional<mining::Builder> builder_;
  wal::RecordParts parts_;
  PgoutputMessage message_;
  std::optional<std::string> origin_;      // of message_
  std::optional<pg::Connection> origins_;  // where its name is asked for
  base::Lsn mined_;                        // behind the last record that was taken
  // Position that had been confirmed before this start, which went back behind it; zero: it did not.
  base::Lsn again_until_;
  base::Lsn saved_at_;  // where the dictionary was saved last; none: it was not yet
  base::Lsn progress_enqueued_;
  base::UnixMicros committed_at_;  // time of the last commit that was mined, by the source's clock
  std::chrono::steady_clock::time_point progress_at_;
  std::chrono::steady_clock::time_point state_written_at_;
  std::optional<std::chrono::steady_clock::time_point> stuck_since_;
  std::deque<Mark> marks_;
  std::optional<Mark> confirmed_;  // the last one that destinations have got to, not written yet
  base::Xid block_;                // the streamed transaction of which a piece is going out

  // Made by the agent's thread before the shipment runs, read by anybody.
  WalShipment shipment_;
  telemetry::Counter records_;
  telemetry::Counter mined_bytes_, image_bytes_;  // of all records; of their blocks' images
  telemetry::Counter streamed_transactions_;
  std::atomic<int64_t> held_bytes_{0};
  std::atomic<int64_t> kept_bytes_{0};  // of what is staged, for searches only
  std::atomic<int64_t> open_transactions_{0};
  std::atomic<int64_t> open_wal_bytes_{0};  // from the first record of the oldest one on
};

}  // namespace thalweg::capture
