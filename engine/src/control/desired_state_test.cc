#include "control/desired_state.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
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
  auto again = parse_desired(serialise(*parsed));
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
  EXPECT_EQ(parse_desired(serialise(*parsed))->streams, parsed->streams);
  EXPECT_NE(fingerprint(parsed->streams[0]), fingerprint(before->streams[0]));
  table["inserts_only"] = "yes";
  EXPECT_NE(refusal(document).find("/streams/0/tables/1/inserts_only"), std::string::npos);
}

TEST(DesiredState, HalvesOfAPathKeepTheirPeerThroughTheDisk) {
  const json both = json::parse(contract("desired.paths.example.json"));
  auto sending = parse_desired(both["sending"].dump());
  ASSERT_TRUE(sending) << sending.error().message;
  EXPECT_EQ(sending->streams[0].send_to, (SendTo{.engine = "bravo", .host = "10.0.0.2", .port = 8644}));
  EXPECT_TRUE(sending->streams[0].destination.conninfo.empty());
  EXPECT_EQ(parse_desired(serialise(*sending))->streams, sending->streams);
  auto receiving = parse_desired(both["receiving"].dump());
  ASSERT_TRUE(receiving) << receiving.error().message;
  EXPECT_EQ(receiving->streams[0].receive_from, (ReceiveFrom{.engine = "alpha"}));
  EXPECT_EQ(parse_desired(serialise(*receiving))->streams, receiving->streams);

  auto with = [&](const char* half, const std::string& member, json value) {
    json document = both[half];
    document["streams"][0][member] = std::move(value);
    return refusal(document);
  };
  EXPECT_TRUE(with("receiving", "send_to", both["sending"]["streams"][0]["send_to"]).starts_with("/streams/0/rec"));
  EXPECT_TRUE(with("sending", "destination", {{"name", "d"}, {"conninfo", "c"}}).starts_with("/streams/0/destination"));
  EXPECT_TRUE(with("sending", "send_to", {{"engine", "b"}, {"host", "h"}, {"port", 70000}})
                  .starts_with("/streams/0/send_to/port:"));
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
  EXPECT_EQ(parsed->streams[0].destination.conninfo.role, base::ServerRole::as_given);
  EXPECT_EQ(parse_desired(serialise(*parsed))->streams, parsed->streams);
  EXPECT_NE(fingerprint(parsed->streams[0]), fingerprint(plain->streams[0]));

  source["read_from"] = "primary";
  EXPECT_EQ(parse_desired(document.dump())->streams, plain->streams);
  source["read_from"] = "nearest";
  EXPECT_TRUE(refusal(document).starts_with("/streams/0/source/read_from:")) << refusal(document);
  source.erase("read_from");
  document["streams"][0]["destination"]["read_from"] = "standby";
  EXPECT_TRUE(refusal(document).starts_with("/streams/0/destination/read_from")) << refusal(document);
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
  EXPECT_EQ(parse_desired(serialise(*parsed))->streams, parsed->streams);

  const StreamDefinition branch = branch_of(stream, stream.destinations[1]);
  EXPECT_EQ(branch.destination.conninfo, stream.destinations[1].conninfo);
  EXPECT_EQ(branch.status, DesiredStatus::disabled);
  EXPECT_FALSE(branch.fans_out());

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
  EXPECT_TRUE(
      with("/streams/0/destination", {{"name", "d"}, {"conninfo", "c"}}).starts_with("/streams/0/destination:"));
  EXPECT_TRUE(
      with("/streams/0/send_to", good["streams"][0]["destinations"][2]["send_to"]).starts_with("/streams/0/send_to:"));
  json all_dropped = good;
  for (json& one : all_dropped["streams"][0]["destinations"]) one["status"] = "DROPPED";
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
  EXPECT_TRUE(with("/streams/0/destination/conninfo", "").starts_with("/streams/0/destination/conninfo:"));
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

TEST(Parameters, AreThoseOfTheContract) {
  json listed = json::parse(contract("parameters.json"))["parameters"];
  const StreamParameters defaults;
  ASSERT_EQ(listed.size(), parameter_specs().size());
  for (const json& one : listed) {
    const ParameterSpec* spec = find_parameter(one["name"].get<std::string>());
    ASSERT_NE(spec, nullptr) << one["name"];
    EXPECT_EQ(spec->live, one["live"].get<bool>()) << one["name"];
    std::visit([&](auto field) { EXPECT_EQ(json(defaults.*field), one["default"]) << one["name"]; }, spec->field);
    if (one["type"] == "integer") {
      EXPECT_EQ(spec->minimum, one["minimum"].get<int64_t>()) << one["name"];
      EXPECT_EQ(spec->maximum, one["maximum"].get<int64_t>()) << one["name"];
    }
    if (one["type"] == "enum") {
      EXPECT_EQ(json(std::vector<std::string>(spec->values.begin(), spec->values.end())), one["values"]);
    }
  }
}

TEST(Parameters, OnlyWhatIsNotLiveNeedsARestart) {
  StreamParameters from;
  StreamParameters live = from;
  live.group_size = 1;
  EXPECT_FALSE(needs_restart(from, live));
  StreamParameters fixed = from;
  fixed.queue_size = 64;
  EXPECT_TRUE(needs_restart(from, fixed));
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
  ASSERT_TRUE(stream.source.conninfo.within && stream.destination.conninfo.within);
  EXPECT_TRUE(stream.source.conninfo.within->allow_local());
  const auto again = parse_desired(serialise(*desired));
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
