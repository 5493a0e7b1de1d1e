// main() of a program with recipes of its own, which trains them as lockstep trains its:
//
//   int main(int argc, char** argv) { return lockstep::cli::main(argc, argv, {std::make_shared<Spiral>()}); }
//
//   ./my_program train spiral --turns 3 --nproc 2 --out runs/spiral-1
//   ./my_program eval spiral --load runs/spiral-1/checkpoints/best.pt
#pragma once

#include "lockstep/cli/commands.h"

namespace lockstep::cli {

// Runs the command and ends the process. An error is one line on standard error, and the exit code says whose mistake
// it is. Several ranks are this program, started anew with `argv` from the command on: what main() takes from its line
// itself is not theirs, and belongs into the recipe's declare() or the environment.
[[noreturn]] int main(int argc, char** argv, const Recipes& recipes);

}  // namespace lockstep::cli
