#include "commands.h"
#include "lockstep/apps/commands/convert_command.h"
#include "lockstep/base/log.h"
#include "lockstep/checkpoint/conversion.h"
#include "lockstep/checkpoint/formats/opaque.h"
#include "lockstep/checkpoint/formats/paddle_reader.h"
#include "lockstep/checkpoint/formats/paddle_writer.h"
#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/safetensors_writer.h"
#include "lockstep/checkpoint/formats/stored_tensor.h"
#include "lockstep/train/continuation.h"

namespace lockstep::worker {
namespace {

void write(const checkpoint::Dict& value, const apps::ConvertCommand& options) {
  if (options.to_safetensors()) return checkpoint::write_safetensors(value, options.out);
  checkpoint::verify_stored(value, checkpoint::kEverything);  // into memory, from which it is written
  options.to_paddle() ? checkpoint::write_paddle(value, options.out) : checkpoint::write_pt(value, options.out);
}

}  // namespace

int convert(const Arguments& args) {
  apps::Command<apps::ConvertCommand> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  const apps::ConvertCommand& options = command.options();
  const auto [file, warnings] = train::find_any_checkpoint("convert", options.in);
  for (const auto& warning : warnings) Logger::from_environment("").warning(warning);
  const bool is_paddle = checkpoint::is_paddle_file(file);
  const checkpoint::Value opened = checkpoint::open_checkpoint(file, {.ignore_unknown = options.ignore_unknown});
  const checkpoint::Value root = checkpoint::without_opaque(opened);
  const bool weights_alone = options.weights || options.to_safetensors() || options.to_paddle();
  const auto [value, notes] = checkpoint::convert(root, {.file = file,
                                                         .weights_alone = weights_alone,
                                                         .strip_prefix = options.strip_prefix,
                                                         .from_paddle = is_paddle,
                                                         .to_paddle = options.to_paddle()});
  write(value, options);
  std::string text = cat(options.out, ": written from ", file, '\n');
  for (const auto& note : notes) text += cat("  ", note, '\n');
  print(text);
  return 0;
}

}  // namespace lockstep::worker
