#include "base/strangers.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

namespace thalweg::base {
namespace {

TEST(Strangers, TheOldestOfAnAddressThatHasTooManyGoes) {
  Strangers strangers({.all = 10, .of_one_address = 2});
  EXPECT_EQ(strangers.enter(1, "a"), std::nullopt);
  EXPECT_EQ(strangers.enter(2, "a"), std::nullopt);
  EXPECT_EQ(strangers.enter(3, "b"), std::nullopt);
  EXPECT_EQ(strangers.enter(4, "a"), 1u);
  strangers.leave(2);  // it has said who it is
  EXPECT_EQ(strangers.enter(5, "a"), std::nullopt);
  EXPECT_EQ(strangers.enter(6, "a"), 4u);
  EXPECT_EQ(strangers.count(), 3u);
}

TEST(Strangers, AFloodPushesItselfOut) {
  Strangers strangers({.all = 4, .of_one_address = 3});
  EXPECT_EQ(strangers.enter(1, "good"), std::nullopt);
  for (uint64_t number = 2; number <= 4; ++number) EXPECT_EQ(strangers.enter(number, "flood"), std::nullopt);
  for (uint64_t number = 5; number < 100; ++number) EXPECT_EQ(strangers.enter(number, "flood"), number - 3);
  EXPECT_EQ(strangers.enter(100, "good"), 97u);  // never refused
  EXPECT_EQ(strangers.count(), 4u);
}

TEST(Strangers, AddressesOfOneNetworkCountAsOne) {
  const auto origin = [](const char* text) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    if (::inet_pton(AF_INET6, text, &six.sin6_addr) == 1) return origin_of(reinterpret_cast<sockaddr*>(&six));
    sockaddr_in four{};
    four.sin_family = AF_INET;
    EXPECT_EQ(::inet_pton(AF_INET, text, &four.sin_addr), 1);
    return origin_of(reinterpret_cast<sockaddr*>(&four));
  };
  EXPECT_EQ(origin("2001:db8::1"), origin("2001:db8::ffff:1"));
  EXPECT_NE(origin("2001:db8::1"), origin("2001:db8:0:1::1"));
  EXPECT_EQ(origin("::ffff:192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(origin("192.0.2.7"), "192.0.2.7");
}

}  // namespace
}  // namespace thalweg::base
