#pragma once

#include "base/error.h"

namespace thalweg::apply {

// Whether the error is of the transaction's data: worth another try alone, and the error queue. Anything else ends
// apply.
constexpr bool is_about_data(base::ErrorCode code) {
  using base::ErrorCode;
  return code == ErrorCode::apply_conflict || code == ErrorCode::apply_failed ||
         code == ErrorCode::initial_copy_inconsistent || code == ErrorCode::destination_table_differs;
}

}  // namespace thalweg::apply
