#include "lockstep/apps/commands/convert_command.h"

#include "lockstep/base/error.h"
#include "lockstep/config/inputs.h"

namespace lockstep::apps {

std::string ConvertCommand::help(const std::string& rows) {
  return cat(R"(Usage: lockstep convert IN OUT [options]

Writes the checkpoint IN, of any format that is read, as OUT: .pt or .pth, which torch.load(weights_only=True) reads, or
.safetensors, or .pdparams, which paddle.load reads. IN may be a folder, as inspect takes it. A .safetensors or .pdparams
gets the model's weights alone, for it has no place for more; what is left out is named. Between Paddle and PyTorch the
weights of Linear layers are transposed. A .pdopt has the optimizer's state, under the names that --names tells.
)",
             rows, R"(
Examples:
  lockstep convert runs/mnist-1 lenet.safetensors
  lockstep convert lightning.ckpt resnet.pt --weights --strip-prefix model.
  lockstep convert net.pdparams net.pt --optimizer net.pdopt     # {model, optimizer}, for torch.load
  lockstep convert runs/mnist-1 lenet.pdopt --names theirs.pdparams
)");
}

void ConvertCommand::declare(config::OptionSet& options) {
  using enum config::Effect;
  options.section("Options");
  options.subject("in", &in, kNone);
  options.subject("out", &out, kNone);
  options.flag("weights", "the model's weights alone, also in a .pt", &weights, kNone);
  options.flag("average", "of the weights alone their average (ema, state_dict_ema, model_ema)", &average, kNone);
  options.flag("ignore-unknown", "leave out objects of unknown classes (nothing in a file is called)", &ignore_unknown,
               kNone);
  options.text("strip-prefix", "TEXT", "take the names of weights that begin with it, without it (module., model.)",
               &strip_prefix, kNone);
  options.text("optimizer", "FILE", "the .pdopt beside IN, a .pdparams; OUT, a .pt, gets both", &optimizer, kNone);
  options.number("beta1", "X", "the betas of that .pdopt's Adam (0.9, 0.999), which tell its steps", &beta1, 0, 1,
                 kNone);
  options.number("beta2", "X", "", &beta2, 0, 1, kNone);
  options.text("names", "FILE", "a .pdparams of the network in Paddle, whose names OUT, a .pdopt, gets", &names, kNone);
}

void ConvertCommand::take(const config::Given& line) {
  if (line.words.size() != 2) {
    throw ConfigError("convert: expected two words, IN and OUT: a checkpoint, and the file to write; ",
                      "convert --help says more");
  }
  in = line.words[0];
  out = line.words[1];
  config::require_there("convert", in);
  if (!to_safetensors() && !to_paddle() && !to_paddles_optimizer() && !to_pt()) {
    throw ConfigError("convert: ", out, ": expected a name that ends in .pt, .pth, .safetensors, .pdparams or .pdopt");
  }
  if (to_paddles_optimizer() == names.empty()) {
    throw ConfigError("convert: ", out,
                      names.empty() ? ": needs --names, a .pdparams that paddle.save has written of the "
                                      "same network: a .pdopt goes by Paddle's own names"
                                    : ": --names goes with a .pdopt");
  }
  if (!optimizer.empty() && !to_pt()) throw ConfigError("convert: ", out, ": --optimizer goes with a .pt");
  if (optimizer.empty() && (beta1 || beta2)) throw ConfigError("convert: --beta1 and --beta2 go with --optimizer");
  if (average && to_pt() && !weights) throw ConfigError("convert: --average goes with --weights");
  const bool goes_with_more = weights || average || !strip_prefix.empty();
  if ((to_paddles_optimizer() || !optimizer.empty()) && goes_with_more) {
    throw ConfigError("convert: --weights, --average and --strip-prefix don't go with an optimizer's state");
  }
  if (!optimizer.empty()) config::require_there("convert", optimizer);
  if (!names.empty()) config::require_there("convert", names);
}

}  // namespace lockstep::apps
