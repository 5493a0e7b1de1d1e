// Lines of `lockstep train` for tests, read on a machine of four cores.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/testing/words_of.h"
#include "lockstep/recipes/options/recipe_options.h"
#include "lockstep/train/options/train_command.h"

namespace lockstep::testing_support {

using Line = std::unique_ptr<train::TrainCommand>;

inline Line train_words(const std::vector<std::string>& words, const train::FindResumedConfig& find_resumed = {}) {
  auto command = std::make_unique<train::TrainCommand>("lockstep", recipes::describe_recipes());
  EXPECT_EQ(command->read(words, {.cores = 4}, find_resumed), std::nullopt);
  return command;
}

inline Line train_line(const std::string& line) { return train_words(words_of(line)); }

}  // namespace lockstep::testing_support
