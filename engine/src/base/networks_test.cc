#include "base/networks.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

namespace thalweg::base {
namespace {

bool allows(const Networks& networks, const std::string& address) {
  sockaddr_in four{};
  if (::inet_pton(AF_INET, address.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    return networks.allow(reinterpret_cast<const sockaddr&>(four));
  }
  sockaddr_in6 six{};
  EXPECT_EQ(::inet_pton(AF_INET6, address.c_str(), &six.sin6_addr), 1) << address;
  six.sin6_family = AF_INET6;
  return networks.allow(reinterpret_cast<const sockaddr&>(six));
}

TEST(Networks, WithoutRangesEveryAddressAndNoLocalSocket) {
  const Networks networks;
  EXPECT_TRUE(allows(networks, "203.0.113.9"));
  EXPECT_TRUE(allows(networks, "2001:db8::1"));
  EXPECT_FALSE(networks.allow_local());
  EXPECT_FALSE(networks.restrict_addresses());
}

TEST(Networks, KeepToTheirRanges) {
  const auto networks = Networks::parse({"10.0.0.0/8", "192.0.2.7", "172.16.0.0/12", "fd00::/8"});
  ASSERT_TRUE(networks);
  for (const char* inside : {"10.0.0.1", "10.255.255.255", "192.0.2.7", "172.31.0.1", "fd12::1", "::ffff:10.1.2.3"}) {
    EXPECT_TRUE(allows(*networks, inside)) << inside;
  }
  for (const char* outside : {"11.0.0.1", "192.0.2.8", "172.32.0.1", "fe80::1", "::ffff:127.0.0.1", "::1"}) {
    EXPECT_FALSE(allows(*networks, outside)) << outside;
  }
  EXPECT_FALSE(networks->allow_local());
}

TEST(Networks, EveryAddressOfOneFamilyIsNoneOfTheOther) {
  const auto six = Networks::parse({"::/0", "local"});
  ASSERT_TRUE(six);
  EXPECT_TRUE(allows(*six, "2001:db8::1"));
  EXPECT_FALSE(allows(*six, "127.0.0.1"));
  EXPECT_FALSE(allows(*six, "::ffff:127.0.0.1"));
  EXPECT_TRUE(six->allow_local());
  const auto four = Networks::parse({"0.0.0.0/0"});
  ASSERT_TRUE(four);
  EXPECT_TRUE(allows(*four, "127.0.0.1"));
  EXPECT_FALSE(allows(*four, "::1"));
}

TEST(Networks, RefuseWhatIsNoRange) {
  for (const char* text : {"", "10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/", "10.0.0.0/8x", "example.com"}) {
    EXPECT_FALSE(Networks::parse({text})) << text;
  }
}

}  // namespace
}  // namespace thalweg::base
