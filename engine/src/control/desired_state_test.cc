#include "control/desired_state.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "control/old_form.h"
#include "support/engine_directory.h"

namespace thalweg::control {
namespace {

using nlohmann::json;

std::string contract(const std::string& name) {
  return *base::read_file(test::engine_directory() + "/contract/" + name);
}

std::string refusal(const json& document) {
  auto parsed = parse_desired(document.dump());
  if (parsed) return "accepted";
  EXPECT_EQ(parsed.error().code, base::ErrorCode::invalid_request);
  return parsed.error().message;
}

TEST(DesiredState, AcceptsTheContractsExampleAndKeepsItThroughTheDisk) {
  auto parsed = parse_desired(contract("desired.example.json"));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->revision, 42u);
  ASSERT_EQ(parsed->streams.size(), 1u);
  EXPECT_EQ(parsed->streams[0].tables[1].table, "pgbench_history");
  auto again = parse_stored_desired(serialise(*parsed));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->streams, parsed->streams);
  EXPECT_EQ(fingerprint(again->streams[0]), fingerprint(parsed->streams[0]));
}

TEST(DesiredState, UpdatesAreGivenUpOfTheTablesThatSaySo) {
  json document = json::parse(contract("desired.example.json"));
  json& table = document["streams"][0]["tables"][1];
  const auto before = parse_desired(document.dump());
  ASSERT_TRUE(before) << before.error().message;
  EXPECT_TRUE(before->streams[0].inserts_only.empty());
  table["inserts_only"] = true;
  const auto parsed = parse_desired(document.dump());
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->streams[0].inserts_only, (std::set<TableRef>{{"public", "pgbench_history"}}));
  EXPECT_EQ(parse_stored_desired(serialise(*parsed))->streams, parsed->streams);
  EXPECT_NE(fingerprint(parsed->streams[0]), fingerprint(before->streams[0]));
  table["inserts_only"] = "yes";
  EXPECT_NE(refusal(document).find("/streams/0/tables/1/inserts_only"), std::string::npos);
}

TEST(DesiredState, StreamsAreCapturedLogicallyUnlessTheySayOtherwise) {
  json document = json::parse(contract("desired.example.json"));
  json& stream = document["streams"][0];
  EXPECT_EQ(parse_desired(document.dump())->streams[0].capture_kind, CaptureKind::logical);
  stream["capture_kind"] = "wal";
  stream["staging_limit_mb"] = 64;
  stream["wal_keep_mb"] = 0;
  stream["capture_memory_mb"] = 1;
  const auto parsed = parse_desired(document.dump());
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->streams[0].capture_kind, CaptureKind::wal);
  EXPECT_EQ(parsed->streams[0].staging_limit_mb, 64);
  EXPECT_EQ(parsed->streams[0].wal_keep_mb, 0);
  EXPECT_EQ(parsed->streams[0].capture_memory_mb, 1);
  EXPECT_EQ(parse_stored_desired(serialise(*parsed))->streams, parsed->streams);
  stream["wal_archive"] = "main";
  EXPECT_EQ(control::parse_desired(document.dump())->streams[0].wal_archive, "main");
  stream["staging_limit_mb"] = 63;
  EXPECT_NE(refusal(document).find("/streams/0/staging_limit_mb"), std::string::npos);
  stream["staging_limit_mb"] = 64;
  stream["source"]["read_from"] = "standby";
  EXPECT_NE(refusal(document).find("/streams/0/capture_kind"), std::string::npos);
  stream["source"].erase("read_from");
  stream["capture_kind"] = "trigger";
  EXPECT_NE(refusal(document).find("/streams/0/capture_kind"), std::string::npos);
}

TEST(DesiredState, KeepsTheRulesOfTablesThroughTheDisk) {
  const auto parsed = parse_desired(contract("desired.rules.example.json"));
  ASSERT_TRUE(parsed) << parsed.error().message;
  const StreamDefinition& stream = parsed->streams[0];
  ASSERT_EQ(stream.rules.size(), 3u);
  const RulesDefinition& orders = stream.rules.at({"public", "orders"});
  EXPECT_FALSE(orders.negative);
  EXPECT_EQ(orders.positive,
            (std::vector{RuleDefinition{
                .name = "north_only", .operations = {}, .condition = "region = 'north'", .subset = true}}));
  const RulesDefinition& events = stream.rules.at({"public", "events"});
  EXPECT_FALSE(events.positive);
  ASSERT_EQ(events.negative->size(), 2u);
  EXPECT_EQ(events.negative->front().operations, (std::set{RuledOperation::remove, RuledOperation::truncate}));
  EXPECT_TRUE(events.negative->front().condition.empty());
  EXPECT_EQ(events.negative->front().scope, RuleScope::table);
  EXPECT_EQ(events.negative->back().scope, RuleScope::schema);
  EXPECT_TRUE(stream.rules.at({"public", "audit"}).positive->empty());
  EXPECT_FALSE(stream.rules.contains({"public", "customers"}));
  const auto again = parse_stored_desired(serialise(*parsed));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->streams, parsed->streams);
  EXPECT_EQ(fingerprint(again->streams[0]), fingerprint(stream));

  json document = json::parse(contract("desired.rules.example.json"));
  document["streams"][0]["tables"][0]["rules"]["positive"][0]["condition"] = "region = 'south'";
  EXPECT_NE(fingerprint(parse_desired(document.dump())->streams[0]), fingerprint(stream));
  document["streams"][0]["tables"][0]["rules"] = json::object();
  EXPECT_EQ(parse_desired(document.dump())->streams[0].rules.size(), 2u);
}

