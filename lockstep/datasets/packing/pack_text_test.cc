#include "lockstep/datasets/packing/pack_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lockstep::datasets {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

PackResult example() {
  PackResult result{.out = "/data/packed"};
  result.parts.push_back({.name = "train",
                          .text = "9 JPEGs of 2 classes in photos/train",
                          .samples = 8,
                          .stored_bytes = 2 << 20,
                          .emptied = {"dogs\n"}});
  result.parts[0].manifest = {.packing = "as they are", .shards = {{"a", 5, 1 << 20, 7}, {"b", 3, 2 << 20, 8}}};
  result.left_out = {"photos/train/dogs/1.jpg: the file is empty"};
  result.warnings = {"/data/packed.replaced: kept"};
  return result;
}

TEST(PackText, SaysWhatWasWrittenAndHowToTrainOnIt) {
  const std::string text = text_of(example(), "packed", 1.25);
  EXPECT_THAT(text,
              AllOf(HasSubstr("packed train: 8 samples of 9 JPEGs"), HasSubstr("into 2 shards of 3 MiB (as they")));
  EXPECT_THAT(text, HasSubstr("warning: all of the class dogs\\n was left out\n"));
  EXPECT_THAT(text, HasSubstr("left out: photos/train/dogs/1.jpg: the file is empty\n"));
  EXPECT_THAT(text, HasSubstr("\nwarning: /data/packed.replaced: kept\n"));
  EXPECT_TRUE(text.ends_with(" s: lockstep train imagenet --data packed\n")) << text;
  PackResult masks = example();
  masks.kind = Packed::kMasks;
  EXPECT_THAT(text_of(masks, "packed", 1), HasSubstr("lockstep train unet --data packed"));
}

TEST(PackText, IsOneValueForScripts) {
  const auto json = json_of(example(), 1.5);
  EXPECT_EQ(json.at("out"), "/data/packed");
  EXPECT_EQ(json.at("parts").at(0).at("shards"), 2);
  EXPECT_EQ(json.at("parts").at(0).at("bytes"), 3 << 20);
  EXPECT_EQ(json.at("left_out").size(), 1u);
  EXPECT_EQ(json.at("warnings").size(), 1u);
}

}  // namespace
}  // namespace lockstep::datasets
