#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "apply/applier/arena.h"
#include "apply/applier/destination_session.h"
#include "apply/transaction.h"
#include "base/error.h"
#include "lcr/frame.h"
#include "metadata/statement_handler.h"
#include "metadata/table_metadata.h"

// The statements of users for changes and transactions (docs/decisions/statement-handlers.md).

namespace thalweg::apply {

// Owner: the session's owner. Sends only; sync() is the caller's.
class StatementHandlers {
 public:
  // `handlers`: all of the destination; those of precommit are kept.
  StatementHandlers(DestinationSession& session, std::span<const metadata::StatementHandler> handlers);

  // Those of that time for the change, in their order. Returns whether there are any. Fails with apply_failed where one
  // needs a value that the change did not bring.
  base::Result<bool> send(const Transaction& transaction, const metadata::TableMetadata& table,
                          const lcr::FrameView& frame, metadata::HandlerTime time, Arena& arena);
  bool any_precommit() const { return !precommit_.empty(); }
  base::Result<void> send_precommit(const Transaction& transaction);

 private:
  // The values of a change that are known, the others UNCHANGED. Null where the change has no such row.
  struct Row {
    lcr::Value* now = nullptr;
    lcr::Value* old = nullptr;
  };
  static base::Result<Row> read(const metadata::TableMetadata& table, const lcr::FrameView& frame, Arena& arena);
  // Says in words that the value did not come; empty: it did.
  std::string add_column(const metadata::TableMetadata& table, const Row& row, metadata::BindSource source);
  void add(const Transaction& transaction, const metadata::TableMetadata* table, base::BindKind kind);
  void add_number(uint64_t number, size_t place);

  DestinationSession& session_;
  std::vector<metadata::HandlerStatement> precommit_;
  std::vector<pg::Parameter> parameters_;
  std::array<std::array<std::byte, 8>, 3> numbers_ = {};  // of a statement's parameters
};

}  // namespace thalweg::apply
