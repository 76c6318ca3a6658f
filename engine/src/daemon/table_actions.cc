#include "daemon/table_actions.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "apply/error_queue.h"
#include "apply/progress.h"
#include "base/log.h"
#include "daemon/operator_connection.h"
#include "daemon/rule_sets.h"
#include "daemon/source_objects.h"
#include "instantiation/bookkeeping.h"
#include "instantiation/called_code.h"
#include "instantiation/catalogue.h"
#include "instantiation/comparison.h"
#include "instantiation/destination_names.h"
#include "instantiation/destination_schema.h"
#include "instantiation/row_security.h"
#include "instantiation/sent_table.h"
#include "instantiation/source_look.h"
#include "pg/connection.h"

namespace thalweg::daemon {
namespace {

using base::ErrorCode;
using control::Delivery;
using instantiation::Bookkeeping;
using instantiation::TableName;
using instantiation::TableRecord;

struct Sides {
  pg::Connection source;
  pg::Connection destination;
};

base::Result<Sides> connect(const Delivery& delivery, const std::atomic<bool>& abandon) {
  if (delivery.destination.send_to) {
    return base::fail(ErrorCode::resolution_refused,
                      "The tables are resolved at the engine that applies: " + delivery.destination.send_to->engine);
  }
  const std::string name = "thalweg tables " + delivery.stream.id;
  THALWEG_ASSIGN(pg::Connection source,
                 open_for_operator(delivery.stream.source.conninfo, name, {.abandon = &abandon}));
  THALWEG_ASSIGN(pg::Connection destination,
                 open_for_operator(delivery.destination.conninfo, name, {.abandon = &abandon}));
  return Sides{std::move(source), std::move(destination)};
}

base::Result<std::vector<TableRecord>> read_records(Bookkeeping& bookkeeping) {
  THALWEG_ASSIGN(const bool exists, bookkeeping.exists());
  if (!exists) return std::vector<TableRecord>{};
  THALWEG_TRY(bookkeeping.upgrade());
  return bookkeeping.tables();
}

std::optional<TableRecord> record_of(const std::vector<TableRecord>& records, const TableName& name) {
  const auto found = std::ranges::find(records, name, &TableRecord::table);
  return found == records.end() ? std::nullopt : std::optional(*found);
}

std::unexpected<base::Error> not_copied(const TableName& name) {
  return base::fail(ErrorCode::unknown_table, fmt::format("The stream has not copied {}.", name.quoted()));
}

// The start that copies asks again. Refused here, the table stays as it is, and the stream's others go on.
base::Result<void> check_code(Sides& sides, const Delivery& delivery, const instantiation::CarriedTable& carried) {
  instantiation::AcceptedCode accepted;
  const auto code = delivery.stream.accepted_code.find({carried.table.schema, carried.table.name});
  if (code != delivery.stream.accepted_code.end()) accepted.emplace(carried.table, code->second);
  return instantiation::check_called_code(sides.source, sides.destination, {carried}, accepted);
}

// `now` is the relation that was captured as `before`.
base::Result<void> check_taken_along(const Delivery& delivery, const TableName& before, const TableName& now) {
  const auto own = [&](const TableName& name) {
    const auto found = delivery.stream.transformations.find({name.schema, name.name});
    return found == delivery.stream.transformations.end() ? transform::Steps{}
                                                          : steps_of(found->second, delivery.stream.mask_key);
  };
  return instantiation::check_left_behind(before, own(before), now, own(now));
}

// Checks both tables where one has taken the name over from another: the one that has come is `relation`.
base::Result<void> check_exchange(Sides& sides, const Delivery& delivery, const TableName& name, uint32_t relation,
                                  const std::vector<TableRecord>& records) {
  for (const TableRecord& record : records) {
    if (record.identity.relation == relation) THALWEG_TRY(check_taken_along(delivery, record.table, name));
  }
  const std::optional<TableRecord> own = record_of(records, name);
  if (!own || own->identity.relation == 0 || own->identity.relation == relation) return {};
  const std::vector<instantiation::WatchedTable> watched = {{.name = name, .was = own->identity}};
  THALWEG_ASSIGN(const auto now,
                 instantiation::look_at_source(sides.source, publications_of(delivery.stream.id), watched));
  const instantiation::SourceTable* const left = now.find(own->identity.relation);
  if (left == nullptr) return {};
  const control::TableRef there{left->name.schema, left->name.name};
  const bool is_captured = std::ranges::find(delivery.stream.tables, there) != delivery.stream.tables.end();
  return is_captured ? check_taken_along(delivery, name, left->name) : base::Result<void>{};
}

// The table's shape as its rows come to the destination.
base::Result<instantiation::TableShape> shape_there(pg::Connection& source, const Delivery& delivery,
                                                    const control::TableRef& table,
                                                    const instantiation::TableShape& shape) {
  const control::TableRef& there = control::name_there(delivery.stream.names, table);
  instantiation::DestinationNames names;
  if (there != table) names.add(shape.name, {there.schema, there.table});
  names.add_parts(shape);
  const auto steps = delivery.stream.transformations.find(table);
  if (steps == delivery.stream.transformations.end()) return instantiation::named_there(shape, names);
  THALWEG_ASSIGN(instantiation::SentTable sent,
                 instantiation::sent_table(source, shape, steps_of(steps->second, delivery.stream.mask_key)));
  return instantiation::named_there(std::move(sent.shape), names);
}

}  // namespace

base::Result<void> ask_for_copy(const Delivery& delivery, const control::TableRef& table,
                                const std::atomic<bool>& abandon) {
  const TableName name{table.schema, table.table};
  THALWEG_ASSIGN(Sides sides, connect(delivery, abandon));
  THALWEG_TRY(apply::hold_error_queue(sides.destination, delivery.stream.id));
  Bookkeeping bookkeeping(sides.destination, delivery.stream.id);
  THALWEG_ASSIGN(const auto records, read_records(bookkeeping));
  const std::optional<TableRecord> record = record_of(records, name);
  // One that the stream has and no record was missing when it was to be copied: the start that follows copies it.
  if (!record && std::ranges::find(delivery.stream.tables, table) == delivery.stream.tables.end())
    return not_copied(name);
  instantiation::Catalogue source(sides.source);
  instantiation::Catalogue destination(sides.destination);
  THALWEG_TRY(source.open());
  THALWEG_TRY(destination.open());
  THALWEG_ASSIGN(const auto at_source, source.table(name));
  if (!at_source) {
    base::Error missing =
        base::fail(ErrorCode::missing_table, fmt::format("{} does not exist at the source.", name.quoted()),
                   base::ErrorSide::source)
            .error();
    missing.table = name.quoted();
    return std::unexpected(std::move(missing));
  }
  THALWEG_TRY(instantiation::check_source_table(*at_source, delivery.stream.inserts_only.contains(table)));
  THALWEG_TRY(check_exchange(sides, delivery, name, at_source->oid, records));
  THALWEG_ASSIGN(const instantiation::TableShape there, shape_there(sides.source, delivery, table, *at_source));
  THALWEG_ASSIGN(const auto at_destination, destination.table(there.name));
  if (at_destination) {
    THALWEG_TRY(instantiation::check_same_table(there, *at_destination));
    instantiation::DestinationSchema schema(sides.destination, destination);
    THALWEG_TRY(schema.check_partition_names(there, *at_destination));
    if (!record && delivery.destination.parameters.initial_copy) THALWEG_TRY(schema.check_empty(*at_destination));
  }
  instantiation::CarriedTable carried =
      instantiation::carried_table(there, at_destination ? &*at_destination : nullptr, record && record->created);
  carried.table = name;
  THALWEG_TRY(check_code(sides, delivery, carried));
  THALWEG_TRY(instantiation::check_row_security(sides.source, {name}, base::ErrorSide::source));
  THALWEG_TRY(instantiation::check_row_security(sides.destination, {there.name}, base::ErrorSide::destination));
  if (record) THALWEG_TRY(bookkeeping.ask_for_copy(name));
  base::log_event(base::LogLevel::info, "copy_again", {{"stream", delivery.stream.id}, {"table", name.quoted()}});
  return {};
}

base::Result<void> accept_partitions(const Delivery& delivery, const control::TableRef& table,
                                     const std::atomic<bool>& abandon) {
  const TableName name{table.schema, table.table};
  THALWEG_ASSIGN(Sides sides, connect(delivery, abandon));
  Bookkeeping bookkeeping(sides.destination, delivery.stream.id);
  THALWEG_ASSIGN(const auto records, read_records(bookkeeping));
  const std::optional<TableRecord> record = record_of(records, name);
  if (!record) return not_copied(name);
  if (!record->trouble || record->trouble->kind != instantiation::TroubleKind::partitions_changed || record->stopped) {
    return base::fail(ErrorCode::resolution_refused,
                      record->stopped
                          ? fmt::format("Changes of {} have been left out since: copy it again.", name.quoted())
                          : fmt::format("{} has no changed partitions.", name.quoted()));
  }
  const std::vector<instantiation::WatchedTable> watched = {{.name = name, .was = {}}};
  THALWEG_ASSIGN(const auto now,
                 instantiation::look_at_source(sides.source, publications_of(delivery.stream.id), watched));
  const instantiation::SourceTable* const found = now.find(name);
  if (found == nullptr || found->now.relation != record->identity.relation) {
    return base::fail(ErrorCode::resolution_refused,
                      fmt::format("{} is not the table that was captured any more.", name.quoted()));
  }
  base::log_event(base::LogLevel::info, "partitions_accepted",
                  {{"stream", delivery.stream.id}, {"table", name.quoted()}});
  THALWEG_ASSIGN(const auto stream, apply::find_stream(sides.destination, delivery.stream.id));
  return bookkeeping.accept(name, found->now, stream ? stream->low_watermark : base::Lsn{});
}

}  // namespace thalweg::daemon
