#include "control/http_server.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "control/example_streams.h"
#include "control/http_test_client.h"
#include "control/listen_address.h"
#include "control/metrics.h"

namespace thalweg::control {
namespace {

using nlohmann::json;

// The keys of a document, with arrays seen through their first element.
void keys_of(const json& value, const std::string& at, std::set<std::string>& out) {
  if (value.is_object()) {
    for (const auto& [name, member] : value.items()) {
      out.insert(at + "/" + name);
      keys_of(member, at + "/" + name, out);
    }
  } else if (value.is_array()) {
    for (const json& item : value) keys_of(item, at + "/*", out);
  }
}
std::set<std::string> keys_of(const json& value) {
  std::set<std::string> out;
  keys_of(value, "", out);
  return out;
}

// Keys that only one of the two has, with a '+' before those of the answer.
std::set<std::string> differing(const json& answer, const json& example) {
  const std::set<std::string> answered = keys_of(answer);
  const std::set<std::string> promised = keys_of(example);
  std::set<std::string> out;
  for (const std::string& key : answered) {
    if (!promised.contains(key)) out.insert("+" + key);
  }
  for (const std::string& key : promised) {
    if (!answered.contains(key)) out.insert(key);
  }
  return out;
}

class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto started = HttpServer::start(
        {.host = "127.0.0.1", .port = 0, .token = token_, .tls_certificate = "", .tls_key = ""}, streams_);
    ASSERT_TRUE(started) << started.error().message;
    server_ = std::move(*started);
    client_.emplace(server_->port(), token_);
  }
  void expect_failure(const TestAnswer& answer, int status, const std::string& code) {
    EXPECT_EQ(answer.status, status);
    json body = json::parse(answer.body, nullptr, false);
    ASSERT_TRUE(body.is_object()) << answer.body;
    EXPECT_EQ(keys_of(body),
              (std::set<std::string>{"/error", "/error/code", "/error/class", "/error/title", "/error/message",
                                     "/error/cure", "/error/side", "/error/sqlstate", "/error/table",
                                     "/error/shows_rows", "/error/operation", "/error/row_missing", "/error/retries"}));
    EXPECT_EQ(body["error"]["code"], code);
  }

  const std::string token_ = "0123456789abcdef0123456789abcdef";
  ExampleStreams streams_;
  std::unique_ptr<HttpServer> server_;
  std::optional<TestClient> client_;
};

TEST_F(HttpServerTest, ReadsRevisionsAndRefusesOlderOnes) {
  json example = contract("desired.example.json");
  auto put = client_->put("/v1/desired", example.dump());
  EXPECT_EQ(put.status, 200);
  EXPECT_EQ(json::parse(put.body), (json{{"revision", 42}}));
  EXPECT_EQ(json::parse(client_->get("/v1/desired").body), (json{{"revision", 42}}));
  example["revision"] = 41;
  expect_failure(client_->put("/v1/desired", example.dump()), 409, "desired_state_conflict");
  example["streams"][0]["surprise"] = true;
  auto refused = client_->put("/v1/desired", example.dump());
  expect_failure(refused, 400, "invalid_request");
  EXPECT_NE(refused.body.find("/streams/0/surprise"), std::string::npos);
}

TEST_F(HttpServerTest, AnswersHaveTheKeysOfTheContractsExamples) {
  const auto answer = [&](const char* path) { return json::parse(client_->get(path).body); };
  json status = answer("/v1/status");
  json stats = answer("/v1/stats");
  EXPECT_EQ(differing(status["streams"][2], contract("status.fanout.example.json")), std::set<std::string>{});
  EXPECT_EQ(differing(stats["streams"][1], contract("stats.fanout.example.json")), std::set<std::string>{});
  status["streams"].erase(2);
  stats["streams"].erase(1);
  EXPECT_EQ(differing(status, contract("status.example.json")), std::set<std::string>{});
  EXPECT_EQ(differing(stats, contract("stats.example.json")), std::set<std::string>{});
}