TEST(DesiredState, KeepsTransformationsThroughTheDisk) {
  json document = json::parse(contract("desired.transformations.example.json"));
  const auto parsed = parse_desired(document.dump());
  ASSERT_TRUE(parsed) << parsed.error().message;
  const StreamDefinition& stream = parsed->streams[0];
  ASSERT_EQ(stream.transformations.size(), 2u);
  const Transformations& people = stream.transformations.at({"public", "people"});
  ASSERT_EQ(people.size(), 8u);
  EXPECT_EQ(people[0], (TransformationDefinition{
                           .type = TransformationType::drop_column, .column = "notes", .to = {}, .value = {}}));
  EXPECT_EQ(people[1].to, "email");
  EXPECT_EQ(people[2].with, MaskWith::partial);
  EXPECT_EQ(people[2].keep_last, 4u);
  EXPECT_EQ(people[3].value, "1970-01-01");
  EXPECT_EQ(people[4].with, MaskWith::null);
  EXPECT_EQ(people[5].with, MaskWith::hash);
  EXPECT_EQ(people[6].columns, (std::vector<std::string>{"id", "email", "born", "phone", "passport"}));
  EXPECT_EQ(people[7].data_type, "text");
  EXPECT_EQ(people[7].value, "north");
  EXPECT_EQ(stream.mask_key, "made by the control plane, and secret");
  EXPECT_EQ(delivery_to(stream, stream.destinations[0]).stream.mask_key, stream.mask_key);
  const auto again = parse_stored_desired(serialise(*parsed));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->streams, parsed->streams);

  document["streams"][0]["tables"][0]["transformations"][3]["value"] = "1970-01-02";
  EXPECT_NE(fingerprint(parse_desired(document.dump())->streams[0]), fingerprint(stream));
  document["streams"][0]["mask_key"] = "another one of at least 32 characters";
  EXPECT_NE(parse_desired(document.dump())->streams[0], stream);
  for (const json& bad : {json("31 characters are not enough ok"), json(7), json(nullptr)}) {
    document["streams"][0]["mask_key"] = bad;
    const std::string message = refusal(document);
    EXPECT_TRUE(message.starts_with("/streams/0/mask_key")) << message;
    EXPECT_EQ(message.find("enough"), std::string::npos) << "it is secret";
  }
  document["streams"][0].erase("mask_key");
  document["streams"][0]["tables"][0]["transformations"][5]["with"] = "digits";
  EXPECT_TRUE(refusal(document).starts_with("/streams/0/mask_key"));
  document["streams"][0]["tables"][0]["transformations"] = json::array();
  EXPECT_EQ(parse_desired(document.dump())->streams[0].transformations.size(), 1u) << "those of visits";
}

