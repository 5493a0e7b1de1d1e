#include "lockstep/predict/class_table.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"

namespace lockstep::predict {
namespace {

const std::vector<std::string> kNames = {"cat", "dog, small", "owl"};

ImageClasses image() { return likeliest("a,b.png", at::tensor({0.0, 2.0, 1.0}).to(at::kBFloat16), 2); }

TEST(ClassTable, HasTheLikeliestFirst) {
  const ImageClasses found = image();
  ASSERT_EQ(found.classes.size(), 2U);
  EXPECT_EQ(found.classes[0].first, 1);
  EXPECT_EQ(found.classes[1].first, 2);
  EXPECT_NEAR(found.classes[0].second, std::exp(2) / (1 + std::exp(1) + std::exp(2)), 1e-12);
  EXPECT_EQ(likeliest("x", at::tensor({1.0, 1.0}), 9).classes.size(), 2U) << "there are no more";
  EXPECT_EQ(likeliest("x", at::tensor({1.0, 1.0}), 1).classes[0].first, 0) << "the first of equal ones";
  EXPECT_THROW(likeliest("x", at::tensor({1.0, std::nan("")}), 1), DataError);
}

TEST(ClassTable, IsText) {
  EXPECT_EQ(to_text(image(), kNames), "a,b.png: dog, small 0.6652, owl 0.2447\n");
  EXPECT_EQ(to_text(image(), {}), "a,b.png: 1 0.6652, 2 0.2447\n");
}

TEST(ClassTable, IsCsv) {
  EXPECT_EQ(csv_header(2), "file,class_1,probability_1,class_2,probability_2\n");
  EXPECT_EQ(to_csv(image(), kNames), "\"a,b.png\",\"dog, small\",0.6652,owl,0.2447\n");
  EXPECT_EQ(to_csv({"say \"x\".png", {}}, {}), "\"say \"\"x\"\".png\"\n");
}

TEST(ClassTable, IsJson) {
  const auto line = nlohmann::json::parse(to_json(image(), kNames));
  EXPECT_EQ(line["file"], "a,b.png");
  EXPECT_EQ(line["classes"][0]["class"], 1);
  EXPECT_EQ(line["classes"][0]["name"], "dog, small");
  EXPECT_EQ(line["classes"][0]["probability"].get<double>(), image().classes[0].second);
  EXPECT_FALSE(nlohmann::json::parse(to_json(image(), {}))["classes"][0].contains("name"));
}

}  // namespace
}  // namespace lockstep::predict
