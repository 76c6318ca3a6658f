#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apply/applier/arena.h"
#include "apply/applier/destination_session.h"
#include "apply/transaction.h"
#include "base/error.h"
#include "lcr/frame.h"
#include "metadata/statement_handler.h"
#include "metadata/table_metadata.h"

// The statements of users for changes, those that fail, and transactions (docs/decisions/statement-handlers.md).

namespace thalweg::apply {

// The failure of a change, as its handlers are told. A text that is empty is NULL for them, but for the message.
struct HandledError {
  const base::Error& error;  // final_error() of the failure
  std::string_view constraint = {};
  std::string_view kind = {};  // of the conflict
};

// Whether one of the table's handlers is for a change that has failed so.
bool has_error_handler(const metadata::TableMetadata& table, lcr::FrameKind kind, const base::Error& error);

// Owner: the session's owner. Sends only; sync() is the caller's.
class StatementHandlers {
 public:
  // `handlers`: all of the destination; those of precommit are kept.
  StatementHandlers(DestinationSession& session, std::span<const metadata::StatementHandler> handlers);

  // Sends the statements of that time for the change, in their order. Returns whether there are any. Fails with
  // apply_failed where one needs a value that the change did not bring.
  base::Result<bool> send(const Transaction& transaction, const metadata::TableMetadata& table,
                          const lcr::FrameView& frame, metadata::HandlerTime time, Arena& arena);
  // Sends the statements for this error, in their order, instead of the change. Returns in words, with its number, why
  // one cannot be executed: a value did not come; empty: all were sent.
  base::Result<std::string> send(const Transaction& transaction, const metadata::TableMetadata& table,
                                 const lcr::FrameView& frame, const HandledError& failed, Arena& arena);
  bool any_precommit() const { return !precommit_.empty(); }
  base::Result<void> send_precommit(const Transaction& transaction);

 private:
  // The values of a change that are known, the others UNCHANGED. Null where the change has no such row.
  struct Row {
    lcr::Value* now = nullptr;
    lcr::Value* old = nullptr;
  };
  static base::Result<Row> read(const metadata::TableMetadata& table, const lcr::FrameView& frame, Arena& arena);
  // The source of a statement's parameters.
  struct Change {
    const Transaction& transaction;
    const metadata::TableMetadata& table;
    const lcr::FrameView& frame;
    const Row& row;
    const HandledError* failed = nullptr;  // of error handlers
  };
  // Says in words that a value did not come; empty: the statement was sent.
  base::Result<std::string> send_one(const Change& change, const metadata::HandlerStatement& handler);
  // Says in words that the value did not come; empty: it was added to the parameters.
  std::string add_column(const metadata::TableMetadata& table, const Row& row, metadata::BindSource source);
  void add(const Transaction& transaction, const metadata::TableMetadata* table, base::BindKind kind);
  void add_failure(const HandledError& failed, base::BindKind kind);
  void add_number(uint64_t number, size_t place);

  DestinationSession& session_;
  std::vector<metadata::HandlerStatement> precommit_;
  std::vector<pg::Parameter> parameters_;
  std::array<std::array<std::byte, 8>, 3> numbers_ = {};  // of a statement's parameters
};

}  // namespace thalweg::apply