TEST(DesiredState, RefusesTransformationsThatNobodyCanCarryOut) {
  const auto with = [](const json& transformation) {
    json document = json::parse(contract("desired.transformations.example.json"));
    document["streams"][0]["tables"][2]["transformations"] = json::array({transformation});
    const std::string message = refusal(document);
    const std::string_view at = "/streams/0/tables/2/transformations/0";
    EXPECT_TRUE(message.starts_with(at)) << message;
    return message.substr(std::min(at.size(), message.size()), message.find(':') - at.size());
  };
  EXPECT_EQ(with("drop"), "");
  EXPECT_EQ(with({{"type", "crypt_column"}, {"column", "a"}}), "/type");
  EXPECT_EQ(with({{"type", "add_column"}, {"column", "a"}, {"data_type", "text"}}), "/value");
  EXPECT_EQ(with({{"type", "add_column"}, {"column", "a"}, {"value", "x"}}), "/data_type");
  EXPECT_EQ(with({{"type", "keep_columns"}, {"columns", json::array()}}), "/columns");
  EXPECT_EQ(with({{"type", "keep_columns"}, {"columns", {"a", 7}}}), "/columns");
  EXPECT_EQ(with({{"type", "keep_columns"}, {"columns", {"a"}}, {"column", "a"}}), "/column");
  EXPECT_EQ(with({{"type", "drop_column"}}), "/column");
  EXPECT_EQ(with({{"type", "drop_column"}, {"column", "a"}, {"to", "b"}}), "/to");
  EXPECT_EQ(with({{"type", "rename_column"}, {"column", "a"}}), "/to");
  EXPECT_EQ(with({{"type", "mask_column"}, {"column", "a"}, {"with", "rot13"}}), "/with");
  EXPECT_EQ(with({{"type", "mask_column"}, {"column", "a"}, {"with", "constant"}}), "/value");
  EXPECT_EQ(with({{"type", "mask_column"}, {"column", "a"}, {"with", "null"}, {"value", "x"}}), "/value");
  EXPECT_EQ(with({{"type", "mask_column"}, {"column", "a"}, {"with", "partial"}, {"keep_last", 1001}}), "/keep_last");

  // The copy would judge the source's rows, and changes are judged as they are sent.
  json document = json::parse(contract("desired.transformations.example.json"));
  document["streams"][0]["destinations"][0]["rules"] = {
      {{"schema", "public"}, {"table", "people"}, {"positive", json::array()}}};
  EXPECT_TRUE(refusal(document).starts_with("/streams/0/destinations/0/rules"));
}

TEST(DesiredState, KeepsTheRulesOfADestinationThroughTheDisk) {
  json document = json::parse(contract("desired.rules.example.json"));
  const auto parsed = parse_desired(document.dump());
  ASSERT_TRUE(parsed) << parsed.error().message;
  const StreamDefinition& stream = parsed->streams[0];
  const DestinationDefinition& destination = stream.destinations[0];
  ASSERT_EQ(destination.rules.size(), 1u);
  EXPECT_EQ(destination.rules.at({"public", "customers"}).negative->front().name, "no_guests");
  EXPECT_EQ(destination.rules.at({"public", "customers"}).negative->front().on_error, OnRuleError::as_false);
  EXPECT_EQ(delivery_to(stream, destination).destination.rules, destination.rules);
  const auto again = parse_stored_desired(serialise(*parsed));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->streams, parsed->streams);

  json& rules = document["streams"][0]["destinations"][0]["rules"];
  rules[0]["negative"][0]["condition"] = "true";
  EXPECT_NE(fingerprint(parse_desired(document.dump())->streams[0]), fingerprint(stream));
}

TEST(DesiredState, RefusesRulesOfADestinationThatNobodyCanKeep) {
  json document = json::parse(contract("desired.rules.example.json"));
  json& destination = document["streams"][0]["destinations"][0];
  const json example = destination["rules"];
  const std::string at = "/streams/0/destinations/0/rules";
  destination["rules"] = "all";
  EXPECT_TRUE(refusal(document).starts_with(at + ":"));
  destination["rules"] = {{{"schema", "public"}, {"table", "customers"}}};
  EXPECT_TRUE(refusal(document).starts_with(at + "/0:"));
  destination["rules"] = {example[0], example[0]};
  EXPECT_TRUE(refusal(document).starts_with(at + "/1:"));
  destination["rules"] = example;
  destination["rules"][0]["negative"][0].erase("name");
  EXPECT_TRUE(refusal(document).starts_with(at + "/0/negative/0/name"));
  destination["rules"] = example;
  destination["rules"][0]["table"] = "elsewhere";
  EXPECT_TRUE(refusal(document).starts_with(at + ":"));
}

