#include "lockstep/config/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<OptionShape> kShapes = {
    {.name = "epochs", .value = "N", .help = "passes"},
    {.name = "lr", .value = "X", .help = {}},
    {.name = "amp", .value = "LEVEL", .help = {}, .form = OptionForm::kOptionalValue},
    {.name = "resume", .value = "DIR", .help = {}, .form = OptionForm::kOptionalValue},
    {.name = "quiet", .value = {}, .help = {}, .form = OptionForm::kFlag},
    {.name = "word", .value = {}, .help = {}, .form = OptionForm::kWord}};

const std::vector<std::string> kSubjects = {"mnist", "unet"};

// "name=value name=value | word word"
std::string tokens(const std::vector<std::string>& args, Rest rest = Rest::kOptions) {
  const Given given = tokenize(kShapes, args, rest, kSubjects);
  std::string out = given.help ? "help " : "";
  for (const auto& option : given.options) out += option.name + "=" + option.value + " ";
  out += "|";
  for (const auto& word : given.words) out += " " + word;
  return out;
}

std::string refusal(const std::vector<std::string>& args, Rest rest = Rest::kOptions) {
  try {
    return "accepted as " + tokens(args, rest);
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(Tokenizer, SortsOptionsAndWords) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "|"},
      {{"mnist", "--epochs", "3"}, "epochs=3 | mnist"},
      {{"--epochs=3", "mnist"}, "epochs=3 | mnist"},
      {{"--lr", "-0.1"}, "lr=-0.1 |"},
      {{"--epochs", "--quite"}, "epochs=--quite |"},  // the value's own check refuses it
      {{"--quiet", "mnist"}, "quiet=true | mnist"},
      {{"--amp", "mnist"}, "amp= | mnist"},
      {{"mnist", "--amp"}, "amp= | mnist"},
      {{"--amp", "--epochs", "3"}, "epochs=3 amp= |"},
      {{"--amp", "O1", "mnist"}, "amp=O1 | mnist"},
      {{"--amp=O1"}, "amp=O1 |"},
      {{"--resume", "mnist", "--amp", "unet"}, "amp= resume= | mnist unet"},
      {{"--resume", "runs/mnist-1"}, "resume=runs/mnist-1 |"},
      {{"mnist", "--help"}, "help |"},
      {{"-h"}, "help |"},
  };
  for (const auto& [args, expected] : cases) EXPECT_EQ(tokens(args), expected);
}

TEST(Tokenizer, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(refusal({"mnist", "--epoch", "3"}), "--epoch: unknown option; did you mean --epochs?");
  EXPECT_EQ(refusal({"--epoch=3"}), "--epoch: unknown option; did you mean --epochs?");
  EXPECT_EQ(refusal({"--colour-of-the-sky"}), "--colour-of-the-sky: unknown option; --help lists the options");
  EXPECT_THAT(refusal({"-x"}), HasSubstr("-x: unknown option"));
  EXPECT_THAT(refusal({"--word"}), HasSubstr("--word: unknown option")) << "it is no option of the line";
  EXPECT_EQ(refusal({"--lr", "1", "--lr", "2"}), "--lr: given twice; leave one of them out");
  EXPECT_EQ(refusal({"mnist", "--lr"}), "--lr: expected a value, as in --lr X; --help lists the options");
  for (const char* next : {"--epochs", "--epochs=3"}) {
    EXPECT_EQ(refusal({"mnist", "--lr", next, "3"}), "--lr: expected a value, as in --lr X; --help lists the options");
  }
}

TEST(Tokenizer, AnotherProgramsLineIsLeftAlone) {
  EXPECT_EQ(tokens({"--epochs", "2", "prog", "--epochs", "7", "--help", "-x"}, Rest::kProgram),
            "epochs=2 | prog --epochs 7 --help -x");
  EXPECT_EQ(tokens({"prog", "--", "x"}, Rest::kProgram), "| prog -- x");
  EXPECT_EQ(tokens({"--", "prog", "--epochs", "7", "--", "x"}, Rest::kProgram), "| prog --epochs 7 -- x");
  EXPECT_EQ(tokens({"--epochs", "2", "--", "prog", "-x"}, Rest::kProgram), "epochs=2 | prog -x");
  EXPECT_THAT(refusal({"--epoch", "2", "prog"}, Rest::kProgram), HasSubstr("did you mean --epochs?"));
}

TEST(Tokenizer, Describes) {
  EXPECT_THAT(describe(kShapes), HasSubstr("  --epochs N                  passes\n"));
  EXPECT_THAT(describe(kShapes), HasSubstr("  --amp [LEVEL]\n"));
  EXPECT_THAT(describe(kShapes), testing::Not(HasSubstr("word")));
}

}  // namespace
}  // namespace lockstep::config
