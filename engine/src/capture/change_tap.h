#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "base/ids.h"
#include "capture/stream_rules.h"
#include "capture/transaction_facts.h"
#include "lcr/frame.h"
#include "transform/row_transformation.h"

// The next committed changes of a table's rows, as the source sends them: before its rules and its transformations.
// docs/decisions/recent-changes.md.

namespace thalweg::capture {

struct TappedTable {
  lcr::TableDescription description;
  std::vector<bool> is_hidden;  // by column: the stream masks or drops it, so nobody is shown its values
};

struct TappedChange {
  std::shared_ptr<const TappedTable> table;
  std::vector<std::byte> frame;  // as FrameView::trusted() reads it
  TransactionFacts transaction = {};
};

// size: another change would have been too large.
enum class TapEnd : uint8_t { limit, time, size, closed };

struct TappedChanges {
  std::vector<TappedChange> changes;  // in the order of their commits
  TapEnd end = TapEnd::time;
};

// Thread-safe: take() and close() may be called by anybody; the rest belongs to the one capture that writes into it. A
// mutex guards the requests. The capture takes it only while somebody waits for changes: otherwise the tap costs it one
// load for each transaction, or block of a streamed one.
class ChangeTap {
 public:
  static constexpr size_t kBytesMax = size_t{8} << 20;  // of one request's frames, those of open transactions included

  ChangeTap() = default;
  ChangeTap(const ChangeTap&) = delete;
  ChangeTap& operator=(const ChangeTap&) = delete;

  // Waits until there are `limit` changes of the table, at most that long. Transactions that have not ended by then are
  // left out.
  TappedChanges take(const TableKey& table, size_t limit, std::chrono::milliseconds patience);
  // Ends every take(), those to come included.
  void close();

  // The capture's side.
  bool is_wanted() const { return wanted_.load(std::memory_order_acquire); }
  // A change of a row. `transformation`: the table's, or null. False: nobody wants more.
  bool note(const lcr::RowFrame& row, const lcr::TableDescription& table,
            const transform::RowTransformation* transformation, const TransactionFacts& transaction = {});
  // Of streamed transactions; the others come once they have committed.
  void committed(base::Xid xid);
  void aborted(base::Xid xid, base::Xid subxid);  // `subxid` none: the whole transaction
  // Another session begins: it sends open transactions again.
  void restarted();

 private:
  struct Open {
    base::Xid xid;
    base::Xid subxid;
    TappedChange change;
  };
  // Lives on the stack of take(). `mutex_` guards it.
  struct Request {
    const TableKey& table;
    const size_t limit;
    TappedChanges taken = {};
    std::vector<Open> open = {};  // of transactions that have not ended: `limit` at most
    size_t bytes = 0;
    std::shared_ptr<const TappedTable> version = {};  // of the last change
    bool is_done = false;
  };

  void finish(Request& request, TapEnd end);
  void drop_open(const auto& is_gone);

  // Writers: threads in take(), under mutex_ (release). Reader: the capture (acquire). The requests themselves are read
  // under mutex_.
  std::atomic<bool> wanted_{false};
  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<Request*> requests_;
  bool is_closed_ = false;
};

}  // namespace thalweg::capture
