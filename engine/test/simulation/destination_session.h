#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lcr/frame.h"
#include "simulation/destination.h"
#include "simulation/row_statement.h"

namespace thalweg::simulation {

// pg_class.oid of thalweg.apply_progress; the next is that of its index with the epoch.
inline constexpr uint32_t kProgressOid = 900;
inline constexpr uint32_t kProgressEpochIndex = kProgressOid + 1;

// One session at the destination. Changes are made in place under locks, with what undoes them.
class DestinationSession final : public Session {
 public:
  DestinationSession(Destination& destination, std::shared_ptr<Channel> channel);
  ~DestinationSession() override;

 private:
  using Parameters = std::vector<Parameter>;

  Outcome execute(const std::string& sql, const Parameters& parameters) override;
  Outcome commit() override;
  void roll_back() override;
  size_t changes_made() const override { return undo_.size(); }
  void roll_back_to(size_t changes) override;
  void set(const std::string& sql) override;
  Outcome copy_in(const std::string& sql, const std::string& bytes) override;
  void replicate(const std::string& sql) override;

  // progress_statements.cc: what apply keeps about itself
  Outcome progress_statement(const std::string& sql, const Parameters& parameters, bool& known);
  Outcome find_stream();
  Outcome begin_epoch();
  Outcome blockers(int pid);
  Outcome lock_progress();
  Outcome fold_progress(const std::string& sql, const Parameters& parameters);
  Outcome create_progress_row(const Parameters& parameters);
  Outcome write_progress(const std::string& sql, const Parameters& parameters);
  Outcome write_progress(const lcr::FrameView& frame, bool fenced);
  // Affects no row where there is none, or, `fenced`, none of its epoch.
  Outcome update_progress(int64_t number, int64_t next, const ProgressRow& row, bool fenced);
  Outcome record(const std::string& sql, const Parameters& parameters);
  // error_queue_statements.cc: transactions that are parked
  Outcome error_queue_statement(const std::string& sql, const Parameters& parameters, bool& known);
  Outcome park(const Parameters& parameters);
  Outcome add_chunk(const Parameters& parameters);
  Outcome show_parked(bool with_hashes);
  // `cause`: code, message and SQLSTATE.
  Outcome note_parked(int64_t id, const std::array<std::string, 3>& cause);
  Outcome mark_freed(const Parameters& parameters);
  Outcome show_small(const std::string& ids);
  Outcome delete_parked(const std::string& sql, int64_t id);
  // conflict_statements.cc: rows that are in the way, and the log of what was done about them
  Outcome conflict_statement(const std::string& sql, const Parameters& parameters, bool& known);
  Outcome look_up(const std::string& sql, const Parameters& parameters);
  Outcome lock_and_compare(const std::string& sql, const Parameters& parameters);
  Outcome log_conflict(const std::string& sql, const Parameters& parameters);
  // catalog_statements.cc: what apply asks about tables
  Outcome catalog_statement(const std::string& sql, const Parameters& parameters, bool& known);

  Outcome truncate(const std::vector<std::string>& tables);
  Outcome row_statement(const RowStatement& statement, const Parameters& parameters);
  Outcome data_layer(const Parameters& parameters);
  // All columns of a row; a column without `came` keeps what the row has. `key`: what finds the old one.
  Outcome insert_row(int table, const Row& row);
  // Locks the row that `key` finds; `found` stays empty where there is none.
  Outcome find_to_change(int table, const Row& key, std::optional<Row>& found);
  // `compared`: what the row has to have besides.
  using Compared = std::vector<std::pair<size_t, Value>>;
  Outcome update_row(int table, const Row& key, const Row& values, const std::vector<bool>& came,
                     const Compared& compared = {});
  Outcome remove_row(int table, const Row& key, const Compared& compared = {});
  Outcome lock(const std::string& name, Locks::Mode mode);
  Outcome lock_bag(int table, Locks::Mode mode);
  Outcome make(const Change& change);
  void change(std::function<void(DestinationState&)> redo, std::function<void(DestinationState&)> undo);

  Destination& destination_;
  bool synchronous_ = true;
  bool holds_advisory_lock_ = false;
  std::vector<std::function<void(DestinationState&)>> redo_;
  std::vector<std::function<void(DestinationState&)>> undo_;
  std::vector<std::pair<int, Row>> refused_;  // rows of the transaction that did not please, by table
};

}  // namespace thalweg::simulation