TEST_F(HttpServerTest, ADestinationHasItsOwnActions) {
  const std::string reports = "/v1/streams/f4n0u7aa/destinations/reports";
  EXPECT_EQ(client_->post(reports + "/retry").status, 202);
  EXPECT_EQ(client_->get(reports + "/errors").status, 200);
  EXPECT_EQ(client_->post(reports + "/errors/1/execute").status, 202);
  EXPECT_EQ(client_->drop(reports + "/errors/1").status, 204);
  expect_failure(client_->drop(reports + "/errors/404"), 404, "unknown_error_transaction");
  expect_failure(client_->post("/v1/streams/f4n0u7aa/destinations/nobody/retry"), 404, "unknown_destination");
  for (const char* stream : {"k3j2h1g4", "f4n0u7aa"}) {
    const std::string path = std::string("/v1/streams/") + stream;
    expect_failure(client_->get(path + "/errors"), 404, "not_found");
    expect_failure(client_->post(path + "/tables/copy", "{}"), 404, "not_found");
    EXPECT_EQ(client_->post(path + "/retry").status, 202);
  }
}

TEST_F(HttpServerTest, ShowsTransactions) {
  const json shown = json::parse(client_->get("/v1/streams/k3j2h1g4/transactions").body);
  EXPECT_EQ(keys_of(shown), keys_of(contract("transactions.example.json")));
  EXPECT_GE(shown["transactions"][0]["age_us"], 60'000'000);
  EXPECT_EQ(shown["transactions"][0]["commit_lsn"], nullptr);
  EXPECT_EQ(shown["transactions"][0]["retry"]["error"]["operation"], "INSERT");
  expect_failure(client_->get("/v1/streams/unknown1/transactions"), 404, "unknown_stream");
}

TEST_F(HttpServerTest, PlacesAndShowsMarkers) {
  const std::string path = "/v1/streams/k3j2h1g4/markers";
  EXPECT_EQ(keys_of(json::parse(client_->get(path).body)), keys_of(contract("markers.example.json")));
  EXPECT_EQ(client_->post(path, R"({"id":"m1","label":""})").status, 202);
  expect_failure(client_->post(path, R"({"id":"taken","label":"l"})"), 409, "marker_refused");
  expect_failure(client_->post(path, R"({"id":"","label":"l"})"), 400, "invalid_request");
}

