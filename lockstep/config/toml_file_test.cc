#include "lockstep/config/toml_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace lockstep::config {
namespace {

using testing::HasSubstr;

class TomlFile : public testing::Test {
 protected:
  TomlFile() {
    std::string folder = testing::TempDir() + "/toml-XXXXXX";
    path_ = std::string(mkdtemp(folder.data())) + "/options.toml";
  }

  std::string read(const std::string& content) {
    std::ofstream(path_) << content;
    std::string out;
    for (const auto& option : read_toml(path_, shapes_of(train_table()))) out += option.name + "=" + option.value + " ";
    return out;
  }

  std::string refusal(const std::string& content) {
    try {
      return "accepted as " + read(content);
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(path_));
      return error.what();
    }
  }

  std::string path_;
};

TEST_F(TomlFile, ReadsPlainValues) {
  EXPECT_EQ(read("epochs = 3\nlr = 0.1\nrecipe = 'mnist'\nquiet = true\n"), "epochs=3 lr=0.1 quiet=true recipe=mnist ");
  EXPECT_EQ(read(""), "");
}

TEST_F(TomlFile, RefusesTheRest) {
  EXPECT_THAT(refusal("epoch = 3"), HasSubstr("line 1: epoch: unknown key; did you mean epochs?"));
  EXPECT_THAT(refusal("\nepochs = "), HasSubstr("line 2"));
  EXPECT_THAT(refusal("epochs = [1, 2]"), HasSubstr("expected a number"));
  EXPECT_THAT(refusal("[lr]\nx = 1"), HasSubstr("expected a number"));
  EXPECT_THAT(refusal("lr = 1\nlr = 2"), HasSubstr("line 2"));
  EXPECT_THAT(refusal(std::string(2 << 20, '#')), HasSubstr("over 1 MiB"));
  EXPECT_THAT(refusal(std::string("\0\xff\xfe", 3)), HasSubstr("line 1"));
  EXPECT_THAT(refusal("lr = " + std::string(100000, '[')), HasSubstr("line 1"));
}

TEST_F(TomlFile, AFileThatIsNotThere) {
  EXPECT_THROW(read_toml(path_ + ".no", shapes_of(train_table())), ConfigError);
  EXPECT_THROW(read_toml(testing::TempDir(), shapes_of(train_table())), ConfigError);
}

TEST_F(TomlFile, WhatARunKeepsReadsBack) {
  TrainOptions options;
  options.recipe = "unet";
  options.data = "a \"quoted\"\\ näme";
  options.lr = 0.1;
  options.weight_decay = 1e-5;
  options.clip = 1e9;
  options.optimizer = OptimizerKind::kAdamW;
  options.resume = "runs/unet-1";
  options.out = "runs/unet-1";
  options.eval_every = {.count = 2};
  options.amp = AmpLevel::kO1;
  const std::string text = to_toml(options);
  EXPECT_THAT(text, HasSubstr("recipe = "));
  EXPECT_THAT(text, HasSubstr("\nlr = 0.1\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("resume")));
  EXPECT_THAT(text, testing::Not(HasSubstr("\nout")));
  const std::string all = read(text);
  EXPECT_THAT(all, HasSubstr("data=a \"quoted\"\\ näme "));
  EXPECT_THAT(all, HasSubstr("optimizer=adamw "));
  EXPECT_THAT(all, HasSubstr("eval-every=2epochs "));
  EXPECT_THAT(all, HasSubstr("loss-scale=dynamic "));
  EXPECT_THAT(all, HasSubstr("recipe=unet "));
  EXPECT_THAT(all, HasSubstr("weight-decay=1e-05 "));
  EXPECT_THAT(text, HasSubstr("\nnproc = 1\n"));
}

}  // namespace
}  // namespace lockstep::config
