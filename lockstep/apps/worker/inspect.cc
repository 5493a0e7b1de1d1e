#include "commands.h"
#include "lockstep/apps/commands/plain_commands.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/shown.h"
#include "lockstep/checkpoint/contents/describe.h"
#include "lockstep/checkpoint/contents/tree_text.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/config/inputs.h"
#include "lockstep/train/continuation.h"

namespace lockstep::worker {
int inspect(const Arguments& args) {
  apps::Command<apps::InspectOptions> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  const apps::InspectOptions& options = command.options();
  config::require_there("inspect", options.file);
  const auto [file, warnings] =
      train::find_any_checkpoint("inspect", options.file, {.ignore_unknown = options.ignore_unknown});
  for (const auto& warning : warnings) Logger::from_environment("").warning(warning);
  const checkpoint::Value value = checkpoint::read_checkpoint(file, {.ignore_unknown = options.ignore_unknown});
  const checkpoint::PathChoice only(options.only);
  const auto leaves = options.json ? checkpoint::describe(value, {.statistics = options.stats, .only = only}) : nullptr;
  const std::string text = options.json ? "" : checkpoint::tree_text(value, only);
  if (!options.only.empty() && (options.json ? leaves.empty() : text.empty())) {
    throw ConfigError("--only ", options.only, ": ", shown(file),
                      " has no such path; without --only all are listed, and a pattern's * stands for any letters");
  }
  // Names in a file are not always UTF-8.
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  print(options.json ? leaves.dump(1, ' ', false, kReplace) + '\n'
                     : (file == options.file ? "" : file + "\n\n") + text);
  return 0;
}

}  // namespace lockstep::worker
