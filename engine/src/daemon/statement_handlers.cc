#include "daemon/statement_handlers.h"

#include <utility>

#include "pg/connection.h"

namespace thalweg::daemon {
namespace {

metadata::HandlerTime time_of(control::HandlerMoment when) {
  switch (when) {
    case control::HandlerMoment::instead:
      return metadata::HandlerTime::instead;
    case control::HandlerMoment::after:
      return metadata::HandlerTime::after;
    case control::HandlerMoment::precommit:
      return metadata::HandlerTime::precommit;
    case control::HandlerMoment::error:
      return metadata::HandlerTime::error;
  }
  std::unreachable();
}

}  // namespace

std::vector<metadata::StatementHandler> statement_handlers(const control::Delivery& delivery) {
  std::vector<metadata::StatementHandler> handlers;
  for (const control::StatementHandlerDefinition& handler : delivery.destination.parameters.statement_handlers) {
    metadata::StatementHandler& out = handlers.emplace_back();
    out.number = static_cast<int>(handlers.size());
    out.time = time_of(handler.when);
    out.of_inserts = handler.is_of("INSERT");
    out.of_updates = handler.is_of("UPDATE");
    out.of_deletes = handler.is_of("DELETE");
    out.errors = handler.errors;
    out.statement = handler.bound;
    if (handler.table.empty()) continue;
    const control::TableRef stream_table{handler.schema, handler.table};
    const control::TableRef& there = control::name_there(delivery.stream.names, stream_table);
    out.table = pg::quote_table(there.schema, there.table);
  }
  return handlers;
}

}  // namespace thalweg::daemon
