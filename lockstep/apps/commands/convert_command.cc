#include "lockstep/apps/commands/convert_command.h"

#include "lockstep/base/error.h"
#include "lockstep/config/inputs.h"

namespace lockstep::apps {

std::string ConvertCommand::help(const std::string& rows) {
  return cat(R"(Usage: lockstep convert IN OUT [options]

Writes the checkpoint IN, of any format that is read, as OUT: .pt or .pth, which torch.load(weights_only=True) reads, or
.safetensors, or .pdparams, which paddle.load reads. IN may be a folder, as inspect takes it. A .safetensors or .pdparams
gets the model's weights alone, for it has no place for more; what is left out is named. Between Paddle and PyTorch the
weights of Linear layers are transposed.
)",
             rows, R"(
Examples:
  lockstep convert runs/mnist-1 lenet.safetensors
  lockstep convert lightning.ckpt resnet.pt --weights --strip-prefix model.
)");
}

void ConvertCommand::declare(config::OptionSet& options) {
  using enum config::Effect;
  options.section("Options");
  options.subject("in", &in, kNone);
  options.subject("out", &out, kNone);
  options.flag("weights", "the model's weights alone, also in a .pt", &weights, kNone);
  options.flag("ignore-unknown", "leave out objects of unknown classes (nothing in a file is called)", &ignore_unknown,
               kNone);
  options.text("strip-prefix", "TEXT", "drop it from the front of the names of weights (module., model.)",
               &strip_prefix, kNone);
}

void ConvertCommand::take(const config::Given& line) {
  if (line.words.size() != 2) {
    throw ConfigError("convert: expected two words, IN and OUT: a checkpoint, and the file to write; ",
                      "convert --help says more");
  }
  in = line.words[0];
  out = line.words[1];
  config::require_there("convert", in);
  if (to_safetensors() || to_paddle() || out.ends_with(".pt") || out.ends_with(".pth")) return;
  throw ConfigError("convert: ", out, ": expected a name that ends in .pt, .pth, .safetensors or .pdparams");
}

}  // namespace lockstep::apps
