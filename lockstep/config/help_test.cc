#include "lockstep/config/help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "lockstep/config/commands.h"
#include "lockstep/config/tokenizer.h"

namespace lockstep::config {
namespace {

using testing::HasSubstr;

TEST(Help, NamesEveryOptionOfTrain) {
  const auto shapes = shapes_of(train_table());
  const std::string text = train_help(shapes);
  for (const auto& shape : shapes) EXPECT_THAT(text, HasSubstr("  --" + shape.name)) << text;
  EXPECT_THAT(text, HasSubstr("\nPrecision:\n"));
  EXPECT_THAT(text, HasSubstr("--amp [O0|O1|O2|O3|auto]"));
}

TEST(Help, FitsATerminal) {
  const auto train = shapes_of(train_table());
  const auto eval = shapes_of(eval_table());
  const auto inspect = shapes_of(inspect_table());
  const auto launch = shapes_of(launch_table());
  const auto doctor = shapes_of(doctor_table());
  for (const auto& text : {general_help(), train_help(train), eval_help(eval), bench_help(), inspect_help(inspect),
                           launch_help(launch), doctor_help(doctor)}) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
    EXPECT_EQ(text.back(), '\n');
  }
}

TEST(Help, BenchListsTheOptionsOfEachKind) {
  EXPECT_THAT(bench_help(), HasSubstr("--model lenet|resnet18|unet|mobilenet_v2"));
  EXPECT_THAT(bench_help(), HasSubstr("bench data DIR"));
}

}  // namespace
}  // namespace lockstep::config
