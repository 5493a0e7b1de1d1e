// The commands of a program that trains. This process is one rank that a launcher started, or a world of one rank.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/train/recipe.h"

namespace lockstep::cli {

using Recipes = std::vector<std::shared_ptr<train::Recipe>>;
using Arguments = std::vector<std::string>;

// `program` is how the user calls it, for help; `args` follow the command's name. Each returns the process's exit code
// and throws lockstep::Error. Once a process.
int train(const std::string& program, const Arguments& args, const Recipes& recipes);
int eval(const std::string& program, const Arguments& args, const Recipes& recipes);

// Writes to standard output at once, whole. Throws IoError.
void print(const std::string& text);

}  // namespace lockstep::cli
