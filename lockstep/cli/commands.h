// The commands of a program that trains. This process is a rank that a launcher has started, a world of one rank, or
// starts the ranks itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/train/recipe.h"

namespace lockstep::cli {

using Recipes = std::vector<std::shared_ptr<train::Recipe>>;
using Arguments = std::vector<std::string>;

struct Program {
  std::string name;  // as the user calls it, for help
  // The path of what is started as each rank of a command that asks for several, with the command's words as its own.
  // Empty: this process can be a rank alone, and such a command is refused where no launcher has started it.
  std::string of_ranks = {};
};

// `args` follow the command's name. Each returns the process's exit code and throws lockstep::Error. Once a process.
int train(const Program& program, const Arguments& args, const Recipes& recipes);
int eval(const Program& program, const Arguments& args, const Recipes& recipes);
int predict(const Program& program, const Arguments& args, const Recipes& recipes);
int export_network(const Program& program, const Arguments& args, const Recipes& recipes);

// Writes to standard output at once, whole. Throws IoError.
void print(const std::string& text);

}  // namespace lockstep::cli
