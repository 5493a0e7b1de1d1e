#include <string>
#include <vector>

#include "commands.h"
#include "lockstep/apps/commands/convert_command.h"
#include "lockstep/base/log.h"
#include "lockstep/base/shown.h"
#include "lockstep/checkpoint/conversion.h"
#include "lockstep/checkpoint/formats/opaque.h"
#include "lockstep/checkpoint/formats/paddle_reader.h"
#include "lockstep/checkpoint/formats/paddle_writer.h"
#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/safetensors_writer.h"
#include "lockstep/checkpoint/formats/stored_tensor.h"
#include "lockstep/config/values.h"
#include "lockstep/train/continuation.h"

namespace lockstep::worker {
namespace {

void write(const checkpoint::Dict& value, const apps::ConvertCommand& options) {
  if (options.to_safetensors()) return checkpoint::write_safetensors(value, options.out);
  checkpoint::verify_stored(value, checkpoint::kEverything);  // into memory, from which it is written
  options.to_pt() ? checkpoint::write_pt(value, options.out) : checkpoint::write_paddle(value, options.out);
}

// Notes what --ignore-unknown leaves out.
checkpoint::Value opened(const std::string& file, const apps::ConvertCommand& options,
                         std::vector<std::string>& notes) {
  const checkpoint::Value all = checkpoint::open_checkpoint(file, {.ignore_unknown = options.ignore_unknown});
  std::vector<std::string> paths = checkpoint::opaque_paths(all);
  for (std::string& path : paths) path = shown(path);
  if (!paths.empty()) notes.push_back("left out, for its class is unknown: " + config::joined(paths, ", "));
  return checkpoint::without_opaque(all);
}

// A file that must be one of Paddle's.
checkpoint::Value opened_paddle(const std::string& file, const apps::ConvertCommand& options,
                                std::vector<std::string>& notes) {
  if (!checkpoint::is_paddle_file(file)) throw DataError(file, ": is no file of paddle.save");
  return opened(file, options, notes);
}

checkpoint::Converted converted(const std::string& file, const apps::ConvertCommand& options,
                                std::vector<std::string>& notes) {
  if (!options.optimizer.empty()) {
    const checkpoint::Value params = opened_paddle(file, options, notes),
                            optimizer = opened_paddle(options.optimizer, options, notes);
    checkpoint::verify_stored(optimizer, checkpoint::kEverything);
    return checkpoint::from_paddle_files(params, optimizer, {file, options.optimizer},
                                         {options.beta1.value_or(0.9), options.beta2.value_or(0.999)});
  }
  if (options.to_paddles_optimizer()) {
    const checkpoint::Value root = opened(file, options, notes), names = opened_paddle(options.names, options, notes);
    checkpoint::verify_stored(root, checkpoint::kEverything);
    return checkpoint::to_paddle_optimizer(root, file, names, options.names);
  }
  const bool is_paddle = checkpoint::is_paddle_file(file);
  return checkpoint::convert(opened(file, options, notes),
                             {.file = file,
                              .weights_alone = options.weights || options.to_safetensors() || options.to_paddle(),
                              .average = options.average,
                              .strip_prefix = options.strip_prefix,
                              .from_paddle = is_paddle,
                              .to_paddle = options.to_paddle()});
}

}  // namespace

int convert(const Arguments& args) {
  apps::Command<apps::ConvertCommand> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  const apps::ConvertCommand& options = command.options();
  const auto [file, warnings] =
      train::find_any_checkpoint("convert", options.in, {.ignore_unknown = options.ignore_unknown});
  for (const auto& warning : warnings) Logger::from_environment("").warning(warning);
  std::vector<std::string> notes;
  const checkpoint::Converted made = converted(file, options, notes);
  write(made.value, options);
  notes.insert(notes.end(), made.notes.begin(), made.notes.end());
  std::string text = cat(options.out, ": written from ", file, '\n');
  for (const auto& note : notes) text += cat("  ", note, '\n');
  print(text);
  return 0;
}

}  // namespace lockstep::worker
