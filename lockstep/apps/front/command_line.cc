#include <algorithm>

#include "commands.h"
#include "lockstep/base/error.h"
#include "lockstep/base/version.h"
#include "lockstep/config/values.h"

namespace lockstep::front {
namespace {

struct Command {
  const char* name;
  const char* usage;
  const char* about;
  int (*run)(const Arguments& args);
};

constexpr Command kCommands[] = {
    {"train", "train RECIPE", "train a recipe: mnist, unet, …", train},
    {"ps", "ps", "the runs under way", ps},
    {"logs", "logs [-f] RUN", "what a run printed, and prints", logs},
    {"dash", "dash RUN", "a run's curves, failures and log on a web page", dash},
    {"stop", "stop RUN", "end a run, with a checkpoint", stop},
    {"eval", "eval RUN_DIR", "evaluate a run, or RECIPE --load FILE", eval},
    {"predict", "predict RUN_DIR -i IN", "what a network makes of images: classes, or masks", predict},
    {"export", "export RUN_DIR OUT", "its network as .onnx, or as TorchScript (.pt)", export_network},
    {"bench", "bench KIND", "measure this machine", bench},
    {"inspect", "inspect FILE|DIR", "what a checkpoint holds", inspect},
    {"verify", "verify RUN|FILE…", "whether checkpoints and a run's files are whole", verify},
    {"diff", "diff A B", "where two runs or two checkpoints went apart", diff},
    {"convert", "convert IN OUT", "a checkpoint in another format: .pt, .safetensors, .pdparams, .pdopt", convert},
    {"data", "data DIR", "what a data set has, and what is wrong with it", data},
    {"draw", "draw KIND DIR", "images in files, to try what takes one's own", draw},
    {"pack", "pack DIR OUT", "a data set in a few large files, read faster", pack},
    {"launch", "launch PROGRAM ARGS…", "any program, under the environment that torchrun sets", launch},
    {"doctor", "doctor", "what this machine has; a self-test of its transports", doctor},
};

std::string help() {
  std::string text = R"(Lockstep trains deep networks data-parallel and in mixed precision.

Usage: lockstep COMMAND [options]

)";
  for (const Command& command : kCommands) {
    std::string usage = cat("  ", command.usage);
    const auto is_character = [](char each) { return (each & 0xc0) != 0x80; };  // of UTF-8
    const auto width = static_cast<size_t>(std::count_if(usage.begin(), usage.end(), is_character));
    text += cat(usage, std::string(31 - std::min<size_t>(width, 30), ' '), command.about, '\n');
  }
  return text + R"(
`lockstep COMMAND --help` lists a command's options. `lockstep --version` says which this is.

Examples:
  lockstep train mnist --nproc 2 --amp
  lockstep train unet --amp --epochs 10 --out runs/shapes
  lockstep launch --nproc 2 train.py
)";
}

[[noreturn]] void refuse(const std::string& name) {
  std::vector<std::string> known;
  for (const Command& command : kCommands) known.emplace_back(command.name);
  const bool is_option = name.size() > 1 && name[0] == '-';
  const std::string suggestion = config::did_you_mean(name, known);
  throw ConfigError(name, is_option ? ": unknown option" : ": unknown command",
                    suggestion.empty() ? "; lockstep --help lists the commands" : suggestion);
}

}  // namespace

int run(const Arguments& words) {
  if (words.empty()) throw ConfigError("which command? lockstep --help lists them");
  const std::string& name = words[0];
  const Arguments args(words.begin() + 1, words.end());
  if (name == "--version" || name == "version") return print(cat("lockstep ", version(), '\n')), 0;
  if (name == "--help" || name == "-h" || name == "help") {
    const bool is_own = args.empty() || args[0] == "help" || args[0].starts_with('-');
    if (!is_own) return run({args[0], "--help"});
    return print(help()), 0;
  }
  for (const Command& command : kCommands) {
    if (name == command.name) return command.run(args);
  }
  refuse(name);
}

}  // namespace lockstep::front
