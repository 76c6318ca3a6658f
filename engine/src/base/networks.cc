#include "base/networks.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace thalweg::base {

namespace {

constexpr std::string_view kLocal = "local";
constexpr int kMappedBits = 96;  // ::ffff:0:0/96 holds IPv4 (RFC 4291, section 2.5.5.2)
constexpr std::array<uint8_t, 12> kMappedPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

std::array<uint8_t, 16> mapped(const void* four_bytes) {
  std::array<uint8_t, 16> address{};
  std::ranges::copy(kMappedPrefix, address.begin());
  std::memcpy(&address[kMappedPrefix.size()], four_bytes, 4);
  return address;
}

bool same_bits(const std::array<uint8_t, 16>& left, const std::array<uint8_t, 16>& right, int bits) {
  for (int i = 0; i < bits; ++i) {
    const auto byte = static_cast<size_t>(i / 8);
    if (((left[byte] ^ right[byte]) >> (7 - i % 8) & 1) != 0) return false;
  }
  return true;
}

}  // namespace

Result<Networks> Networks::parse(std::vector<std::string> ranges) {
  Networks networks;
  for (const std::string& text : ranges) {
    if (text == kLocal) {
      networks.local_ = true;
      continue;
    }
    THALWEG_ASSIGN(const Range range, parse_range(text));
    networks.ranges_.push_back(range);
  }
  networks.text_ = std::move(ranges);
  return networks;
}

Result<Networks::Range> Networks::parse_range(const std::string& text) {
  const size_t slash = text.find('/');
  const std::string host = text.substr(0, slash);
  Range range{};
  in_addr four{};
  const bool is_four = ::inet_pton(AF_INET, host.c_str(), &four) == 1;
  if (is_four) {
    range.address = mapped(&four);
  } else if (::inet_pton(AF_INET6, host.c_str(), range.address.data()) != 1) {
    return fail(ErrorCode::invalid_request, fmt::format("{} is not a range of addresses such as 10.0.0.0/8", text));
  }
  const int bits_max = is_four ? 32 : 128;
  int bits = bits_max;
  if (slash != std::string::npos) {
    const char* const end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data() + slash + 1, end, bits);
    if (problem != std::errc{} || stop != end || bits < 0 || bits > bits_max) {
      return fail(ErrorCode::invalid_request, fmt::format("{} needs a number from 0 to {} behind /", text, bits_max));
    }
  }
  range.bits = is_four ? kMappedBits + bits : bits;
  return range;
}

bool Networks::allow(const sockaddr& address) const {
  if (ranges_.empty()) return true;
  std::array<uint8_t, 16> bytes{};
  if (address.sa_family == AF_INET) {
    bytes = mapped(&reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  } else if (address.sa_family == AF_INET6) {
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, bytes.size());
  } else {
    return false;
  }
  // ::/0 is every IPv6 address, and no IPv4 one.
  const bool is_four = same_bits(bytes, mapped(&bytes[12]), kMappedBits);
  return std::ranges::any_of(ranges_, [&](const Range& range) {
    if (is_four && range.bits < kMappedBits) return false;
    return same_bits(bytes, range.address, range.bits);
  });
}

}  // namespace thalweg::base
