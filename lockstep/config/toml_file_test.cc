#include "lockstep/config/toml_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace lockstep::config {
namespace {

using testing::HasSubstr;

struct SomeOptions {
  std::string recipe, data, out;
  std::optional<int> epochs;
  std::optional<double> lr, weight_decay;
  double clip = 0;
  bool quiet = false;
  int nproc = 1;
  std::vector<Rule> groups;
  std::string drops, level = "O0", stays = "on";

  void declare(OptionSet& options) {
    using enum Effect;
    options.subject("recipe", &recipe, kNone);
    options.text("data", "DIR", "", &data, kNone);
    options.text("out", "DIR", "", &out, kNone).not_in_file();
    options.number("epochs", "N", "", &epochs, 1, 99, kNone);
    options.number("lr", "X", "", &lr, 0, 9, kNone);
    options.number("weight-decay", "X", "", &weight_decay, 0, 9, kNone);
    options.number("clip", "X", "", &clip, 0, 1e12, kNone);
    options.flag("quiet", "", &quiet, kNone);
    options.number("nproc", "N", "", &nproc, 1, 64, kNone);
    options.rules("groups", "", &groups, kNone);
    options.text("drops", "N[,N]", "", &drops, kNone).of_list();
    options.text("level", "LEVEL", "", &level, kNone).bare("auto").off("O0");
    options.text("stays", "on|off", "", &stays, kNone).bare("on");
  }
};

class TomlFile : public testing::Test {
 protected:
  TomlFile() {
    std::string folder = testing::TempDir() + "/toml-XXXXXX";
    path_ = std::string(mkdtemp(folder.data())) + "/options.toml";
    run_.declare(rows_);
  }

  std::string read(const std::string& content) {
    std::ofstream(path_) << content;
    std::string out;
    for (const auto& option : read_toml(path_, rows_.shapes())) out += option.name + "=" + option.value + " ";
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

  SomeOptions run_;
  OptionSet rows_;
  std::string path_;
};

TEST_F(TomlFile, ReadsPlainValues) {
  EXPECT_EQ(read("epochs = 3\nlr = 0.1\nrecipe = 'mnist'\nquiet = true\n"), "epochs=3 lr=0.1 quiet=true recipe=mnist ");
  EXPECT_EQ(read("quiet = false\n"), "quiet=false ");
  EXPECT_EQ(read(""), "");
}

TEST_F(TomlFile, AnArrayIsAListWithCommas) {
  EXPECT_EQ(read("drops = [10, 20]\n"), "drops=10,20 ");
  EXPECT_EQ(read("drops = \"10,20\"\n"), "drops=10,20 ");
  EXPECT_THAT(refusal("drops = [[10], 20]"),
              HasSubstr("drops: expected a number, a text or true/false, found an array"));
}

TEST_F(TomlFile, TrueIsAnOptionWithoutItsValue) {
  EXPECT_EQ(read("level = true\n"), "level= ");
  EXPECT_EQ(read("level = false\n"), "level=O0 ");
  EXPECT_EQ(read("stays = false\n"), "stays=false ");
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
  EXPECT_THROW(read_toml(path_ + ".no", rows_.shapes()), ConfigError);
  EXPECT_THROW(read_toml(testing::TempDir(), rows_.shapes()), ConfigError);
}

TEST_F(TomlFile, WhatARunKeepsReadsBack) {
  run_.recipe = "unet";
  run_.data = "a \"quoted\"\\ näme";
  run_.lr = 0.1;
  run_.weight_decay = 1e-5;
  run_.clip = 1e9;
  run_.out = "runs/unet-1";
  const std::string text = to_toml(rows_);
  EXPECT_THAT(text, HasSubstr("recipe = "));
  EXPECT_THAT(text, HasSubstr("\nlr = 0.1\n"));
  EXPECT_THAT(text, HasSubstr("\nnproc = 1\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("\nout")));
  EXPECT_THAT(text, testing::Not(HasSubstr("epochs")));
  const std::string all = read(text);
  EXPECT_THAT(all, HasSubstr("data=a \"quoted\"\\ näme "));
  EXPECT_THAT(all, HasSubstr("recipe=unet "));
  EXPECT_THAT(all, HasSubstr("clip=1e+09 "));
  EXPECT_THAT(all, HasSubstr("weight-decay=1e-05 "));
}

TEST_F(TomlFile, RulesAreAnArrayOfTables) {
  const std::string text =
      "lr = 0.1\n[[groups]]\nmatch = \"encoder.*\"\nlr_scale = 0.1\nweight_decay = 0\n"
      "[[groups]]\nmatch = \"*.bias\"\nnesterov = true\n";
  EXPECT_EQ(read(text), "groups=encoder.*: lr_scale=0.1, weight_decay=0; *.bias: nesterov=true lr=0.1 ");
  rows_.apply(read_toml(path_, rows_.shapes()));
  const std::string written = to_toml(rows_);
  EXPECT_THAT(written, HasSubstr("\n[[groups]]\nmatch = 'encoder.*'\nlr_scale = 0.1\nweight_decay = 0\n"));
  EXPECT_THAT(read(written), HasSubstr("groups=encoder.*: lr_scale=0.1, weight_decay=0; *.bias: nesterov=true"));
}

// As those of a run and of its recipe.
TEST_F(TomlFile, OfSeveralSetsTablesComeLast) {
  std::ofstream(path_) << "lr = 0.1\n[[groups]]\nmatch = \"*.bias\"\nnesterov = true\n";
  rows_.apply(read_toml(path_, rows_.shapes()));
  OptionSet own;
  int size = 7;
  own.number("size", "PX", "of images", &size, 1, 9, Effect::kNone);
  const std::string text = to_toml({&rows_, &own});
  EXPECT_LT(text.find("\nsize = 7\n"), text.find("[[groups]]"));
}

TEST_F(TomlFile, TablesOfNothingAreMistakes) {
  const auto line = [this](const std::string& text) {
    try {
      read(text);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(line("[[groups]]\nlr = 0.1\n"), HasSubstr("a table without the key match"));
  EXPECT_THAT(line("[groups]\nlr = 0.1\n"),
              HasSubstr("groups: expected a number, a text or true/false, found a table"));
  EXPECT_THAT(line("[model]\ndepth = 3\n"), HasSubstr("model: unknown key"));
}

TEST_F(TomlFile, OfAnyProgramsOptions) {
  std::ofstream(path_) << "lr = 0.1\nrecipe = \"mine\"\nturns = [1, 2]\nquiet = true\n[[groups]]\nmatch = \"*\"\n";
  std::vector<std::string> found;
  for (const auto& [name, value] : read_any_toml(path_)) found.push_back(name + '=' + value);
  EXPECT_THAT(found, testing::ElementsAre(testing::StartsWith("groups="), "lr=0.1", "quiet=true", "recipe=mine",
                                          "turns=[ 1, 2 ]"));
  std::ofstream(path_) << "lr = = 1\n";
  EXPECT_THROW(read_any_toml(path_), ConfigError);
}

}  // namespace
}  // namespace lockstep::config
