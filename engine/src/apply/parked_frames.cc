#include "apply/parked_frames.h"

#include <string>

#include "apply/ranges.h"

namespace thalweg::apply {

std::unexpected<base::Error> unknown_parked(int64_t error_id) {
  return base::fail(base::ErrorCode::unknown_error_transaction,
                    "the error queue has no transaction " + std::to_string(error_id));
}

base::Result<void> visit_parked_frames(pg::Connection& connection, int64_t error_id,
                                       const std::function<base::Result<bool>(const lcr::FrameView&)>& visit) {
  const std::string id = std::to_string(error_id);
  for (int chunk = 0;; ++chunk) {
    THALWEG_ASSIGN(
        const pg::Rows rows,
        connection.query(
            "SELECT frames FROM thalweg.error_queue_chunk WHERE error_id = $1::bigint AND chunk = $2::integer",
            {id, std::to_string(chunk)}));
    if (rows.size() == 0) return {};
    const auto bytes = bytes_from_hex(rows.text(0, 0));
    std::span<const std::byte> rest = bytes;
    while (!rest.empty()) {
      THALWEG_ASSIGN(const auto frame, lcr::FrameView::decode(rest));
      rest = rest.subspan(frame.header().length);
      THALWEG_ASSIGN(const bool more, visit(frame));
      if (!more) return {};
    }
  }
}

base::Result<std::shared_ptr<metadata::SourceTable>> described_table(const lcr::FrameView& frame, uint64_t id) {
  auto source = std::make_shared<metadata::SourceTable>();
  THALWEG_ASSIGN(source->description, frame.table());
  source->id = id;
  source->quoted_name = pg::quote_table(source->description.schema_name, source->description.table_name);
  return source;
}

}  // namespace thalweg::apply
