#include "daemon/queue_consumer.h"

#include <algorithm>
#include <utility>

#include "daemon/statement_handlers.h"
#include "pg/connection.h"

namespace thalweg::daemon {
namespace {

apply::ErrorAction action_of(control::PolicyAction action) {
  switch (action) {
    case control::PolicyAction::stop:
      return apply::ErrorAction::stop;
    case control::PolicyAction::park:
      return apply::ErrorAction::park;
    case control::PolicyAction::skip:
      return apply::ErrorAction::skip;
    case control::PolicyAction::retry:
      return apply::ErrorAction::retry;
  }
  std::unreachable();
}

apply::CommitSerialization serialization_of(control::CommitSerialization parameter) {
  switch (parameter) {
    case control::CommitSerialization::full:
      return apply::CommitSerialization::full;
    case control::CommitSerialization::dependent_transactions:
      return apply::CommitSerialization::dependent_transactions;
    case control::CommitSerialization::none:
      return apply::CommitSerialization::none;
  }
  std::unreachable();
}

// The stream's table as errors name it, by its name at the destination; empty: any.
std::string quoted(const control::DestinationNames& names, const std::string& schema, const std::string& table) {
  if (table.empty()) return {};
  const control::TableRef stream_table{schema, table};
  const control::TableRef& there = control::name_there(names, stream_table);
  return pg::quote_table(there.schema, there.table);
}

// The columns that are sent otherwise than the source has them, by the names that they are sent with.
std::vector<std::string> made_columns(const control::Transformations& steps) {
  std::vector<std::string> made;
  for (const control::TransformationDefinition& step : steps) {
    switch (step.type) {
      case control::TransformationType::mask_column:
      case control::TransformationType::add_column:
      case control::TransformationType::cast_column:
        made.push_back(step.column);
        break;
      case control::TransformationType::rename_column:
        std::ranges::replace(made, step.column, step.to);
        break;
      case control::TransformationType::drop_column:
        std::erase(made, step.column);
        break;
      case control::TransformationType::keep_columns:
        std::erase_if(made, [&](const std::string& column) {
          return std::ranges::find(step.columns, column) == step.columns.end();
        });
        break;
    }
  }
  return made;
}

// Values that a transformation makes tell nothing of the source's row: rows that were sent before it was changed have
// other ones. So a table with such columns has an entry of its own, before the one for any table.
std::vector<metadata::ComparedTable> compared_tables(const control::Delivery& delivery) {
  std::vector<metadata::ComparedTable> tables;
  for (const control::ComparedTableDefinition& compared : delivery.destination.parameters.conflict_detection) {
    metadata::ComparedTable entry{.table = quoted(delivery.stream.names, compared.schema, compared.table),
                                  .columns = compared.columns};
    for (const auto& [table, transformations] : delivery.stream.transformations) {
      const std::string name = quoted(delivery.stream.names, table.schema, table.table);
      if (entry.table.empty()) {
        tables.push_back({.table = name, .except = made_columns(transformations)});
      } else if (entry.table == name) {
        entry.except = made_columns(transformations);
      }
    }
    tables.push_back(std::move(entry));
  }
  return tables;
}

apply::ApplyParameters apply_parameters(const control::StreamParameters& parameters,
                                        const control::DestinationNames& names) {
  apply::ApplyParameters out;
  out.parallelism = static_cast<int>(parameters.parallelism);
  out.commit_serialization = serialization_of(parameters.commit_serialization);
  out.disable_on_error = parameters.disable_on_error;
  for (const control::ErrorPolicyDefinition& policy : parameters.error_policies) {
    out.error_policies.push_back({.error = policy.error,
                                  .table = quoted(names, policy.schema, policy.table),
                                  .action = action_of(policy.action),
                                  .times = static_cast<int>(policy.times),
                                  .delay = policy.delay,
                                  .after_retries = action_of(policy.after_retries)});
  }
  for (const control::ConflictHandlerDefinition& handler : parameters.conflict_handlers) {
    out.conflict_handlers.push_back({.kind = handler.kind,
                                     .table = quoted(names, handler.schema, handler.table),
                                     .action = handler.action,
                                     .columns = handler.columns,
                                     .by = handler.by,
                                     .tie_overwrites = handler.tie_overwrites,
                                     .order = handler.order,
                                     .expression = handler.expression});
  }
  out.conflict_retention = std::chrono::days(parameters.conflict_retention_days);
  out.data_layer = parameters.data_layer;
  out.group_size = static_cast<size_t>(parameters.group_size);
  out.txn_lcr_spill_threshold = static_cast<size_t>(parameters.txn_lcr_spill_threshold);
  out.txn_age_spill_threshold = std::chrono::seconds(parameters.txn_age_spill_threshold);
  out.spill_limit_bytes = static_cast<uint64_t>(parameters.spill_limit_mb) * 1024 * 1024;
  out.metadata_cache_bytes = static_cast<size_t>(parameters.metadata_cache_mb) * 1024 * 1024;
  out.memory_budget_bytes = static_cast<size_t>(parameters.memory_budget_mb) * 1024 * 1024;
  return out;
}

apply::ApplyParameters starting_parameters(const control::Delivery& delivery) {
  apply::ApplyParameters out = apply_parameters(delivery.destination.parameters, delivery.stream.names);
  out.statement_handlers = statement_handlers(delivery);
  out.compared = compared_tables(delivery);
  return out;
}

class ApplyConsumer final : public QueueConsumer {
 public:
  ApplyConsumer(const control::Delivery& delivery, std::vector<apply::CatchUpSpan> catch_up,
                std::filesystem::path spill_directory, queue::FrameSource& frames, const base::Clock& clock,
                const DatabaseWork& work, apply::Retries* retries, TableWatch* tables)
      : apply_({.stream_id = delivery.stream.id,
                .destination_conninfo = delivery.destination.conninfo,
                .frames = &frames,
                .parameters = starting_parameters(delivery),
                .spill_directory = std::move(spill_directory),
                .catch_up = std::move(catch_up),
                .clock = &clock,
                .stop_start = work.stop,
                .board = work.board,
                .retries = retries,
                .on_partitions =
                    [tables] {
                      if (tables != nullptr) tables->refresh();
                    }}),
        names_(delivery.stream.names),
        destination_(delivery.destination.conninfo),
        work_(work) {}

