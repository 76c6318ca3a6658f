#include "base/strangers.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <utility>

namespace thalweg::base {

std::optional<uint64_t> Strangers::enter(uint64_t number, std::string address) {
  std::map<std::string, size_t> counts;
  for (const auto& [other, its_address] : addresses_) ++counts[its_address];
  std::optional<uint64_t> gone;
  if (counts[address] >= limits_.of_one_address) {
    gone = oldest_of(address);
  } else if (addresses_.size() >= limits_.all) {
    const auto most = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
    gone = oldest_of(most->first);
  }
  if (gone) addresses_.erase(*gone);
  addresses_.emplace(number, std::move(address));
  return gone;
}

std::optional<uint64_t> Strangers::oldest_of(const std::string& address) const {
  const auto found = std::ranges::find(addresses_, address, [](const auto& entry) { return entry.second; });
  if (found == addresses_.end()) return std::nullopt;
  return found->first;
}

std::string origin_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET6) {
    in6_addr six = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&six)) {
      ::inet_ntop(AF_INET, &six.s6_addr[12], text.data(), text.size());
    } else {
      std::fill_n(&six.s6_addr[8], 8, uint8_t{0});
      ::inet_ntop(AF_INET6, &six, text.data(), text.size());
    }
  } else if (address->sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text.data(), text.size());
  }
  return text.data();
}

}  // namespace thalweg::base
