#include "pg/bookkeeping_trust.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "support/test_cluster.h"

namespace thalweg::pg {
namespace {

using base::ErrorCode;

constexpr const char* kDatabase = "bookkeeping_trust";
constexpr const char* kRoles = "trust_apply, trust_other, trust_mallory";

Connection connect(const std::string& database, const std::string& user) {
  auto opened = Connection::open(test::shared_cluster().conninfo(database, user), {});
  EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
  return *std::move(opened);
}

// A database in which the stream's role and somebody else may create schemas.
class BookkeepingTrust : public testing::Test {
 protected:
  BookkeepingTrust() {
    run(server_, "DROP DATABASE IF EXISTS bookkeeping_trust");
    run(server_, std::string("DROP ROLE IF EXISTS ") + kRoles);
    for (const char* role : {"trust_apply", "trust_other", "trust_mallory"}) {
      run(server_, std::string("CREATE ROLE ") + role + " LOGIN");
    }
    run(server_, "CREATE DATABASE bookkeeping_trust");
    as("postgres", "GRANT CREATE ON DATABASE bookkeeping_trust TO trust_apply, trust_other, trust_mallory");
    as("postgres", "GRANT CREATE ON SCHEMA public TO trust_mallory");
  }
  ~BookkeepingTrust() override {
    run(server_, "DROP DATABASE bookkeeping_trust");
    run(server_, std::string("DROP ROLE ") + kRoles);
  }

  static void run(Connection& connection, const std::string& sql) {
    const auto done = connection.script(sql);
    EXPECT_TRUE(done) << sql << ": " << (done ? "" : done.error().message);
  }
  static void as(const std::string& user, const std::string& sql) {
    Connection connection = connect(kDatabase, user);
    run(connection, sql);
  }
  // Its message; empty: the role trusts the schema.
  static std::string doubts_of(const std::string& user) {
    Connection connection = connect(kDatabase, user);
    const auto asked = trusted_bookkeeping(connection, {"stream"});
    if (asked) return "";
    EXPECT_EQ(asked.error().code, ErrorCode::bookkeeping_not_trusted) << asked.error().message;
    EXPECT_EQ(asked.error().side, base::ErrorSide::destination);
    return asked.error().message;
  }
  static bool has(const std::string& user, std::initializer_list<std::string_view> tables) {
    Connection connection = connect(kDatabase, user);
    return trusted_bookkeeping(connection, tables).value_or(false);
  }
  int64_t server_version() { return server_.query("SHOW server_version_num", {})->integer(0, 0); }
  static void make_own() { as("trust_apply", "CREATE SCHEMA thalweg; CREATE TABLE thalweg.stream (id int)"); }

