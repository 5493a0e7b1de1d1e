#include "lockstep/apps/commands/launch_line.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/config/values.h"

namespace lockstep::apps {
namespace {

struct Short {
  char letter;
  const char* option;
};
constexpr Short kShorts[] = {{'m', "module"}, {'r', "redirects"}, {'t', "tee"}};

using Shapes = std::span<const config::OptionShape>;

const config::OptionShape* find(Shapes shapes, std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  const auto found = std::find_if(shapes.begin(), shapes.end(), [&](const auto& shape) { return shape.name == name; });
  return found == shapes.end() ? nullptr : &*found;
}

[[noreturn]] void refuse_unknown(const std::string& name, Shapes shapes) {
  std::vector<std::string> known = {"--help"};
  for (const auto& shape : shapes) known.push_back("--" + shape.name);
  std::string dashed = name;
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  const std::string suggestion = config::did_you_mean(dashed, known);
  throw ConfigError(name, ": unknown option", suggestion.empty() ? "; launch --help lists the options" : suggestion);
}

// A shell makes several words of "--nnodes = 2".
void refuse_blanks(const std::vector<std::string>& args, size_t at) {
  const std::string& word = args[at];
  const bool has_next = at + 1 < args.size();
  std::string value;
  if (word.ends_with("=")) {
    value = has_next ? args[at + 1] : "";
  } else if (has_next && args[at + 1] == "=") {
    value = at + 2 < args.size() ? args[at + 2] : "";
  } else if (has_next && word.find('=') == std::string::npos && args[at + 1].starts_with("=")) {
    value = args[at + 1].substr(1);
  } else {
    return;
  }
  const std::string name = word.substr(0, word.find('='));
  throw ConfigError(name, ": there is a blank beside its \"=\"; type ", name, "=", value.empty() ? "VALUE" : value);
}

// The option of a word such as "-m", "-r3" or "--nnodes=2", respelled, and whether its value is the next word.
struct Option {
  std::string word;
  bool value_follows = false;
};

Option short_option(const std::string& word, Shapes shapes) {
  const auto found =
      std::find_if(std::begin(kShorts), std::end(kShorts), [&](const Short& each) { return each.letter == word[1]; });
  if (word == "-h") return {"--help"};
  if (found == std::end(kShorts)) refuse_unknown(word, shapes);
  const std::string name = std::string("--") + found->option;
  if (find(shapes, found->option)->form == config::OptionForm::kFlag) {
    if (word.size() > 2) refuse_unknown(word, shapes);
    return {name};
  }
  const std::string value = word.substr(word.size() > 2 && word[2] == '=' ? 3 : 2);
  return value.empty() ? Option{name, true} : Option{name + '=' + value};
}

Option long_option(const std::string& word, Shapes shapes) {
  const size_t end = std::min(word.find('='), word.size());
  if (word == "--help") return {word};
  const auto* const shape = find(shapes, word.substr(2, end - 2));
  if (shape == nullptr) refuse_unknown(word.substr(0, end), shapes);
  return {"--" + shape->name + word.substr(end), shape->form == config::OptionForm::kValue && end == word.size()};
}

}  // namespace

LaunchLine split_launch_line(const std::vector<std::string>& args, Shapes shapes) {
  LaunchLine line;
  size_t at = 0;
  for (; at < args.size(); ++at) {
    const std::string& word = args[at];
    if (word.size() < 2 || word[0] != '-' || word == "--") break;
    const bool is_long = word.starts_with("--");
    const Option option = is_long ? long_option(word, shapes) : short_option(word, shapes);
    if (is_long) refuse_blanks(args, at);
    if (option.word.starts_with("--local-rank") && !option.word.starts_with("--local-ranks")) {
      line.local_rank_as = word.substr(0, word.find('='));
    }
    line.options.push_back(option.word);
    if (option.value_follows && at + 1 < args.size()) line.options.back() += '=' + args[++at];
  }
  if (at < args.size() && args[at] == "--") ++at;
  line.program.assign(args.begin() + static_cast<ptrdiff_t>(std::min(at, args.size())), args.end());
  return line;
}

std::string launch_help(const std::string& rows) {
  return cat(R"(Usage: lockstep launch [options] PROGRAM ARGS…

Starts PROGRAM once a rank, and ends all when one fails. PROGRAM is any executable, a .py file (run by python3), or with
-m a Python module. It takes the command lines of torchrun 2.11 and of paddle.distributed.launch, but that nodes which come
and go meet at etcd, and sets the variables of both: RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, …, PADDLE_TRAINER_ID, … and CUDA_VISIBLE_DEVICES by --gpus.
)",
             rows, R"(
Examples:
  lockstep launch --nproc 4 train.py --epochs 3
  lockstep launch --nnodes 2 --node-rank 0 --master-addr node1 --master-port 29500 --nproc-per-node 4 train.py
  lockstep launch --devices 0,1 --log_dir logs train.py
docs/launching.md says more.
)");
}

}  // namespace lockstep::apps
