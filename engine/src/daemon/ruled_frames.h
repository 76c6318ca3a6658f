#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "capture/row_filter.h"
#include "lcr/frame.h"
#include "queue/frame_source.h"

namespace thalweg::daemon {

// The frames of one destination as its own rules want them, for its apply or its sender: behind queue and backlog, and
// before anything is sent (docs/decisions/rules.md). Owner: the agent that reads them; sample() is thread-safe.
//
// It wakes its agent by itself: the producer's thread does none of its work (FrameSource::share), since judging may
// have to ask the source.
class RuledFrames final : public queue::FrameSource {
 public:
  // Frames that are dropped before browse() lets its agent look at something else.
  static constexpr size_t kDroppedAtOnce = 4096;

  // `frames` and `clock` outlive it. The source's catalogue is asked as `options` say.
  RuledFrames(queue::FrameSource& frames, capture::StreamRules rules, base::Conninfo source, pg::ConnectOptions options,
              const base::Clock& clock);
  RuledFrames(const RuledFrames&) = delete;
  RuledFrames& operator=(const RuledFrames&) = delete;

  // Before the first frame: notes which relations the tables with rules are.
  base::Result<void> locate() { return filters_.locate(); }
  // Fails also with rule_refused, rule_undecidable and rule_failed, or as a connection to the source does. Then the
  // change is the next one still.
  base::Result<const std::byte*> browse(std::chrono::microseconds timeout) override;
  void dequeue() override;
  void release() override { frames_.release(); }

  std::vector<telemetry::RuleSample> sample() const { return filters_.sample(); }

 private:
  struct Table {
    lcr::TableDescription description;
    bool is_ready = false;                       // the filter is of this description
    std::unique_ptr<capture::RowFilter> filter;  // null: it has no rules
  };
  enum class Verdict : uint8_t { pass, drop, unready };

  base::Result<void> describe(const lcr::FrameView& frame);
  void note_transaction(const lcr::FrameView& frame);
  base::Result<Table*> find(base::RelationId relation);
  base::Result<Verdict> judge(const lcr::FrameView& change);
  base::Result<Verdict> judge_row(const lcr::FrameView& change);
  base::Result<Verdict> judge_truncate(const lcr::FrameView& truncate);
  base::Result<void> make_filter();
  void put(const lcr::RowFrame& row);

  queue::FrameSource& frames_;
  const capture::StreamRules rules_;
  capture::RowFilters filters_;
  capture::TransactionFacts transaction_;  // of the frame that was browsed last, as far as its frames tell
  std::map<base::RelationId, Table> tables_;
  Table* unready_ = nullptr;        // in tables_: its rules are to be compiled before the next frame can be judged
  bool is_filter_new_ = false;      // made for the first frame: what it does not know now, it cannot know
  bool is_judged_ = false;          // the first frame has been judged, and passes
  std::vector<std::byte> instead_;  // what the agent gets in its place; empty: the frame itself
};

}  // namespace thalweg::daemon
