#include "control/transformation_definitions.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace thalweg::control {
namespace {

using nlohmann::json;

base::Result<Transformations> read(const json& step) {
  const json table = {{"transformations", json::array({step})}};
  ObjectReader reader(table, "");
  return read_transformations(reader);
}

// The place of what is refused, below the step.
std::string refusal(const json& step) {
  const auto out = read(step);
  if (out) return "none";
  constexpr std::string_view kAt = "/transformations/0";
  EXPECT_TRUE(out.error().message.starts_with(kAt)) << out.error().message;
  return out.error().message.substr(kAt.size(), out.error().message.find(':') - kAt.size());
}

TEST(TransformationDefinitions, KeepExpressionsAndCasts) {
  const json computed = {
      {"type", "add_column"}, {"column", "total"}, {"data_type", "numeric"}, {"expression", "price * amount"}};
  const json cast = {{"type", "cast_column"}, {"column", "price"}, {"data_type", "double precision"}};
  const json constant = {{"type", "add_column"}, {"column", "site"}, {"data_type", "text"}, {"value", ""}};
  for (const json& step : {computed, cast, constant}) {
    const auto out = read(step);
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_EQ(to_json(*out), json::array({step}));
  }
  EXPECT_EQ(read(computed)->at(0).expression, "price * amount");
  EXPECT_EQ(read(cast)->at(0).type, TransformationType::cast_column);
}

TEST(TransformationDefinitions, HaveAValueOrAnExpression) {
  json step = {{"type", "add_column"}, {"column", "total"}, {"data_type", "numeric"}};
  EXPECT_EQ(refusal(step), "/value");
  step["expression"] = "";
  EXPECT_EQ(refusal(step), "/expression");
  step["expression"] = "1";
  step["value"] = "1";
  EXPECT_EQ(refusal(step), "/value");
  EXPECT_EQ(refusal({{"type", "cast_column"}, {"column", "a"}}), "/data_type");
  EXPECT_EQ(refusal({{"type", "cast_column"}, {"data_type", "text"}}), "/column");
  EXPECT_EQ(refusal({{"type", "cast_column"}, {"column", "a"}, {"data_type", "text"}, {"expression", "a"}}),
            "/expression");
}

}  // namespace
}  // namespace thalweg::control