  Connection server_ = connect("postgres", "postgres");
};

TEST_F(BookkeepingTrust, SeesWhichOfItsOwnTablesAreThere) {
  EXPECT_FALSE(has("trust_apply", {"stream"}));
  make_own();
  EXPECT_TRUE(has("trust_apply", {"stream"}));
  EXPECT_FALSE(has("trust_apply", {"stream", "error_queue"}));
}

TEST_F(BookkeepingTrust, RefusesASchemaThatSomebodyElseMade) {
  as("trust_mallory", "CREATE SCHEMA thalweg; CREATE TABLE thalweg.stream (id int)");
  EXPECT_EQ(doubts_of("trust_apply"),
            "The stream's role trust_apply may not trust the schema thalweg: the schema belongs to trust_mallory; "
            "table thalweg.stream belongs to trust_mallory.");
  EXPECT_NE(doubts_of("postgres"), "");  // what its powers would serve
}

TEST_F(BookkeepingTrust, TrustsTheRolesThatShareIt) {
  make_own();
  EXPECT_NE(doubts_of("trust_other"), "");
  as("postgres", "GRANT trust_apply TO trust_other");
  EXPECT_EQ(doubts_of("trust_other"), "");
  as("trust_other", "CREATE TABLE thalweg.more (id int)");
  EXPECT_EQ(doubts_of("trust_apply"), "");
  EXPECT_EQ(doubts_of("trust_other"), "");
  EXPECT_NE(doubts_of("postgres"), "");  // a superuser serves nobody below
}

TEST_F(BookkeepingTrust, CountsNoMembershipThatSomebodyGaveToThemselves) {
  as("postgres", "GRANT trust_other TO trust_mallory WITH ADMIN OPTION");
  as("trust_other", "CREATE SCHEMA thalweg");
  as("trust_mallory", "GRANT trust_other TO trust_apply");
  EXPECT_NE(doubts_of("trust_apply"), "");
}

TEST_F(BookkeepingTrust, CountsNoMembershipThatACreatorOfRolesGaveToASuperuser) {
  // From PostgreSQL 16 on she is given the second as soon as she creates a role.
  as("postgres", "ALTER ROLE trust_mallory CREATEROLE; GRANT trust_other TO trust_mallory WITH ADMIN OPTION");
  as("trust_mallory", "GRANT trust_other TO postgres, trust_apply");
  as("trust_other", "CREATE SCHEMA thalweg; CREATE TABLE thalweg.stream (id int)");
  EXPECT_TRUE(doubts_of("postgres").contains("the schema belongs to trust_other"));
  // Until PostgreSQL 15 she could as well have granted the stream's role to herself.
  EXPECT_EQ(doubts_of("trust_apply").empty(), server_version() < 160000);
  as("postgres", "ALTER ROLE trust_mallory NOCREATEROLE");
  EXPECT_NE(doubts_of("trust_apply"), "");
  as("postgres", "GRANT trust_apply TO trust_mallory");
  EXPECT_EQ(doubts_of("trust_apply"), "");  // who may act as the role herself
  as("trust_mallory", "REVOKE trust_other FROM postgres");
  as("postgres", "GRANT trust_other TO postgres");
  EXPECT_EQ(doubts_of("postgres"), "");
}

TEST_F(BookkeepingTrust, CountsNoMembershipOfASuperuserWhoseGrantorHasGone) {
  if (server_version() >= 160000) GTEST_SKIP() << "a grantor cannot be dropped";
  run(server_, "DROP ROLE IF EXISTS trust_gone; CREATE ROLE trust_gone LOGIN CREATEROLE");
  as("trust_gone", "GRANT trust_other TO postgres");
  as("postgres", "DROP ROLE trust_gone");
  as("trust_other", "CREATE SCHEMA thalweg");
  EXPECT_NE(doubts_of("postgres"), "");
}

TEST_F(BookkeepingTrust, RefusesWhatOthersMayCreateAndWrite) {
  make_own();
  as("trust_apply", "GRANT SELECT, INSERT ON thalweg.stream TO trust_mallory");
  EXPECT_EQ(doubts_of("trust_apply"), "");  // not without entering the schema
  as("trust_apply", "GRANT USAGE ON SCHEMA thalweg TO trust_mallory");
  EXPECT_TRUE(doubts_of("trust_apply").ends_with(": trust_mallory may write table thalweg.stream."));
  as("trust_apply", "REVOKE INSERT ON thalweg.stream FROM trust_mallory; GRANT CREATE ON SCHEMA thalweg TO PUBLIC");
  EXPECT_TRUE(doubts_of("trust_apply").ends_with(": everybody may create objects in it."));
}

TEST_F(BookkeepingTrust, RefusesCodeOfOthers) {
  make_own();
  as("trust_mallory",
     "CREATE FUNCTION public.evil() RETURNS int LANGUAGE sql AS 'SELECT 1'; "
     "CREATE FUNCTION public.evil_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; "
     "CREATE DOMAIN public.evil_domain AS int CHECK (public.evil() = 1)");
  struct Way {
    const char* added;
    const char* removed;
  };
  for (const Way& way : {
           Way{"ALTER TABLE thalweg.stream ALTER id SET DEFAULT public.evil()",
               "ALTER TABLE thalweg.stream ALTER id DROP DEFAULT"},
           Way{"CREATE TRIGGER t BEFORE INSERT ON thalweg.stream FOR EACH ROW EXECUTE FUNCTION public.evil_trigger()",
               "DROP TRIGGER t ON thalweg.stream"},
           Way{"CREATE RULE r AS ON UPDATE TO thalweg.stream DO ALSO SELECT public.evil()",
               "DROP RULE r ON thalweg.stream"},
           Way{"CREATE POLICY p ON thalweg.stream USING (public.evil() = 1)", "DROP POLICY p ON thalweg.stream"},
           Way{"ALTER TABLE thalweg.stream ADD CHECK (public.evil() = id)",
               "ALTER TABLE thalweg.stream DROP CONSTRAINT stream_id_check"},
           Way{"ALTER TABLE thalweg.stream ADD more public.evil_domain", "ALTER TABLE thalweg.stream DROP more"},
       }) {
    as("postgres", way.added);
    EXPECT_TRUE(doubts_of("trust_apply").contains("which belongs to trust_mallory")) << way.added;
    as("postgres", way.removed);
    EXPECT_EQ(doubts_of("trust_apply"), "") << way.removed;
  }
  as("postgres",
     "CREATE TABLE public.child () INHERITS (thalweg.stream); ALTER TABLE public.child OWNER TO trust_mallory");
  EXPECT_TRUE(doubts_of("trust_apply").contains("table public.child, which belongs to trust_mallory"));
}

}  // namespace
}  // namespace thalweg::pg
