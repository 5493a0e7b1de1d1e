#include "lockstep/train/options/option_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::train {
namespace {

const std::vector<config::OptionShape> kShapes = {{.name = "recipe", .value = "", .help = {}},
                                                  {.name = "lr", .value = "X", .help = {}}};

TEST(OptionFile, KnowsItsRecipeAndItsParent) {
  const testing_support::TempDir dir;
  const std::string path = dir / "config.toml", parent = "runs/a \"b\"/checkpoints/step-000200.pt";
  std::ofstream(path) << parent_line(parent) << "recipe = 'mnist'\nlr = 0.5\n";
  const OptionFile file = read_option_file(path, kShapes);
  EXPECT_EQ(file.recipe, "mnist");
  EXPECT_EQ(file.parent, parent);
  ASSERT_EQ(file.options.size(), 1u);
  EXPECT_EQ(value_of(file.options, "lr"), "0.5");
  EXPECT_EQ(parent_line(""), "");
}

TEST(OptionFile, MayBeNone) {
  EXPECT_TRUE(read_option_file("", kShapes).options.empty());
  EXPECT_THROW(read_option_file("/none.toml", kShapes), ConfigError);
}

TEST(OptionFile, AnOptionIsTakenOnce) {
  std::vector<config::GivenOption> given = {{"lr", "1"}, {"seed", "2"}};
  EXPECT_EQ(take(given, "lr"), "1");
  EXPECT_EQ(take(given, "lr"), std::nullopt);
  EXPECT_EQ(given.size(), 1u);
}

}  // namespace
}  // namespace lockstep::train
