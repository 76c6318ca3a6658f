#include "pg/connection_settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "pg/connection.h"
#include "support/test_cluster.h"

namespace thalweg::pg {
namespace {

using base::ErrorCode;
using std::chrono::seconds;

constexpr const char* kPem = "-----BEGIN CERTIFICATE-----\nMAo=\n-----END CERTIFICATE-----\n";

base::Result<ConnectionSettings> admit(const std::string& text, std::vector<std::string> networks = {}) {
  base::Conninfo conninfo{text};
  conninfo.within = std::make_shared<const base::Networks>(*base::Networks::parse(std::move(networks)));
  return admitted_settings(conninfo, seconds(10));
}

std::optional<std::string> value_of(const ServerSettings& server, std::string_view keyword) {
  for (const auto& [name, value] : server.settings) {
    if (name == keyword) return value;
  }
  return {};
}

TEST(ConnectionSettings, NoPathReachesLibpq) {
  for (const char* setting : {"sslkey=PATH:x", "sslkey=/etc/passwd", "sslcert=/etc/passwd", "sslrootcert=system",
                              "sslcrl=x", "passfile=/etc/passwd", "service=x", "options='-c a=b'", "hostaddr=127.0.0.1",
                              "krbsrvname=x", "sslpassword=x", "sslcrldir=/etc"}) {
    const auto admitted = admit(std::string("host=db ") + setting);
    ASSERT_FALSE(admitted) << setting;
    EXPECT_EQ(admitted.error().code, ErrorCode::connection_setting_refused) << setting;
  }
}

TEST(ConnectionSettings, PemContentsLieInMemoryForTheOwnerAlone) {
  const auto admitted = admit(std::string("host=db sslrootcert='") + kPem + "'");
  ASSERT_TRUE(admitted) << admitted.error().message;
  const auto path = value_of(admitted->servers.front(), "sslrootcert");
  ASSERT_TRUE(path && path->starts_with("/proc/self/fd/")) << *path;
  EXPECT_EQ(*base::read_file(*path), kPem);
  EXPECT_EQ(std::filesystem::status(*path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST(ConnectionSettings, NothingOfTheEnginesAccountGoesAlong) {
  const auto admitted = admit("host=db");
  ASSERT_TRUE(admitted);
  EXPECT_EQ(value_of(admitted->servers.front(), "gssencmode"), "disable");
  EXPECT_EQ(value_of(admitted->servers.front(), "sslmode"), "prefer");
  for (const char* file : {"passfile", "sslcert"}) {
    const auto path = value_of(admitted->servers.front(), file);
    ASSERT_TRUE(path) << file;
    EXPECT_FALSE(std::filesystem::exists(*path)) << *path;
  }
  EXPECT_EQ(value_of(admit("host=db gssencmode=require sslmode=verify-full")->servers.front(), "gssencmode"),
            "require");
}

TEST(ConnectionSettings, TheEnvironmentChangesNoConnection) {
  ::setenv("PGHOSTADDR", "192.0.2.1", 1);
  ::setenv("PGSERVICE", "somewhere", 1);
  ::setenv("PGOPTIONS", "-c search_path=public", 1);
  ::setenv("PGTZ", "Asia/Tokyo", 1);
  forget_environment();
  for (const char* name : {"PGHOSTADDR", "PGSERVICE", "PGOPTIONS", "PGTZ"}) EXPECT_EQ(::getenv(name), nullptr) << name;
  EXPECT_TRUE(Connection::open(base::Conninfo{test::shared_cluster().conninfo()}, {}));
}

TEST(ConnectionSettings, SeveralHostsAreSeveralServers) {
  const auto admitted = admit("host=a,b port=1,2 dbname=d connect_timeout=3 target_session_attrs=prefer-standby");
  ASSERT_TRUE(admitted);
  ASSERT_EQ(admitted->servers.size(), 4u);
  EXPECT_EQ(value_of(admitted->servers[1], "host"), "b");
  EXPECT_EQ(value_of(admitted->servers[1], "port"), "2");
  EXPECT_EQ(value_of(admitted->servers[1], "target_session_attrs"), "standby");
  EXPECT_EQ(value_of(admitted->servers[2], "target_session_attrs"), "any");
  EXPECT_EQ(admitted->servers[0].connect_timeout, seconds(3));
  EXPECT_EQ(admit("host=a connect_timeout=3600")->servers[0].connect_timeout, seconds(10));
  EXPECT_FALSE(admit("host=a,b,c port=1,2"));
}

// The role that a connection is for takes precedence over the address's target_session_attrs.
TEST(ConnectionSettings, ARoleChoosesTheServer) {
  const base::Conninfo both("host=a,b dbname=d target_session_attrs=any");
  const auto attributes = [&](base::ServerRole role) {
    std::vector<std::string> values;
    const auto admitted = admitted_settings(both.for_role(role), seconds(10));
    for (const auto& server : admitted->servers) {
      values.push_back(value_of(server, "target_session_attrs").value_or(""));
    }
    return values;
  };
  using Values = std::vector<std::string>;
  EXPECT_EQ(attributes(base::ServerRole::as_given), (Values{"any", "any"}));
  EXPECT_EQ(attributes(base::ServerRole::primary), (Values{"primary", "primary"}));
  EXPECT_EQ(attributes(base::ServerRole::standby), (Values{"standby", "standby"}));
  EXPECT_EQ(attributes(base::ServerRole::standby_first), (Values{"standby", "standby", "any", "any"}));
  EXPECT_NE(both, both.for_role(base::ServerRole::primary));
}

TEST(ConnectionSettings, AddressesAreLookedUpAndCompared) {
  const auto inside = admit("host=localhost port=5", {"127.0.0.0/8"});
  ASSERT_TRUE(inside) << inside.error().message;
  EXPECT_EQ(value_of(inside->servers.front(), "host"), "localhost");
  EXPECT_EQ(value_of(inside->servers.front(), "hostaddr"), "127.0.0.1");
  for (const char* hosts : {"host=localhost", "host=10.1.2.3,127.0.0.1", "host=10.1.2.3,/tmp"}) {
    const auto outside = admit(hosts, {"10.0.0.0/8"});
    ASSERT_FALSE(outside) << hosts;
    EXPECT_EQ(outside.error().code, ErrorCode::address_not_allowed) << hosts;
  }
  EXPECT_FALSE(value_of(admit("host=localhost")->servers.front(), "hostaddr"));
}

TEST(ConnectionSettings, LocalSocketsNeedTheAdministratorsWord) {
  for (const char* host : {"host=/tmp", "host=@socket", "dbname=x", "host=db,"}) {
    EXPECT_EQ(admit(host).error().code, ErrorCode::address_not_allowed) << host;
    EXPECT_TRUE(admit(host, {"local"})) << host;
  }
}

TEST(ConnectionSettings, NextServerIsTriedWhenOneIsAway) {
  const std::string good = test::shared_cluster().conninfo();
  const size_t port_at = good.find("port=") + 5;
  const std::string port = good.substr(port_at, good.find(' ', port_at) - port_at);
  const std::string rest = " dbname=postgres user=postgres";
  auto opened = Connection::open("host=127.0.0.1,127.0.0.1 port=1," + port + rest, {.search_path = "public"});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_TRUE(opened->query("SELECT 1"));
  auto standby = Connection::open("host=127.0.0.1 port=" + port + rest + " target_session_attrs=standby",
                                  {.search_path = "public"});
  ASSERT_FALSE(standby);
  EXPECT_EQ(standby.error().code, ErrorCode::database_unreachable);
  EXPECT_TRUE(
      Connection::open("host=127.0.0.1,127.0.0.1 port=1," + port + rest + " target_session_attrs=prefer-standby",
                       {.search_path = "public"}));
}

// A user who may create in public could have the engine's user call a function of theirs.
TEST(ConnectionSettings, FunctionsInPublicAreNotTakenForTheServersOwn) {
  const std::string conninfo = test::shared_cluster().conninfo();
  auto admin = Connection::open(conninfo, {.search_path = "public"});
  ASSERT_TRUE(admin);
  ASSERT_TRUE(
      admin->script("CREATE FUNCTION public.cardinality(text[]) RETURNS int LANGUAGE sql AS 'SELECT -1'; "
                    "CREATE TABLE public.found_by_path (id int)"));
  auto ours = Connection::open(conninfo, ConnectOptions{});
  ASSERT_TRUE(ours) << ours.error().message;
  const auto counted = ours->query("SELECT cardinality('{a,b}'::text[]), to_regclass('found_by_path')");
  ASSERT_TRUE(admin->script("DROP FUNCTION public.cardinality(text[]); DROP TABLE public.found_by_path"));
  ASSERT_TRUE(counted) << counted.error().message;
  EXPECT_EQ(counted->text(0, 0), "2");
  EXPECT_TRUE(counted->is_null(0, 1));
}

TEST(ConnectionSettings, RolesOwnSettingsDoNotReachTheSession) {
  auto admin = Connection::open(test::shared_cluster().conninfo(), {.search_path = "public"});
  ASSERT_TRUE(admin);
  ASSERT_TRUE(admin->script(
      "CREATE ROLE hemmed SUPERUSER LOGIN; ALTER ROLE hemmed SET default_transaction_read_only = on; "
      "ALTER ROLE hemmed SET idle_session_timeout = 1; ALTER ROLE hemmed SET statement_timeout = 1; "
      "ALTER ROLE hemmed SET lock_timeout = 1; ALTER ROLE hemmed SET default_transaction_isolation = "
      "serializable; ALTER ROLE hemmed SET idle_in_transaction_session_timeout = 1; ALTER ROLE hemmed SET jit = on"));
  auto hemmed = Connection::open(test::shared_cluster().conninfo("postgres", "hemmed"), {.search_path = "public"});
  ASSERT_TRUE(hemmed) << hemmed.error().message;
  const auto rows = hemmed->query(
      "SELECT concat_ws(' ', current_setting('default_transaction_read_only'), current_setting('idle_session_timeout'),"
      " current_setting('statement_timeout'), current_setting('lock_timeout'),"
      " current_setting('idle_in_transaction_session_timeout'), current_setting('default_transaction_isolation'), "
      "current_setting('jit'))");
  ASSERT_TRUE(admin->script("DROP ROLE hemmed"));
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->text(0, 0), "on 0 0 0 0 read committed off") << "all but what keeps writers out";
}

}  // namespace
}  // namespace thalweg::pg
