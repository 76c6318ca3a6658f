#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "lcr/frame.h"
#include "transform/keyed_hash.h"
#include "transform/plan.h"
#include "transform/step.h"

// The steps of a table over the frames of its changes.

namespace thalweg::transform {

// Of one version of a table. Owner: the agent that captures.
class RowTransformation {
 public:
  // Fails with transformation_refused.
  static base::Result<RowTransformation> make(const Steps& steps, const lcr::TableDescription& source);

  // The table as its changes are sent.
  const lcr::TableDescription& sent_table() const { return sent_table_; }
  // A change of the source's table as it is sent. Its tuples last until the next call.
  lcr::RowFrame apply(const lcr::RowFrame& change);

 private:
  RowTransformation() = default;

  std::span<const std::byte> transformed(std::span<const std::byte> tuple, bool is_key_only,
                                         std::vector<std::byte>& out);
  lcr::Value masked(const lcr::Value& value, size_t column);

  lcr::TableDescription sent_table_;
  std::vector<SentColumn> columns_;
  std::vector<lcr::Value> values_;                // of the tuple that is looked at
  std::vector<lcr::Value> sent_;                  // and of the one that is made of it
  std::vector<std::string> masked_;               // by column: values that were made
  std::vector<std::optional<KeyedHash>> hashes_;  // by column: of those with such a mask
  std::vector<std::byte> old_tuple_, new_tuple_;
};

// `text` with an asterisk for each character but those that the mask keeps: for each one where it would keep all.
void mask_part(std::string_view text, const Mask& mask, std::string& out);

}  // namespace thalweg::transform
