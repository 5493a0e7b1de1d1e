#include "lockstep/train/options/device_option.h"

#include "lockstep/base/error.h"

namespace lockstep::train {
namespace {

constexpr size_t kMostDigits = 3;  // of a GPU's number

std::string counted(int gpus) { return cat(gpus, gpus == 1 ? " GPU" : " GPUs"); }

[[noreturn]] void throw_too_few(const DeviceChoice& device, int ranks, int visible) {
  throw ConfigError("--device ", write_device(device), ": ", ranks, " ranks on this node and ", counted(visible),
                    " that they can use (nvidia-smi, CUDA_VISIBLE_DEVICES); start fewer ranks, or train with --backend "
                    "gloo, with which ranks may share a GPU");
}

}  // namespace

DeviceChoice read_device(const std::string& name, const std::string& text) {
  const std::string prefix = cat(config::word_of(DeviceKind::kCuda), ':');
  const std::string number = text.substr(0, prefix.size()) == prefix ? text.substr(prefix.size()) : "";
  const bool is_number = number.size() <= kMostDigits && number.find_first_not_of("0123456789") == std::string::npos;
  if (!number.empty() && is_number) return {DeviceKind::kCuda, std::stoi(number)};
  for (const auto& each : words(DeviceKind{})) {
    if (text == each.word) return {each.value};
  }
  throw ConfigError("--", name, ' ', text, ": expected cpu, cuda, or cuda:N for one GPU, as cuda:0");
}

std::string write_device(const DeviceChoice& device) {
  return cat(config::word_of(device.kind), device.gpu == DeviceChoice::kOwn ? "" : cat(':', device.gpu));
}

void DeviceChoice::declare(config::OptionSet& options, config::Effect effect) {
  options.form("device", "cpu|cuda|cuda:N", "where to compute (cuda: a GPU a rank; cuda:N: that one)", this,
               read_device, write_device, effect);
}

void throw_no_gpu(const std::string& asked) {
  throw ConfigError(asked, ": no GPU can be used here; lockstep doctor says more. Leave ",
                    asked.substr(0, asked.find(' ')), " out for the CPU");
}

int choose_gpu(const DeviceChoice& device, const NodeRanks& ranks, int visible) {
  if (visible == 0) throw_no_gpu("--device " + write_device(device));
  if (device.gpu >= visible) {
    throw ConfigError("--device ", write_device(device), ": ", counted(visible), " can be used here (nvidia-smi, ",
                      "CUDA_VISIBLE_DEVICES), and numbers begin with 0");
  }
  if (device.gpu != DeviceChoice::kOwn) {
    if (ranks.size == 1 || ranks.may_share) return device.gpu;
    throw ConfigError(
        "--device ", write_device(device), ": is for one rank a node, and this one has ", ranks.size,
        "; use --device cuda, which gives each rank a GPU, or train with --backend gloo to share this one");
  }
  if (ranks.given >= visible) {
    throw ConfigError("FLAGS_selected_gpus=", ranks.given, ": ", counted(visible),
                      " can be used here, and numbers begin with 0; correct --devices of the launcher");
  }
  if (ranks.given >= 0) return ranks.given;
  if (const auto own = own_gpu(ranks.local_rank, ranks.size, visible)) return *own;
  if (ranks.may_share) return ranks.local_rank % visible;
  throw_too_few(device, ranks.size, visible);
}

void check_gpus(const DeviceChoice& device, int ranks, bool may_share, CountGpus count) {
  if (!device.on_gpu() || ranks == 1) return;
  const int visible = count();
  choose_gpu(device, {.local_rank = 0, .size = ranks, .may_share = may_share}, visible);
  // They all will see the same GPUs, also if that is a single one.
  if (visible < ranks && !may_share) throw_too_few(device, ranks, visible);
}

}  // namespace lockstep::train
