#include "lockstep/apps/commands/convert_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::apps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string refused(const std::vector<std::string>& words) {
  return testing_support::refusal([&] { Command<ConvertCommand>().read(words); });
}

TEST(ConvertCommand, IsReadAndWrittenAsTheSameWords) {
  const testing_support::TempDir dir;
  Command<ConvertCommand> command;
  EXPECT_EQ(command.read({dir.path(), "a.safetensors", "--strip-prefix", "module."}), std::nullopt);
  EXPECT_TRUE(command.options().to_safetensors());
  EXPECT_FALSE(command.options().weights);
  EXPECT_THAT(command.arguments(), ElementsAre("convert", dir.path(), "a.safetensors", "--strip-prefix=module."));
  EXPECT_THAT(Command<ConvertCommand>().read({"--help"}).value(), HasSubstr("--weights"));
}

TEST(ConvertCommand, BadLines) {
  const testing_support::TempDir dir;
  EXPECT_THAT(refused({dir.path()}), StartsWith("convert: expected two words, IN and OUT"));
  EXPECT_THAT(refused({dir / "none.pt", "a.pt"}), HasSubstr("none.pt"));
  EXPECT_THAT(refused({dir.path(), "a.onnx"}), HasSubstr("a.onnx: expected a name that ends in .pt"));
}

}  // namespace
}  // namespace lockstep::apps