TEST(DesiredState, RefusesRulesThatNobodyCanKeep) {
  const auto with = [](const json& rules) {
    json document = json::parse(contract("desired.rules.example.json"));
    document["streams"][0]["tables"][0]["rules"] = rules;
    const std::string message = refusal(document);
    const std::string_view at = "/streams/0/tables/0/rules";
    EXPECT_TRUE(message.starts_with(at)) << message;
    const size_t end = message.find(':');
    return end == std::string::npos ? message : message.substr(at.size(), end - at.size());
  };
  const auto positive = [&](const json& rule) { return with({{"positive", {rule}}}); };
  EXPECT_EQ(with("all"), "");
  EXPECT_EQ(with({{"neutral", json::array()}}), "/neutral");
  EXPECT_EQ(with({{"positive", "all"}}), "/positive");
  EXPECT_EQ(positive({{"condition", "true"}}), "/positive/0/name");
  EXPECT_EQ(positive({{"name", ""}}), "/positive/0/name");
  EXPECT_EQ(positive({{"name", std::string(64, 'n')}}), "/positive/0/name");
  EXPECT_EQ(positive({{"name", "r"}, {"condition", ""}}), "/positive/0/condition");
  EXPECT_EQ(positive({{"name", "r"}, {"condition", std::string(65537, ' ')}}), "/positive/0/condition");
  EXPECT_EQ(positive({{"name", "r"}, {"operations", json::array()}}), "/positive/0/operations");
  EXPECT_EQ(positive({{"name", "r"}, {"operations", {"INSERT", "MERGE"}}}), "/positive/0/operations/1");
  EXPECT_EQ(positive({{"name", "r"}, {"operations", {"INSERT", "INSERT"}}}), "/positive/0/operations/1");
  EXPECT_EQ(positive({{"name", "r"}, {"operations", {7}}}), "/positive/0/operations/0");
  EXPECT_EQ(positive({{"name", "r"}, {"when", "true"}}), "/positive/0/when");
  EXPECT_EQ(positive({{"name", "r"}, {"operations", {"INSERT"}}, {"subset", true}}), "/positive/0/subset");
  EXPECT_EQ(with({{"negative", {{{"name", "r"}, {"subset", true}}}}}), "/negative/0/subset");
  EXPECT_EQ(positive({{"name", "r"}, {"scope", "database"}}), "/positive/0/scope");
  EXPECT_EQ(positive({{"name", "r"}, {"scope", 1}}), "/positive/0/scope");
  EXPECT_EQ(positive({{"name", "r"}, {"on_error", "skip"}}), "/positive/0/on_error");
  EXPECT_EQ(positive({{"name", "r"}, {"on_error", true}}), "/positive/0/on_error");
  EXPECT_EQ(with({{"positive", {{{"name", "a"}, {"subset", true}}, {{"name", "b"}}}}}), "/positive/1/subset");
  EXPECT_EQ(with({{"positive", {{{"name", "r"}}}}, {"negative", {{{"name", "r"}}}}}), "/negative/0/name");
}

TEST(DesiredState, KnowsWhichCodeOfATableIsAccepted) {
  json document = json::parse(contract("desired.example.json"));
  json& table = document["streams"][0]["tables"][0];
  const auto before = parse_desired(document.dump());
  ASSERT_TRUE(before) << before.error().message;
  EXPECT_FALSE(before->streams[0].accepted_code.contains({"public", "pgbench_accounts"}));
  EXPECT_TRUE(before->streams[0].accepted_code.contains({"public", "pgbench_history"}));
  const std::string digest(64, 'a');
  table["accepted_code"] = {digest, std::string(64, '0')};
  const auto parsed = parse_desired(document.dump());
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->streams[0].accepted_code.at({"public", "pgbench_accounts"}),
            (std::set<std::string>{std::string(64, '0'), digest}));
  EXPECT_EQ(parse_stored_desired(serialise(*parsed))->streams, parsed->streams);
  EXPECT_NE(fingerprint(parsed->streams[0]), fingerprint(before->streams[0]));
  for (const json& wrong :
       {json("app.f(integer)"), json(digest), json({"app.f(integer)"}), json({std::string(64, 'A')}),
        json({digest + "a"}), json({1}), json(std::vector<std::string>(1001, digest))}) {
    table["accepted_code"] = wrong;
    EXPECT_NE(refusal(document).find("/streams/0/tables/0/accepted_code"), std::string::npos) << wrong;
  }
}

TEST(DesiredState, EnginesOfAPathKeepTheirPeerThroughTheDisk) {
  const json both = json::parse(contract("desired.paths.example.json"));
  auto sending = parse_desired(both["sending"].dump());
  ASSERT_TRUE(sending) << sending.error().message;
  const DestinationDefinition& there = sending->streams[0].destinations.at(0);
  EXPECT_EQ(there.send_to, (SendTo{.engine = "bravo", .host = "10.0.0.2", .port = 8644}));
  EXPECT_TRUE(there.conninfo.empty());
  EXPECT_FALSE(there.backlog);
  EXPECT_EQ(parse_stored_desired(serialise(*sending))->streams, sending->streams);
  auto receiving = parse_desired(both["receiving"].dump());
  ASSERT_TRUE(receiving) << receiving.error().message;
  EXPECT_EQ(receiving->streams[0].receive_from, (ReceiveFrom{.engine = "alpha"}));
  EXPECT_EQ(receiving->streams[0].destinations.at(0).id, there.id);
  EXPECT_EQ(parse_stored_desired(serialise(*receiving))->streams, receiving->streams);

  auto with = [&](const char* engine, const std::string& pointer, json value) {
    json document = both[engine];
    document[json::json_pointer("/streams/0/" + pointer)] = std::move(value);
    return refusal(document);
  };
  const std::string at = "/streams/0/destinations";
  EXPECT_TRUE(with("receiving", "destinations/0", both["sending"]["streams"][0]["destinations"][0])
                  .starts_with(at + "/0/send_to:"));
  EXPECT_TRUE(with("receiving", "destinations/0/backlog", true).starts_with(at + "/0/backlog:"));
  json two = both["receiving"]["streams"][0]["destinations"];
  two.push_back(two[0]);
  two[1]["id"] = "reports";
  two[1]["status"] = "DROPPED";
  EXPECT_TRUE(with("receiving", "destinations", two).starts_with(at + ":"));
  EXPECT_TRUE(with("sending", "destinations/0/send_to/port", 70000).starts_with(at + "/0/send_to/port:"));
}

