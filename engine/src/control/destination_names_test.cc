#include "control/destination_names.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "control/desired_state.h"
#include "support/engine_directory.h"

namespace thalweg::control {
namespace {

using nlohmann::json;

// The second table of the example has a name of its own at the destination.
json example() {
  return json::parse(*base::read_file(test::engine_directory() + "/contract/desired.transformations.example.json"));
}

TEST(DestinationNames, AreKeptThroughTheDisk) {
  json document = example();
  const auto parsed = parse_desired(document.dump());
  ASSERT_TRUE(parsed) << parsed.error().message;
  const StreamDefinition& stream = parsed->streams[0];
  const TableRef people{"public", "people"}, countries{"public", "countries"}, country{"geo", "country"};
  EXPECT_EQ(stream.names, (DestinationNames{{countries, country}}));
  EXPECT_EQ(delivery_to(stream, stream.destinations[0]).stream.names, stream.names);
  EXPECT_EQ(name_there(stream.names, countries), country);
  EXPECT_EQ(name_there(stream.names, people), people);
  EXPECT_EQ(name_there(reversed(stream.names), country), countries);
  EXPECT_EQ(name_there(reversed(stream.names), people), people);
  const auto again = parse_stored_desired(serialise(*parsed));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->streams, parsed->streams);

  json& table = document["streams"][0]["tables"][1];
  table["destination"]["table"] = "countries";
  const auto renamed = parse_desired(document.dump());
  ASSERT_TRUE(renamed) << renamed.error().message;
  EXPECT_NE(fingerprint(renamed->streams[0]), fingerprint(stream));
  table["destination"]["schema"] = "public";
  EXPECT_TRUE(parse_desired(document.dump())->streams[0].names.empty()) << "its own name is no other one";
}

TEST(DestinationNames, AreRefusedWhereNoTableCanHaveThem) {
  const auto with = [](const json& destination) {
    json document = example();
    document["streams"][0]["tables"].push_back({{"schema", "public"}, {"table", "more"}});
    document["streams"][0]["tables"].back()["destination"] = destination;
    const auto parsed = parse_desired(document.dump());
    if (parsed) return std::string("accepted");
    EXPECT_EQ(parsed.error().code, base::ErrorCode::invalid_request);
    const std::string_view at = "/streams/0/tables/3/destination";
    EXPECT_TRUE(parsed.error().message.starts_with(at)) << parsed.error().message;
    return parsed.error().message.substr(at.size());
  };
  const auto named = [&](const std::string& schema, const std::string& table) {
    return with({{"schema", schema}, {"table", table}});
  };
  EXPECT_EQ(named("geo", "more"), "accepted");
  EXPECT_EQ(named("geo", "country"), ": is the name of two tables: geo.country");
  EXPECT_EQ(named("public", "people"), ": is the name of another table of the stream: public.people");
  EXPECT_EQ(named("public", "countries"), ": is the name of another table of the stream: public.countries")
      << "although that one is renamed, too";
  for (const char* schema : {"pg_catalog", "pg_toast", "information_schema", "thalweg"}) {
    EXPECT_TRUE(named(schema, "more").starts_with("/schema")) << schema;
  }
  EXPECT_TRUE(named("geo", std::string(64, 't')).starts_with("/table"));
  EXPECT_TRUE(named("", "t").starts_with("/schema"));
  EXPECT_TRUE(with({{"schema", "geo"}}).starts_with("/table"));
  EXPECT_TRUE(with({{"schema", "geo"}, {"table", "t"}, {"kind", "view"}}).starts_with("/kind"));
  EXPECT_NE(with("geo.t"), "accepted");
}

}  // namespace
}  // namespace thalweg::control
