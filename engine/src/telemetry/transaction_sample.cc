#include "telemetry/transaction_sample.h"

#include <algorithm>
#include <utility>

namespace thalweg::telemetry {

void keep_notable(std::vector<TransactionSample>& transactions, size_t max) {
  if (transactions.size() <= max) return;
  const auto oldest_end = transactions.begin() + static_cast<std::ptrdiff_t>(max / 2);
  const auto end = transactions.begin() + static_cast<std::ptrdiff_t>(max);
  std::ranges::nth_element(transactions, oldest_end, {}, &TransactionSample::begun);
  std::nth_element(oldest_end, end, transactions.end(), [](const TransactionSample& a, const TransactionSample& b) {
    return std::pair(a.bytes, a.lcrs) > std::pair(b.bytes, b.lcrs);
  });
  transactions.erase(end, transactions.end());
}

}  // namespace thalweg::telemetry