// Documents that an engine of version 0.1.0 has stored.
TEST(DesiredState, TheFormWithoutAListIsMigratedFromTheDiskAndRefusedFromOthers) {
  const std::string stored = *base::read_file(test::engine_directory() + "/test/golden/desired/version-0.1.0.json");
  const auto migrated = parse_stored_desired(stored);
  ASSERT_TRUE(migrated) << migrated.error().message;
  ASSERT_EQ(migrated->streams.size(), 5U);
  const StreamDefinition& combined = migrated->streams[0];
  ASSERT_EQ(combined.destinations.size(), 1U);
  EXPECT_EQ(combined.destinations[0].id, kOldFormId);
  EXPECT_EQ(combined.destinations[0].name, "warehouse");
  EXPECT_EQ(combined.destinations[0].conninfo.text, "host=127.0.0.1 port=55432 dbname=demo user=thalweg");
  EXPECT_EQ(combined.destinations[0].status, DesiredStatus::enabled);
  EXPECT_FALSE(combined.destinations[0].backlog);
  EXPECT_EQ(combined.destinations[0].parameters.parallelism, 8);
  const StreamDefinition& sending = migrated->streams[1];
  EXPECT_EQ(sending.destinations.at(0).send_to, (SendTo{.engine = "bravo", .host = "10.0.0.2", .port = 8644}));
  EXPECT_EQ(sending.destinations[0].name, "bravo");
  EXPECT_FALSE(sending.destinations[0].backlog);
  for (const size_t receiving : {2U, 3U}) {
    EXPECT_EQ(migrated->streams[receiving].receive_from, (ReceiveFrom{.engine = "alpha"}));
    EXPECT_EQ(migrated->streams[receiving].destinations.at(0).id, kOldFormId);
  }
  const StreamDefinition& fan_out = migrated->streams[4];
  ASSERT_EQ(fan_out.destinations.size(), 2U);
  EXPECT_EQ(fan_out.destinations[0].id, "warehouse");
  EXPECT_TRUE(fan_out.destinations[0].backlog && fan_out.destinations[1].backlog);
  EXPECT_EQ(parse_stored_desired(serialise(*migrated))->streams, migrated->streams);

  const json document = json::parse(stored);
  const auto only = [&](size_t stream) {
    json single = document;
    single["streams"] = json::array({document["streams"][stream]});
    return refusal(single);
  };
  EXPECT_TRUE(only(0).starts_with("/streams/0/destination:")) << only(0);
  EXPECT_NE(only(0).find("upgrade the control plane"), std::string::npos);
  EXPECT_TRUE(only(1).starts_with("/streams/0/send_to:")) << only(1);
  EXPECT_TRUE(only(3).starts_with("/streams/0/destination:")) << only(3);
  EXPECT_TRUE(only(4).starts_with("/streams/0/destinations/0/backlog:")) << only(4);
  json shared = json::parse(contract("desired.paths.example.json"))["receiving"];
  shared["streams"][0]["receive_from"]["shared_capture"] = true;
  EXPECT_TRUE(refusal(shared).starts_with("/streams/0/receive_from/shared_capture:")) << refusal(shared);
}

TEST(DesiredState, AMigratedDestinationTakesTheIdOfItsAddressOrOfTheOnlyOne) {
  const auto next = parse_desired(contract("desired.fanout.example.json"))->streams[0];
  StreamDefinition now = next;
  EXPECT_EQ(adopt_id(now, next), std::nullopt);
  now.destinations = {next.destinations[1]};
  now.destinations[0].id = kOldFormId;
  EXPECT_EQ(adopt_id(now, next), "reports");
  now.destinations[0] = next.destinations[2];
  now.destinations[0].id = kOldFormId;
  EXPECT_EQ(adopt_id(now, next), "bravo");
  now.destinations[0].send_to->port = 1;
  EXPECT_EQ(adopt_id(now, next), std::nullopt);
  StreamDefinition only = next;
  only.destinations.resize(1);
  EXPECT_EQ(adopt_id(now, only), "warehouse");
  EXPECT_EQ(adopt_id(now, now), std::nullopt);
}

