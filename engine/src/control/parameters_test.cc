#include "control/parameters.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/file.h"
#include "control/desired_state.h"
#include "support/engine_directory.h"

namespace thalweg::control {
namespace {

using nlohmann::json;

std::string contract(const std::string& name) {
  return *base::read_file(test::engine_directory() + "/contract/" + name);
}

TEST(Parameters, AreThoseOfTheContract) {
  json listed = json::parse(contract("parameters.json"))["parameters"];
  const StreamParameters defaults;
  ASSERT_EQ(listed.size(), parameter_specs().size());
  for (const json& parameter : listed) {
    const ParameterSpec* spec = find_parameter(parameter["name"].get<std::string>());
    ASSERT_NE(spec, nullptr) << parameter["name"];
    EXPECT_EQ(spec->live, parameter["live"].get<bool>()) << parameter["name"];
    EXPECT_EQ(value_of(*spec, defaults), parameter["default"]) << parameter["name"];
    if (parameter["type"] == "integer") {
      EXPECT_EQ(spec->minimum, parameter["minimum"].get<int64_t>()) << parameter["name"];
      EXPECT_EQ(spec->maximum, parameter["maximum"].get<int64_t>()) << parameter["name"];
    }
    if (parameter["type"] == "enum") {
      EXPECT_EQ(json(std::vector<std::string>(spec->values.begin(), spec->values.end())), parameter["values"]);
    }
  }
}

TEST(Parameters, EveryChoiceIsReadAndWritten) {
  json document = json::parse(contract("desired.example.json"));
  for (const ParameterSpec& spec : parameter_specs()) {
    for (const std::string_view value : spec.values) {
      document["streams"][0]["parameters"][std::string(spec.name)] = value;
      const auto read = parse_desired(document.dump());
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_EQ(value_of(spec, read->streams[0].parameters), value) << spec.name;
      const auto again = parse_stored_desired(serialise(*read));
      ASSERT_TRUE(again) << again.error().message;
      EXPECT_EQ(again->streams, read->streams) << spec.name;
    }
  }
}

void make_another(int64_t& value) { ++value; }
void make_another(bool& value) { value = !value; }
template <typename Choice>
  requires std::is_enum_v<Choice>
void make_another(Choice& value) {
  value = value == Choice{} ? static_cast<Choice>(1) : Choice{};
}
void make_another(ErrorPolicyDefinitions& value) { value.emplace_back(); }
void make_another(ConflictHandlerDefinitions& value) { value.emplace_back(); }
void make_another(ConflictDetectionDefinition& value) { value.emplace_back(); }
void make_another(StatementHandlerDefinitions& value) { value.emplace_back(); }

TEST(Parameters, TheCaptureStartsAnewForThoseOfTheStreamAlone) {
  for (const json& listed : json::parse(contract("parameters.json"))["parameters"]) {
    const StreamParameters defaults;
    StreamParameters changed;
    std::visit([&](auto field) { make_another(changed.*field); },
               find_parameter(listed["name"].get<std::string>())->field);
    const bool is_of_the_stream = listed["scope"] == "STREAM";
    EXPECT_EQ(capture_needs_restart(defaults, changed), is_of_the_stream && !listed["live"].get<bool>())
        << listed["name"];
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

}  // namespace
}  // namespace thalweg::control
