#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "apply/parked_frames.h"
#include "apply/table_finder.h"
#include "base/error.h"
#include "lcr/frame.h"
#include "metadata/source_table.h"
#include "metadata/table_metadata.h"
#include "pg/connection.h"

// The tables of parked transactions while those are executed. Each transaction brings its own descriptions, and
// thousands bring the same: a table is looked up at the destination once, and again when it has changed there.

namespace thalweg::apply {

// Owner: one thread. Methods that ask the destination do so while the connection is in no pipeline.
class ParkedTables final : public TableFinder {
 public:
  // `handlers` outlive it.
  ParkedTables(pg::Connection& connection, std::span<const metadata::StatementHandler> handlers)
      : connection_(connection), loader_(generations_, {}, handlers) {}

  // Reads the records of the stream's tables: their current names, the parts that are copied, and the tables about to
  // be copied. The records do not change while the error queue is held (error_queue.h).
  base::Result<void> read_records(std::string_view stream_id);
  // The table that a TABLE frame describes; the same object for the same description.
  base::Result<std::shared_ptr<const metadata::SourceTable>> described(const lcr::FrameView& frame);
  // Whether the table's rows are going, or its copy is not finished: what to make of its changes is not known yet.
  bool is_being_copied(const metadata::SourceTable& source) const;
  // Whether it has gone, and another table of the stream has its name.
  bool is_replaced(const metadata::SourceTable& source) const { return names_.is_anothers(source.description); }
  // Whether find() knows what it will say. Else load() has to look: a table that cannot be used is a failure of find(),
  // not of load(). One that was taken out of the stream is found as one of which a copy has everything.
  bool has(const metadata::SourceTable& source) const { return loaded_.contains(source.id); }
  base::Result<void> load(const metadata::SourceTable& source);
  // Forgets tables that were changed at the destination since they were looked up.
  base::Result<void> forget_changed();
  // Forgets one, whatever the catalog says of it.
  void forget(const metadata::SourceTable& source);

  base::Result<const metadata::TableMetadata*> find(const metadata::SourceTable& source) override;
  void release() override {}

 private:
  struct Copy {
    base::Lsn from;
    base::Lsn to;
    bool is_finished = false;
  };

  base::Result<void> read_copies(std::string_view stream_id);
  const Copy* copy_of(const metadata::SourceTable& source) const;

  pg::Connection& connection_;
  std::atomic<uint64_t> generations_{0};  // this thread's alone; TableLoader takes it so
  metadata::TableLoader loader_;
  TableNames names_;
  std::map<std::string, Copy> copies_;  // by key_of(): a name may be another table's by now
  std::map<std::string, std::shared_ptr<const metadata::SourceTable>> described_;  // by the frame without its position
  uint64_t descriptions_ = 0;
  std::unordered_map<uint64_t, base::Result<std::unique_ptr<const metadata::TableMetadata>>>
      loaded_;  // by SourceTable::id
};

}  // namespace thalweg::apply