TEST(DesiredState, ASourceThatIsReadAtAStandbyStaysSoThroughTheDisk) {
  json document = json::parse(contract("desired.example.json"));
  const auto plain = parse_desired(document.dump());
  json& source = document["streams"][0]["source"];
  source["read_from"] = "standby";
  const auto parsed = parse_desired(document.dump());
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_TRUE(parsed->streams[0].source.reads_standby);
  EXPECT_EQ(parsed->streams[0].source.conninfo.role, base::ServerRole::standby_first);
  EXPECT_EQ(parsed->streams[0].destinations.at(0).conninfo.role, base::ServerRole::as_given);
  EXPECT_EQ(parse_stored_desired(serialise(*parsed))->streams, parsed->streams);
  EXPECT_NE(fingerprint(parsed->streams[0]), fingerprint(plain->streams[0]));

  source["read_from"] = "primary";
  EXPECT_EQ(parse_desired(document.dump())->streams, plain->streams);
  source["read_from"] = "nearest";
  EXPECT_TRUE(refusal(document).starts_with("/streams/0/source/read_from:")) << refusal(document);
  source.erase("read_from");
  document["streams"][0]["destinations"][0]["read_from"] = "standby";
  EXPECT_TRUE(refusal(document).starts_with("/streams/0/destinations/0/read_from")) << refusal(document);
}