  base::Result<base::Lsn> start() override {
    auto started = apply_.start();
    if (!started && work_.is_given_up()) work_.try_to_end_given_up(destination_);
    return started;
  }
  void set_parameters(const control::StreamParameters& parameters) override {
    apply_.set_parameters(apply_parameters(parameters, names_));
  }
  void request_stop(bool drain) override { apply_.request_stop(drain); }
  bool is_running() const override { return apply_.status().running; }
  void join() override { apply_.join(); }
  std::optional<base::Error> failure() const override { return apply_.status().error; }
  std::optional<base::Error> trouble() const override { return {}; }
  const std::atomic<uint64_t>& confirmed() const override { return apply_.confirmed_lsn(); }
  base::Lsn applied() const override { return apply_.status().applied; }
  base::Lsn begins_at() const override { return apply_.begins_at(); }
  void add_to(control::StreamStats& stats) const override {
    for (telemetry::ComponentSample& sample : apply_.sample()) stats.components.push_back(std::move(sample));
    const auto latency = apply_.latency();
    for (size_t i = 0; i < latency.size(); ++i) {
      if (latency[i] > 0) stats.latency.emplace_back(telemetry::LatencyHistogram::upper_bound_micros(i), latency[i]);
    }
    stats.tables = tables();
    stats.error_queue_transactions = apply_.parked_transactions();
  }
  void add_to(telemetry::MarkerTrail& trail) const override { apply_.add_to(trail); }
  // The tables by the names that the stream has for them.
  std::vector<telemetry::TableSample> tables() const override {
    std::vector<telemetry::TableSample> tables = apply_.tables();
    for (telemetry::TableSample& table : tables) {
      const control::TableRef there{table.schema_name, table.table_name};
      const control::TableRef& named = control::name_there(tables_there_, there);
      table.schema_name = named.schema;
      table.table_name = named.table;
    }
    return tables;
  }
  apply::Apply* apply() override { return &apply_; }

 private:
  apply::Apply apply_;
  const control::DestinationNames names_;
  const control::DestinationNames tables_there_ = control::reversed(names_);
  const base::Conninfo destination_;
  const DatabaseWork work_;
};

}  // namespace

std::unique_ptr<QueueConsumer> make_apply_consumer(const control::Delivery& delivery,
                                                   std::vector<apply::CatchUpSpan> catch_up,
                                                   std::filesystem::path spill_directory, queue::FrameSource& frames,
                                                   const base::Clock& clock, const DatabaseWork& work,
                                                   apply::Retries* retries, TableWatch* tables) {
  return std::make_unique<ApplyConsumer>(delivery, std::move(catch_up), std::move(spill_directory), frames, clock, work,
                                         retries, tables);
}

}  // namespace thalweg::daemon
