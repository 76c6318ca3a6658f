#include "capture/change_tap.h"

#include <algorithm>
#include <utility>

namespace thalweg::capture {
namespace {

std::shared_ptr<const TappedTable> version_of(const lcr::TableDescription& table,
                                              const transform::RowTransformation* transformation) {
  auto version = std::make_shared<TappedTable>(TappedTable{.description = table, .is_hidden = {}});
  for (size_t column = 0; column < table.columns.size(); ++column) {
    version->is_hidden.push_back(transformation != nullptr && !transformation->shows(column));
  }
  return version;
}

}  // namespace

TappedChanges ChangeTap::take(const TableKey& table, size_t limit, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  Request request{.table = table, .limit = limit};
  std::unique_lock lock(mutex_);
  requests_.push_back(&request);
  wanted_.store(true, std::memory_order_release);
  news_.wait_until(lock, end, [&] { return request.is_done || is_closed_; });
  std::erase(requests_, &request);
  wanted_.store(!requests_.empty(), std::memory_order_release);
  if (!request.is_done && is_closed_) request.taken.end = TapEnd::closed;
  return std::move(request.taken);
}

void ChangeTap::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  news_.notify_all();
}

bool ChangeTap::note(const lcr::RowFrame& row, const lcr::TableDescription& table,
                     const transform::RowTransformation* transformation, const TransactionFacts& transaction) {
  const std::lock_guard lock(mutex_);
  for (Request* const request : requests_) {
    const bool is_other = request->table.first != table.schema_name || request->table.second != table.table_name;
    if (request->is_done || is_other) continue;
    const bool is_open = (row.flags & lcr::kStreamed) != 0;
    if (is_open && request->open.size() == request->limit) continue;
    const size_t bytes = lcr::row_frame_bytes(row);
    if (request->bytes + bytes > kBytesMax) {
      finish(*request, TapEnd::size);
      continue;
    }
    request->bytes += bytes;
    const auto& known = request->version;
    if (!known || !(known->description.relation == table.relation) || known->description.version != table.version) {
      request->version = version_of(table, transformation);
    }
    TappedChange change{.table = request->version, .frame = std::vector<std::byte>(bytes), .transaction = transaction};
    lcr::write_row_frame(row, change.frame);
    if (is_open) {
      request->open.push_back({.xid = row.xid, .subxid = row.subxid, .change = std::move(change)});
      continue;
    }
    request->taken.changes.push_back(std::move(change));
    if (request->taken.changes.size() == request->limit) finish(*request, TapEnd::limit);
  }
  return std::ranges::any_of(requests_, [](const Request* request) { return !request->is_done; });
}

void ChangeTap::committed(base::Xid xid) {
  const std::lock_guard lock(mutex_);
  for (Request* const request : requests_) {
    if (request->is_done) continue;
    auto& changes = request->taken.changes;
    for (Open& open : request->open) {
      if (open.xid == xid && changes.size() < request->limit) changes.push_back(std::move(open.change));
    }
    if (changes.size() == request->limit) finish(*request, TapEnd::limit);
  }
  drop_open([&](const Open& open) { return open.xid == xid; });
}

void ChangeTap::aborted(base::Xid xid, base::Xid subxid) {
  const std::lock_guard lock(mutex_);
  drop_open([&](const Open& open) { return open.xid == xid && (!subxid || open.subxid == subxid); });
}

void ChangeTap::restarted() {
  const std::lock_guard lock(mutex_);
  for (Request* const request : requests_) request->version.reset();  // versions count anew
  drop_open([](const Open&) { return true; });
}

void ChangeTap::finish(Request& request, TapEnd end) {
  request.taken.end = end;
  request.is_done = true;
  news_.notify_all();
}

// Frames of those that committed have been moved out, and still count.
void ChangeTap::drop_open(const auto& is_gone) {
  for (Request* const request : requests_) {
    for (const Open& open : request->open) {
      if (is_gone(open)) request->bytes -= open.change.frame.size();
    }
    std::erase_if(request->open, is_gone);
  }
}

}  // namespace thalweg::capture