TEST(DesiredState, SeveralDestinationsKeepTheirParametersThroughTheDisk) {
  const json good = json::parse(contract("desired.fanout.example.json"));
  auto parsed = parse_desired(good.dump());
  ASSERT_TRUE(parsed) << parsed.error().message;
  const StreamDefinition& stream = parsed->streams[0];
  ASSERT_EQ(stream.destinations.size(), 3u);
  EXPECT_EQ(stream.destinations[0].parameters.parallelism, 8);
  EXPECT_EQ(stream.destinations[1].parameters.parallelism, 4);
  EXPECT_EQ(stream.destinations[1].parameters.queue_spill_limit_mb, 51'200);
  EXPECT_EQ(stream.destinations[1].status, DesiredStatus::disabled);
  EXPECT_EQ(stream.destinations[2].send_to->engine, "bravo");
  EXPECT_EQ(parse_stored_desired(serialise(*parsed))->streams, parsed->streams);

  const Delivery delivery = delivery_to(stream, stream.destinations[1]);
  EXPECT_EQ(delivery.destination.conninfo, stream.destinations[1].conninfo);
  EXPECT_EQ(delivery.destination.status, DesiredStatus::disabled);
  EXPECT_EQ(delivery.destination.parameters.queue_spill_limit_mb, 51'200);

  auto with = [&](const std::string& pointer, json value) {
    json document = good;
    document[json::json_pointer(pointer)] = std::move(value);
    return refusal(document);
  };
  const std::string at = "/streams/0/destinations";
  EXPECT_TRUE(with(at, json::array()).starts_with(at + ":"));
  EXPECT_TRUE(with(at + "/0/id", "Upper").starts_with(at + "/0/id:"));
  EXPECT_TRUE(with(at + "/0/id", "reports").starts_with(at + "/1/id:"));
  EXPECT_TRUE(with(at + "/0/status", "GONE").starts_with(at + "/0/status:"));
  EXPECT_TRUE(with(at + "/0/colour", 1).starts_with(at + "/0/colour:"));
  EXPECT_TRUE(with(at + "/2/conninfo", "c").starts_with(at + "/2/conninfo:"));
  EXPECT_TRUE(with(at + "/0/parameters/queue_size", 64).starts_with(at + "/0/parameters/queue_size:"));
  EXPECT_TRUE(with(at + "/0/id", "default").starts_with(at + "/0/id:"));
  EXPECT_TRUE(with(at + "/1/backlog", false).starts_with(at + "/1/backlog:"));
  json one_kept = good;
  for (const int other : {0, 2}) one_kept["streams"][0]["destinations"][other]["status"] = "DROPPED";
  one_kept["streams"][0]["destinations"][1]["backlog"] = false;
  EXPECT_EQ(refusal(one_kept), "accepted");
  json untold = good;
  untold["streams"][0]["destinations"][2].erase("backlog");
  EXPECT_TRUE(refusal(untold).starts_with(at + "/2/backlog:"));
  json all_dropped = good;
  for (json& destination : all_dropped["streams"][0]["destinations"]) destination["status"] = "DROPPED";
  EXPECT_TRUE(refusal(all_dropped).starts_with(at + ":"));
  all_dropped["streams"][0]["status"] = "DROPPED";
  EXPECT_EQ(refusal(all_dropped), "accepted");
}

TEST(DesiredState, EveryFieldThatIsWrongIsNamedByItsPointer) {
  const json good = json::parse(contract("desired.example.json"));
  auto with = [&](const std::string& pointer, json value) {
    json document = good;
    document[json::json_pointer(pointer)] = std::move(value);
    return refusal(document);
  };
  auto without = [&](const std::string& parent, const std::string& member) {
    json document = good;
    document[json::json_pointer(parent)].erase(member);
    return refusal(document);
  };
  EXPECT_TRUE(with("/format", 2).starts_with("/format:"));
  EXPECT_TRUE(with("/revision", -1).starts_with("/revision:"));
  EXPECT_TRUE(with("/revision", 1.5).starts_with("/revision:"));
  EXPECT_TRUE(with("/streams", json::object()).starts_with("/streams:"));
  EXPECT_TRUE(with("/colour", "red").starts_with("/colour:"));
  EXPECT_TRUE(with("/streams/0/colour", "red").starts_with("/streams/0/colour:"));
  EXPECT_TRUE(with("/streams/0/id", "short").starts_with("/streams/0/id:"));
  EXPECT_TRUE(with("/streams/0/id", "UPPERCASE1").starts_with("/streams/0/id:"));
  EXPECT_TRUE(with("/streams/0/status", "enabled").starts_with("/streams/0/status:"));
  EXPECT_TRUE(with("/streams/0/force", 1).starts_with("/streams/0/force:"));
  EXPECT_TRUE(with("/streams/0/source/host", "x").starts_with("/streams/0/source/host:"));
  EXPECT_TRUE(with("/streams/0/destinations/0/conninfo", "").starts_with("/streams/0/destinations/0/conninfo:"));
  EXPECT_TRUE(with("/streams/0/tables", json::array()).starts_with("/streams/0/tables:"));
  EXPECT_TRUE(with("/streams/0/tables/1/table", std::string("a\0b", 3)).starts_with("/streams/0/tables/1/table:"));
  EXPECT_TRUE(with("/streams/0/tables/1/table", "pgbench_accounts").starts_with("/streams/0/tables/1:"));
  EXPECT_TRUE(with("/streams/0/parameters/parallelism", 65).starts_with("/streams/0/parameters/parallelism:"));
  EXPECT_TRUE(with("/streams/0/parameters/parallelism", "4").starts_with("/streams/0/parameters/parallelism:"));
  EXPECT_TRUE(with("/streams/0/parameters/commit_serialization", "some")
                  .starts_with("/streams/0/parameters/commit_serialization:"));
  EXPECT_TRUE(with("/streams/0/parameters/speed", 1).starts_with("/streams/0/parameters/speed:"));
  EXPECT_TRUE(with("/streams/1", good["streams"][0]).starts_with("/streams/1/id:"));
  EXPECT_TRUE(without("/streams/0", "source").starts_with("/streams/0/source:"));
  EXPECT_TRUE(without("", "revision").starts_with("/revision:"));
}

TEST(DesiredState, WhatIsNotJsonIsRefused) {
  for (std::string text :
       {std::string(""), std::string("{"), std::string("[1]"), std::string("{\"format\":1,\"format\":1}"),
        std::string("{} {}"), std::string("{\"a\":\"\xff\"}"), std::string(100'000, '[')}) {
    auto parsed = parse_desired(text);
    ASSERT_FALSE(parsed) << text.substr(0, 40);
    EXPECT_EQ(parsed.error().code, base::ErrorCode::invalid_request);
  }
}

json with_policies(const json& policies) {
  json document = json::parse(contract("desired.example.json"));
  document["streams"][0]["parameters"]["error_policies"] = policies;
  return document;
}

TEST(ErrorPolicies, ComeBackAsTheyWere) {
  const json policies = json::parse(R"([
    {"error": "23505", "schema": "public", "table": "orders", "action": "park"},
    {"error": "40", "action": "retry", "times": 100, "delay_seconds": 3600, "after_retries": "stop"},
    {"error": "apply_conflict", "action": "stop"},
    {"action": "retry", "times": 1, "delay_seconds": 0, "after_retries": "park"}])");
  const auto desired = parse_desired(with_policies(policies).dump());
  ASSERT_TRUE(desired) << desired.error().message;
  const auto& read = desired->streams[0].parameters.error_policies;
  ASSERT_EQ(read.size(), 4U);
  EXPECT_EQ(read[0].table, "orders");
  EXPECT_EQ(read[1].times, 100);
  EXPECT_EQ(read[1].delay, std::chrono::seconds(3600));
  EXPECT_EQ(read[3].after_retries, PolicyAction::park);
  EXPECT_EQ(json(read), policies);
  const auto again = parse_stored_desired(serialise(*desired));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->streams[0].parameters, desired->streams[0].parameters);
}

TEST(ErrorPolicies, WhatCannotBeOneIsRefusedAtItsPlace) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"({"action": "park"})", ""},
      {R"([{"action": "ignore"}])", "/0/action"},
      {R"([{"error": "235"}])", "/0/error"},
      {R"([{"error": "parked_behind", "action": "park"}])", "/0/error"},
      {R"([{"error": "23", "action": "park"}, {"action": "retry"}])", "/1/times"},
      {R"([{"action": "retry", "times": 0, "delay_seconds": 1, "after_retries": "park"}])", "/0/times"},
      {R"([{"action": "retry", "times": 101, "delay_seconds": 1, "after_retries": "park"}])", "/0/times"},
      {R"([{"action": "retry", "times": 18446744073709551615, "delay_seconds": 1, "after_retries": "park"}])",
       "/0/times"},
      {R"([{"action": "retry", "times": 1, "delay_seconds": 3601, "after_retries": "park"}])", "/0/delay_seconds"},
      {R"([{"action": "retry", "times": 1, "delay_seconds": 1, "after_retries": "retry"}])", "/0/after_retries"},
      {R"([{"action": "park", "times": 3}])", "/0/times"},
      {R"([{"action": "park", "table": "orders"}])", "/0/schema"},
      {R"([{"action": "park", "schema": "public"}])", "/0/table"},
  };
  for (const auto& [policies, place] : wrong) {
    const auto desired = parse_desired(with_policies(json::parse(policies)).dump());
    ASSERT_FALSE(desired) << policies;
    EXPECT_NE(desired.error().message.find("/streams/0/parameters/error_policies" + place + ": "), std::string::npos)
        << desired.error().message;
  }
  json many = json::array();
  for (int i = 0; i < 101; ++i) many.push_back({{"action", "park"}});
  EXPECT_FALSE(parse_desired(with_policies(many).dump()));
}

