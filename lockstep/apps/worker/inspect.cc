#include "commands.h"
#include "lockstep/apps/commands/plain_commands.h"
#include "lockstep/base/log.h"
#include "lockstep/checkpoint/formats/describe.h"
#include "lockstep/checkpoint/formats/pt_reader.h"
#include "lockstep/config/inputs.h"
#include "lockstep/train/continuation.h"

namespace lockstep::worker {
namespace {

// "conv1.weight  float32 [20, 1, 5, 5]  68c3a30d6f19" or "epoch  4", a line for each leaf.
std::string table(const nlohmann::ordered_json& leaves) {
  size_t width = 0;
  for (const auto& [path, leaf] : leaves.items()) width = std::max(width, path.size());
  std::string text;
  for (const auto& [path, leaf] : leaves.items()) {
    text += path + std::string(width - path.size() + 2, ' ');
    if (leaf.contains("value")) {
      text += leaf["value"].dump();
    } else {
      text += cat(leaf["dtype"].get<std::string>(), ' ', leaf["shape"].dump(), "  ",
                  leaf["sha256"].get<std::string>().substr(0, 12));
    }
    text += '\n';
  }
  return text;
}

}  // namespace

int inspect(const Arguments& args) {
  apps::Command<apps::InspectOptions> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  const apps::InspectOptions& options = command.options();
  config::require_there("inspect", options.file);
  const auto [file, warnings] = train::find_any_checkpoint("inspect", options.file);
  for (const auto& warning : warnings) Logger::from_environment("").warning(warning);
  const auto leaves = checkpoint::describe(checkpoint::read_pt(file));
  if (options.json) {
    print(leaves.dump(1) + '\n');
  } else {
    print((file == options.file ? "" : file + "\n\n") + table(leaves));
  }
  return 0;
}

}  // namespace lockstep::worker
