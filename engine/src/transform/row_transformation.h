#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "lcr/frame.h"
#include "rules/row_expression.h"
#include "transform/keyed_hash.h"
#include "transform/plan.h"
#include "transform/step.h"

// The steps of a table over the frames of its changes.

namespace thalweg::transform {

// Needed where columns are computed.
struct ComputeContext {
  rules::RuleTable table;             // the described version, as the source's catalogue completes it
  std::string source;                 // the attribute's value
  rules::Scratch* scratch = nullptr;  // outlives the transformation, and holds nothing between two rows
};

// Transforms rows of one version of a table. Owner: the agent that captures.
class RowTransformation {
 public:
  // `context`: of steps that have_computed_columns(). Fails with transformation_refused.
  static base::Result<RowTransformation> make(const Steps& steps, const lcr::TableDescription& source,
                                              ComputeContext context = {});

  // The table as its changes are sent.
  const lcr::TableDescription& sent_table() const { return sent_table_; }
  // Whether a column of the source's table is sent with its values: it is neither masked nor dropped.
  bool shows(size_t source_column) const;
  // A change of the source's table as it is sent. Its tuples last until the next call. Fails with
  // transformation_refused where a column cannot be computed: its expression fails as PostgreSQL's would, or needs a
  // value that the change did not bring. Allocates nothing unless it fails, once the buffers have grown.
  base::Result<lcr::RowFrame> apply(const lcr::RowFrame& change);

 private:
  RowTransformation() = default;

  struct Computation {
    rules::RowExpression expression;
    bool is_of_key;  // it reads nothing but the key
  };

  base::Result<void> compile(const lcr::TableDescription& source);
  base::Result<void> rewrite(const lcr::RowFrame& change, bool is_old, std::vector<std::byte>& out);
  lcr::Value masked(const lcr::Value& value, size_t column);
  void fill_inputs(const lcr::RowFrame& change, bool is_old);
  base::Result<lcr::Value> computed(const lcr::RowFrame& change, bool is_old, size_t column);
  bool is_as_before(const lcr::RowFrame& change, size_t column) const;
  base::Error failed(const lcr::RowFrame& change, size_t column, rules::Failure failure) const;
  base::Error lacking(const lcr::RowFrame& change, size_t column) const;

  lcr::TableDescription sent_table_;
  std::vector<SentColumn> columns_;
  ComputeContext context_;
  std::vector<std::optional<Computation>> computations_;  // by column
  bool computes_ = false;
  bool key_is_sent_ = false;                      // an update without an old tuple did not change the key
  std::vector<lcr::Value> values_;                // of the tuple that is looked at
  std::vector<lcr::Value> before_;                // of the old one
  std::vector<lcr::Value> inputs_;                // of the tuple, with what the old one has of values that did not come
  std::vector<lcr::Value> sent_;                  // of the tuple that is made
  std::vector<std::string> made_;                 // by column: values that were made
  std::vector<std::optional<KeyedHash>> hashes_;  // by column: of those with such a mask
  std::vector<std::byte> old_tuple_, new_tuple_;
};

// `text` with an asterisk for each character but those that the mask keeps: for each one where it would keep all.
void mask_part(std::string_view text, const Mask& mask, std::string& out);

}  // namespace thalweg::transform