TEST(DesiredState, NamesStreamsThatItsWriterDoesNotKnowOnce) {
  json document = json::parse(contract("desired.example.json"));
  document["kept"] = json::array({"aaaabbbb"});
  document["dropped"] = json::array({"ccccdddd"});
  const auto desired = parse_desired(document.dump());
  ASSERT_TRUE(desired) << desired.error().message;
  EXPECT_EQ(desired->kept, std::vector<std::string>{"aaaabbbb"});
  EXPECT_EQ(desired->dropped, std::vector<std::string>{"ccccdddd"});
  document["dropped"] = json::array({"aaaabbbb"});
  ASSERT_FALSE(parse_desired(document.dump()));
  EXPECT_EQ(parse_desired(document.dump()).error().message, "/dropped: names a stream twice");
  document["dropped"] = json::array({desired->streams.front().id});
  ASSERT_FALSE(parse_desired(document.dump()));
  document["dropped"] = json::array({7});
  ASSERT_FALSE(parse_desired(document.dump()));
}

TEST(DesiredState, DatabaseNetworksGoWithEachConninfo) {
  json document = json::parse(contract("desired.example.json"));
  document["database_networks"] = json::array({"10.0.0.0/8", "local"});
  const auto desired = parse_desired(document.dump());
  ASSERT_TRUE(desired) << desired.error().message;
  const auto& stream = desired->streams.front();
  ASSERT_TRUE(stream.source.conninfo.within && stream.destinations.at(0).conninfo.within);
  EXPECT_TRUE(stream.source.conninfo.within->allow_local());
  const auto again = parse_stored_desired(serialise(*desired));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->streams, desired->streams);
  const auto everywhere = parse_desired(contract("desired.example.json"));
  ASSERT_TRUE(everywhere);
  EXPECT_NE(everywhere->streams, desired->streams);  // streams connect anew
  document["database_networks"] = json::array({"everywhere"});
  ASSERT_FALSE(parse_desired(document.dump()));
  EXPECT_TRUE(parse_desired(document.dump()).error().message.starts_with("/database_networks: "));
}

}  // namespace
}  // namespace thalweg::control
