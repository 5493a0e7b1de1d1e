#include "lockstep/config/spellings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::config {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> respelled(const std::vector<std::string>& line) {
  const std::vector<Spelling> spellings = {
      {"-e", "epochs"}, {"--save_every", "save-every", "", "epochs"}, {"--ddp_mode", "nproc", "auto", "", false}};
  const std::vector<OptionShape> shapes = {{.name = "batch-size", .value = "N", .help = ""},
                                           {.name = "save-every", .value = "N", .help = ""},
                                           {.name = "epochs", .value = "N", .help = ""},
                                           {.name = "nproc", .value = "N", .help = ""}};
  return respell(line, spellings, shapes);
}

TEST(Spellings, OthersNamesStandForOptions) {
  EXPECT_THAT(respelled({"unet", "-e", "5", "--save_every=2", "--ddp_mode", "rest"}),
              ElementsAre("unet", "--epochs=5", "--save-every=2epochs", "--nproc=auto", "rest"));
  EXPECT_THAT(respelled({"-e5", "-e=6", "--save_every", "3"}),
              ElementsAre("--epochs=5", "--epochs=6", "--save-every=3epochs"));
}

TEST(Spellings, WhatDoesNotFitIsLeftToWhoReadsTheLine) {
  EXPECT_THAT(respelled({"--ddp_mode=1", "--save_every=5epochs"}), ElementsAre("--ddp_mode=1", "--save-every=5epochs"));
  EXPECT_THAT(respell(std::vector<std::string>{"-v", "a"}, std::vector<Spelling>{{"-v", "validation"}}, {}),
              ElementsAre("-v", "a"));
}

TEST(Spellings, UnderscoresStandForDashesInNamesThatAreKnown) {
  EXPECT_THAT(respelled({"--batch_size", "3", "--batch_size=a_b", "--no_such", "a_b", "--save-every", "4"}),
              ElementsAre("--batch-size", "3", "--batch-size=a_b", "--no_such", "a_b", "--save-every", "4"));
}

TEST(Spellings, AMissingValueIsLeftToWhoReadsTheLine) {
  EXPECT_THAT(respelled({"-e"}), ElementsAre("--epochs"));
  EXPECT_THAT(respelled({"--", "-e", "5"}), ElementsAre("--", "-e", "5"));
  EXPECT_THAT(respelled({"--eager", "--save_everything"}), ElementsAre("--eager", "--save_everything"));
}

}  // namespace
}  // namespace lockstep::config