TEST_F(HttpServerTest, SearchesTheLogAsTheContractSays) {
  const std::string path = "/v1/streams/k3j2h1g4/searches";
  EXPECT_EQ(keys_of(json::parse(client_->get(path).body)), keys_of(contract("searches.example.json")));
  expect_failure(client_->get("/v1/streams/orders7f3a/searches"), 409, "search_refused");
  const auto begun = client_->post(path, R"({"from":"0/1A","to":null,"from_time":"2026-11-30T10:00:00.25Z",
      "table":{"schema":"public","table":"orders"},"key":{"id":"5","state":null},"xid":771,"limit":10000})");
  EXPECT_EQ(begun.status, 202) << begun.body;
  json without_changes = contract("search.example.json");
  without_changes.erase("changes");
  without_changes.erase("next_after");
  EXPECT_EQ(keys_of(json::parse(begun.body)), keys_of(without_changes));
  const telemetry::SearchRequest& asked = streams_.asked_search;
  EXPECT_EQ(asked.from, base::Lsn{0x1A});
  EXPECT_EQ(asked.to, std::nullopt);
  EXPECT_EQ(asked.from_time, base::UnixMicros{1'796'032'800'250'000});
  EXPECT_EQ(asked.table, (std::pair<std::string, std::string>("public", "orders")));
  EXPECT_EQ(asked.key, (telemetry::SearchedKey{{"id", "5"}, {"state", std::nullopt}}));
  EXPECT_EQ(asked.xid, base::Xid{771});
  EXPECT_EQ(asked.limit, 10'000U);
  EXPECT_EQ(client_->post(path, "{}").status, 202);
  EXPECT_EQ(streams_.asked_search.limit, 1000U);
  expect_failure(client_->post("/v1/streams/orders7f3a/searches", "{}"), 503, "search_busy");
  const std::vector<std::pair<std::string, std::string>> refused = {
      {R"({"key":{"id":"5"}})", "/key"},
      {R"({"table":{"schema":"public","table":"t"},"key":{}})", "/key"},
      {R"({"table":{"schema":"public","table":"t"},"key":{"id":5}})", "/key/id"},
      {R"({"table":{"schema":"public"}})", "/table/table"},
      {R"({"from":"here"})", "/from"},
      {R"({"to_time":"yesterday"})", "/to_time"},
      {R"({"to_time":"2026-02-30T10:00:00Z"})", "/to_time"},
      {R"({"xid":0})", "/xid"},
      {R"({"limit":10001})", "/limit"},
      {R"({"other":1})", "/other"},
  };
  for (const auto& [body, pointer] : refused) {
    const auto answer = client_->post(path, body);
    expect_failure(answer, 400, "invalid_request");
    EXPECT_NE(answer.body.find(pointer), std::string::npos) << answer.body;
  }
}

TEST_F(HttpServerTest, ShowsWhatASearchHasFound) {
  const std::string path = "/v1/streams/k3j2h1g4/searches/s7x3c9v1";
  const json found = json::parse(client_->get(path).body);
  EXPECT_EQ(keys_of(found), keys_of(contract("search.example.json")));
  EXPECT_EQ(streams_.asked_found.limit, 100U);
  const json& columns = found["changes"][0]["columns"];
  EXPECT_EQ(columns[0]["after"]["text"].get<std::string>().size(), 1024U);
  EXPECT_EQ(columns[0]["after"]["cut"], true);
  EXPECT_EQ(columns[1]["after"], (json{{"text", nullptr}, {"cut", false}, {"masked", true}}));
  EXPECT_EQ(columns[2]["after"], nullptr);
  const json whole = json::parse(client_->get(path + "?after=7&limit=1000&whole=1").body);
  EXPECT_EQ(whole["changes"][0]["number"], 8);
  EXPECT_EQ(whole["changes"][0]["columns"][0]["after"]["text"].get<std::string>().size(), 3000U);
  for (const std::string query : {"?limit=0", "?limit=1001", "?after=-1", "?after=", "?whole=0", "?all=1"}) {
    expect_failure(client_->get(path + query), 400, "invalid_request");
  }
  expect_failure(client_->get("/v1/streams/k3j2h1g4/searches/other"), 404, "unknown_search");
}

TEST_F(HttpServerTest, RehearsesWhatTheContractSays) {
  const std::string sides = R"({"database_networks":["10.0.0.0/8"],"source":{"conninfo":"host=a"},)"
                            R"("destination":{"conninfo":"host=b"},"tables":)";
  const auto answer = client_->post("/v1/rehearsal", sides + R"([{"schema":"public","table":"orders"}]})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(json::parse(answer.body), contract("rehearsal.example.json"));
  expect_failure(client_->post("/v1/rehearsal", sides + "[]}"), 400, "invalid_request");
}

TEST_F(HttpServerTest, ChecksRulesAsTheContractSays) {
  const std::string source = R"({"database_networks":["10.0.0.0/8"],"source":{"conninfo":"host=a"},"tables":)";
  const std::string table = R"([{"schema":"public","table":"orders","rules":)";
  const auto answer = client_->post("/v1/rules/check", source + table + R"({"positive":[{"name":"north_only"}]}}]})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(json::parse(answer.body), contract("rules-check.example.json"));
  expect_failure(client_->post("/v1/rules/check", source + "[]}"), 400, "invalid_request");
  expect_failure(client_->post("/v1/rules/check", source + table + R"({"positive":[{}]}}]})"), 400, "invalid_request");
}

TEST_F(HttpServerTest, TriesRulesAsTheContractSays) {
  const std::string source =
      R"({"database_networks":["10.0.0.0/8"],"source":{"conninfo":"host=a"},"source_name":"orders","tables":)";
  const std::string tables = R"([{"schema":"public","table":"orders","rules":{"positive":[{"name":"north_only"}]}}])";
  const std::string change = R"({"operation":"UPDATE","old":{"id":7,"region":null},"new":{"id":"7","region":"north"}})";
  const auto ask = [&](const std::string& rest) { return client_->post("/v1/rules/test", source + rest + "}"); };
  const std::string recent = R"(,"recent":{"stream":"orders7f3a","limit":20,"wait_ms":5000})";
  const auto answer = ask(tables + R"(,"sample":1,"changes":[)" + change + "]" + recent);
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(differing(json::parse(answer.body), contract("rules-test.example.json")), std::set<std::string>{});
  const std::vector<std::string> refused = {
      tables + R"(,"sample":101)",
      R"([],"sample":1)",
      R"([{"schema":"public","table":"orders"}],"sample":1)",
      tables + R"(,"sample":0,"recent":{"stream":"orders7f3a","limit":0,"wait_ms":5000})",
      tables + R"(,"sample":0,"recent":{"stream":"orders7f3a","limit":101,"wait_ms":5000})",
      tables + R"(,"sample":0,"recent":{"stream":"orders7f3a","limit":1,"wait_ms":5001})",
      tables + R"(,"sample":0,"recent":{"limit":1,"wait_ms":0})",
      tables + R"(,"sample":0,"recent":[])",
      tables + R"(,"sample":0,"changes":[{"operation":"UPSERT"}])",
      tables + R"(,"sample":0,"changes":[{"operation":"INSERT"}])",
      tables + R"(,"sample":0,"changes":[{"operation":"INSERT","new":{"id":[]}}])",
      tables + R"(,"sample":0,"changes":[{"operation":"INSERT","old":{},"new":{}}])"};
  for (const std::string& wrong : refused) {
    expect_failure(ask(wrong), 400, "invalid_request");
  }
}

TEST_F(HttpServerTest, HistoryHasTheKeysOfTheContractsExample) {
  json history;
  do {
    history = json::parse(client_->get("/v1/stats/history").body);
  } while (history["samples"].empty());
  json& streams = history["samples"][0]["streams"];
  streams.erase(1);
  EXPECT_EQ(keys_of(streams[0]["components"]), keys_of(contract("stats.example.json")["streams"][0]["components"]));
  streams[0]["positions"] = contract("stats-history.example.json")["samples"][0]["streams"][0]["positions"];
  EXPECT_EQ(keys_of(history), keys_of(contract("stats-history.example.json")));
  for (const char* wrong : {"?since=", "?since=x", "?since=1&since=2", "?until=1", "?since=99999999999999999999"}) {
    expect_failure(client_->get(std::string("/v1/stats/history") + wrong), 400, "invalid_request");
  }
}

TEST_F(HttpServerTest, NeedsTheToken) {
  TestClient stranger(server_->port());
  EXPECT_EQ(stranger.get("/healthz").status, 200);
  expect_failure(stranger.get("/metrics"), 401, "unauthorized");
  expect_failure(stranger.get("/v1/status"), 401, "unauthorized");
  expect_failure(stranger.put("/v1/desired", "{}"), 401, "unauthorized");
  expect_failure(TestClient(server_->port(), token_ + "0").get("/v1/stats"), 401, "unauthorized");
  expect_failure(TestClient(server_->port(), " ").get("/v1/stats"), 401, "unauthorized");
}

TEST_F(HttpServerTest, ConflictsAreSearchedAndCounted) {
  const std::string path = "/v1/streams/k3j2h1g4/destinations/warehouse/conflicts";
  EXPECT_EQ(json::parse(client_->get(path).body), contract("conflict-counts.example.json"));
  EXPECT_EQ(json::parse(client_->post(path + "/search", "{}").body), contract("conflicts.example.json"));
  EXPECT_EQ(streams_.asked_conflicts.limit, 100U);
  EXPECT_EQ(client_
                ->post(path + "/search", R"({"before": 17, "limit": 1, "kind": "error", "schema": "public",
                                            "table": "a b", "characters": 20})")
                .status,
            200);
  EXPECT_EQ(streams_.asked_conflicts.before, 17);
  EXPECT_EQ(streams_.asked_conflicts.kind, "error");
  EXPECT_EQ(streams_.asked_conflicts.table_name, "a b");
  EXPECT_EQ(streams_.asked_conflicts.characters_max, 20U);
  for (const char* body : {R"({"limit": 0})", R"({"limit": 1001})", R"({"kind": "other"})", R"({"table": "t"})",
                           R"({"characters": 0})", R"({"other": 1})", "[]"}) {
    expect_failure(client_->post(path + "/search", body), 400, "invalid_request");
  }
  expect_failure(client_->get("/v1/streams/unknown1/destinations/warehouse/conflicts"), 404, "unknown_stream");
}

TEST_F(HttpServerTest, StreamActions) {
  EXPECT_EQ(client_->post("/v1/streams/k3j2h1g4/retry").status, 202);
  expect_failure(client_->post("/v1/streams/unknown1/retry"), 404, "unknown_stream");
  json errors = json::parse(client_->get("/v1/streams/k3j2h1g4/destinations/warehouse/errors").body);
  EXPECT_EQ(keys_of(errors), keys_of(contract("errors.example.json")));
  EXPECT_EQ(streams_.asked_part.limit, 100U);
  EXPECT_EQ(
      client_->get("/v1/streams/k3j2h1g4/destinations/warehouse/errors?after=17&limit=20&roots=1&cause=5f3a").status,
      200);
  EXPECT_EQ(streams_.asked_part.after, 17);
  EXPECT_EQ(streams_.asked_part.limit, 20U);
  EXPECT_TRUE(streams_.asked_part.roots_only);
  EXPECT_EQ(streams_.asked_part.cause, "5f3a");
  for (const char* query : {"limit=0", "limit=1001", "after=x", "after", "roots=2", "other=1", "cause=X"}) {
    expect_failure(client_->get(std::string("/v1/streams/k3j2h1g4/destinations/warehouse/errors?") + query), 400,
                   "invalid_request");
  }
  const auto executed = client_->post("/v1/streams/k3j2h1g4/destinations/warehouse/errors/1/execute");
  EXPECT_EQ(executed.status, 202);
  EXPECT_EQ(json::parse(executed.body), json({{"state", "RUNNING"}}));
  EXPECT_EQ(client_->post("/v1/streams/k3j2h1g4/destinations/warehouse/errors/execute").status, 202);
  EXPECT_FALSE(streams_.asked_choice.id);
  EXPECT_EQ(streams_.asked_choice.cause, "");
  const std::string causes = "/v1/streams/k3j2h1g4/destinations/warehouse/errors/causes/";
  EXPECT_EQ(client_->post(causes + "5f3a/execute").status, 202);
  EXPECT_EQ(streams_.asked_choice.cause, "5f3a");
  EXPECT_EQ(streams_.asked_choice.role, "");
  const std::string at = "/v1/streams/k3j2h1g4/destinations/warehouse/errors";
  const std::string as_clerk = R"({"role": "clerk"})";
  for (const char* path : {"/1/execute-as", "/execute-as", "/causes/5f3a/execute-as"}) {
    streams_.asked_choice = {};
    EXPECT_EQ(client_->post(at + path, as_clerk).status, 202) << path;
    EXPECT_EQ(streams_.asked_choice.role, "clerk") << path;
    EXPECT_EQ(client_->post(at + path, "{}").status, 400) << path;
  }
  EXPECT_EQ(client_->post(at + "/1/dry-run-as", as_clerk).status, 200);
  EXPECT_EQ(streams_.asked_role, "clerk");
  EXPECT_EQ(client_->post(at + "/1/dry-run-as", R"({"role": ""})").status, 400);
  for (const char* rest : {"", "5f3a", "X/execute", "/execute", "0123456789abcdef0/execute", "5f3a/dry-run"}) {
    expect_failure(client_->post(causes + rest), 404, "not_found");
  }
  const json tried = json::parse(client_->post("/v1/streams/k3j2h1g4/destinations/warehouse/errors/3/dry-run").body);
  EXPECT_EQ(keys_of(tried), keys_of(contract("dry-run.example.json")));
  EXPECT_EQ(tried["succeeds"], false);
  const json fits = json::parse(client_->post("/v1/streams/k3j2h1g4/destinations/warehouse/errors/1/dry-run").body);
  EXPECT_EQ(fits, json({{"succeeds", true},
                        {"error", nullptr},
                        {"changes", 0},
                        {"edited", 0},
                        {"left_out", 0},
                        {"settled", 0},
                        {"failed_change", nullptr}}));
  expect_failure(client_->post("/v1/streams/k3j2h1g4/destinations/warehouse/errors/404/dry-run"), 404,
                 "unknown_error_transaction");
  EXPECT_EQ(client_->drop("/v1/streams/k3j2h1g4/destinations/warehouse/errors/1").status, 204);
  const json opened = json::parse(client_->get("/v1/streams/k3j2h1g4/destinations/warehouse/errors/3").body);
  EXPECT_EQ(keys_of(opened), keys_of(contract("error-contents.example.json")));
  EXPECT_EQ(opened["error"]["id"], 3);
  EXPECT_EQ(streams_.asked_changes.after, 0U);
  EXPECT_EQ(streams_.asked_changes.limit, 100U);
  EXPECT_EQ(client_->get(at + "/3?after=100&limit=7").status, 200);
  EXPECT_EQ(streams_.asked_changes.after, 100U);
  EXPECT_EQ(streams_.asked_changes.limit, 7U);
  EXPECT_FALSE(streams_.asked_changes.whole);
  EXPECT_EQ(client_->get(at + "/3?after=100&whole=1").status, 200);
  EXPECT_TRUE(streams_.asked_changes.whole);
  for (const char* query : {"whole=2", "limit=0", "limit=101", "after=-1", "after=9223372036854775807", "roots=1"}) {
    expect_failure(client_->get(at + "/3?" + query), 400, "invalid_request");
  }
  const json tree = json::parse(client_->get(at + "/3/dependants?after=22&limit=7").body);
  EXPECT_EQ(keys_of(tree), keys_of(contract("error-dependants.example.json")));
  EXPECT_EQ(tree["dependants"][0]["parent"], 3);
  EXPECT_EQ(streams_.asked_tree.after, 22U);
  EXPECT_EQ(streams_.asked_tree.limit, 7U);
  expect_failure(client_->get(at + "/3/dependants?limit=1001"), 400, "invalid_request");
  expect_failure(client_->get(at + "/404/dependants"), 404, "unknown_error_transaction");
  const json& columns = opened["changes"][0]["columns"];
  EXPECT_EQ(columns[0]["wanted"], json({{"state", "text"}, {"text", "1"}, {"bytes", 1}, {"cut", false}}));
  EXPECT_EQ(columns[0]["wanted_differs"], false);
  EXPECT_EQ(columns[0]["before_differs"], nullptr) << "the change does not tell the old value";
  EXPECT_EQ(columns[1]["wanted"]["cut"], true);
  EXPECT_EQ(columns[1]["wanted_differs"], true) << "behind the cut";
  expect_failure(client_->get("/v1/streams/k3j2h1g4/destinations/warehouse/errors/404"), 404,
                 "unknown_error_transaction");
  expect_failure(client_->drop("/v1/streams/k3j2h1g4/destinations/warehouse/errors/404"), 404,
                 "unknown_error_transaction");
  expect_failure(client_->drop("/v1/streams/k3j2h1g4/destinations/warehouse/errors/99999999999999999999"), 400,
                 "invalid_request");
}

TEST_F(HttpServerTest, AChangeOfAParkedTransactionIsLeftOutOrEdited) {
  const std::string change = "/v1/streams/k3j2h1g4/destinations/warehouse/errors/3/changes/2";
  const json opened = json::parse(client_->get(change).body);
  EXPECT_EQ(keys_of(opened), keys_of(contract("error-contents.example.json")));
  EXPECT_EQ(opened["changes"][0]["number"], 2);
  EXPECT_EQ(opened["changes"][0]["edit"],
            json({{"left_out", false}, {"values", {{"amount", "9.90"}}}, {"reason", "entered wrong"}}));

  EXPECT_EQ(client_->put(change, R"({"reason": "a duplicate", "left_out": true})").status, 204);
  EXPECT_EQ(streams_.edited_change, 2U);
  EXPECT_TRUE(streams_.asked_edit->left_out);
  EXPECT_EQ(streams_.asked_edit->reason, "a duplicate");
  EXPECT_EQ(client_->put(change, R"({"reason": "too long", "values": {"a/b": "x", "c": null}})").status, 204);
  EXPECT_FALSE(streams_.asked_edit->left_out);
  const std::map<std::string, std::optional<std::string>> values{{"a/b", "x"}, {"c", std::nullopt}};
  EXPECT_EQ(streams_.asked_edit->values, values);
  EXPECT_EQ(client_->drop(change).status, 204);
  EXPECT_FALSE(streams_.asked_edit);
  EXPECT_EQ(streams_.asked_version, "");
  EXPECT_EQ(client_->put(change + "?version=5f3a", R"({"reason": "a duplicate", "left_out": true})").status, 204);
  EXPECT_EQ(streams_.asked_version, "5f3a");
  EXPECT_EQ(client_->drop(change + "?version=5f3b").status, 204);
  EXPECT_EQ(streams_.asked_version, "5f3b");
  for (const char* query : {"version=", "version=X", "version=1&version=1", "edits=1"}) {
    expect_failure(client_->drop(change + "?" + query), 400, "invalid_request");
  }

  for (const char* body : {R"({"left_out": true})", R"({"reason": "", "left_out": true})", R"({"reason": "why"})",
                           R"({"reason": "why", "values": {}})", R"({"reason": "why", "values": {"a": 1}})",
                           R"({"reason": "why", "values": {"a": "\u0000"}})",
                           R"({"reason": "why", "left_out": true, "values": {"a": "x"}})", "[]"}) {
    expect_failure(client_->put(change, body), 400, "invalid_request");
  }
  EXPECT_NE(client_->put(change, R"({"reason": "why", "values": {"a/b": 1}})").body.find("/values/a~1b"),
            std::string::npos);
  for (const char* number : {"x", "-1", "", "2/edit"}) {
    expect_failure(client_->put("/v1/streams/k3j2h1g4/destinations/warehouse/errors/3/changes/" + std::string(number),
                                R"({"reason": "why", "left_out": true})"),
                   404, "not_found");
  }
  expect_failure(client_->put("/v1/streams/k3j2h1g4/destinations/warehouse/errors/404/changes/1",
                              R"({"reason": "why", "left_out": true})"),
                 404, "unknown_error_transaction");
}

TEST_F(HttpServerTest, TroublesOfTablesAreResolved) {
  const auto post = [this](const std::string& path, const std::string& body) {
    return client_->post("/v1/streams/" + path, body);
  };
  const std::string table = R"({"schema":"public","table":"t"})";
  EXPECT_EQ(post("k3j2h1g4/destinations/warehouse/tables/copy", table).status, 202);
  EXPECT_EQ(post("f4n0u7aa/destinations/reports/tables/accept", table).status, 202);
  expect_failure(post("k3j2h1g4/destinations/warehouse/tables/copy", R"({"schema":"public","table":"none"})"), 404,
                 "unknown_table");
  expect_failure(post("k3j2h1g4/destinations/warehouse/tables/accept", R"({"schema":"public","table":"stopped"})"), 409,
                 "resolution_refused");
  expect_failure(post("k3j2h1g4/destinations/warehouse/tables/copy", R"({"table":"t"})"), 400, "invalid_request");
}

TEST_F(HttpServerTest, IdentityIsRequestedAndInstalled) {
  auto requested = client_->post("/v1/identity/request", R"({"name":"alpha"})");
  EXPECT_EQ(json::parse(requested.body), (json{{"csr", "request for alpha"}}));
  expect_failure(client_->post("/v1/identity/request", R"({"name":""})"), 400, "invalid_request");
  auto installed = client_->put("/v1/identity", R"({"certificate":"c","ca":"a"})");
  EXPECT_EQ(keys_of(json::parse(installed.body)), (std::set<std::string>{"/name", "/fingerprint", "/not_after"}));
  expect_failure(client_->put("/v1/identity", R"({"certificate":"bad","ca":"a"})"), 409, "identity_refused");
  expect_failure(client_->put("/v1/identity", R"({"certificate":"c","ca":"a","key":"k"})"), 400, "invalid_request");
}

TEST_F(HttpServerTest, WhatItDoesNotKnowIsNotFound) {
  expect_failure(client_->get("/v2/status"), 404, "not_found");
  expect_failure(client_->get("/v1/streams/../../etc"), 404, "not_found");
  expect_failure(client_->drop("/v1/desired"), 404, "not_found");
  expect_failure(client_->get("/" + std::string(4000, 'a')), 404, "not_found");
}

TEST_F(HttpServerTest, BodiesAreBounded) {
  expect_failure(client_->put("/v1/desired", std::string(kDesiredBytesMax + 1, ' ')), 413, "request_too_large");
  // Without an announced length.
  expect_failure(client_->ask("PUT", "/v1/desired", std::string(kDesiredBytesMax + 1, ' '), true), 413,
                 "request_too_large");
  EXPECT_EQ(client_->get("/healthz").status, 200);
}

TEST_F(HttpServerTest, MetricsAreThoseOfTheContract) {
  std::set<std::string> listed;
  json metrics = contract("metrics.json")["metrics"];
  for (const json& metric : metrics) listed.insert(metric["name"].get<std::string>());
  std::set<std::string> specified;
  for (const MetricSpec& spec : metric_specs()) specified.insert(std::string(spec.name));
  EXPECT_EQ(listed, specified);

  // Every one of them is exposed for streams that have everything, each with its labels.
  std::istringstream text(client_->get("/metrics").body);
  std::set<std::string> exposed;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("# TYPE ")) exposed.insert(line.substr(7, line.find(' ', 7) - 7));
  }
  EXPECT_EQ(exposed, listed);
}

TEST(HttpServer, RefusesToListenToTheNetworkWithoutTls) {
  ExampleStreams streams;
  auto started = HttpServer::start(
      {.host = "0.0.0.0", .port = 0, .token = "0123456789abcdef", .tls_certificate = "", .tls_key = ""}, streams);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, base::ErrorCode::invalid_request);
  EXPECT_FALSE(
      HttpServer::start({.host = "127.0.0.1", .port = 0, .token = "", .tls_certificate = "", .tls_key = ""}, streams));
}

TEST(HttpServer, OnePortServesOneEngine) {
  ExampleStreams streams;
  auto first = HttpServer::start(
      {.host = "127.0.0.1", .port = 0, .token = "0123456789abcdef", .tls_certificate = "", .tls_key = ""}, streams);
  ASSERT_TRUE(first);
  EXPECT_FALSE(HttpServer::start({.host = "127.0.0.1",
                                  .port = (*first)->port(),
                                  .token = "0123456789abcdef",
                                  .tls_certificate = "",
                                  .tls_key = ""},
                                 streams));
}

TEST(ListenAddress, Forms) {
  EXPECT_EQ(*parse_listen_address("127.0.0.1:8643"), (std::pair<std::string, int>{"127.0.0.1", 8643}));
  EXPECT_EQ(*parse_listen_address("[::1]:0"), (std::pair<std::string, int>{"::1", 0}));
  for (const char* wrong : {"", ":1", "host", "host:", "host:70000", "host:12x", "::1:80"})
    EXPECT_FALSE(parse_listen_address(wrong)) << wrong;
  EXPECT_TRUE(is_loopback("127.8.0.1"));
  EXPECT_FALSE(is_loopback("127.0.0.1.example.org"));
}

}  // namespace
}  // namespace thalweg::control
