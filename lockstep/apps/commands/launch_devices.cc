#include "lockstep/apps/commands/launch_devices.h"

#include <algorithm>

#include "lockstep/apps/commands/launch_values.h"
#include "lockstep/base/error.h"
#include "lockstep/config/values.h"

namespace lockstep::apps {
namespace {

struct Asked {
  std::string flag, list;
};

Asked asked_devices(const LaunchOptions& options) {
  Asked asked;
  for (const auto& [flag, list] : {Asked{"devices", options.devices}, Asked{"gpus", options.gpus},
                                   Asked{"selected-gpus", options.selected_gpus}}) {
    if (list.empty()) continue;
    if (!asked.list.empty()) {
      throw ConfigError("--", asked.flag, ' ', asked.list, " and --", flag, ' ', list,
                        ": they say the same; leave one of them out");
    }
    asked = {flag, list};
  }
  return asked;
}

std::vector<std::string> visible_names(const std::optional<std::string>& variable, int gpus) {
  if (variable && gpus > 0) return read_words("gpus", *variable);
  std::vector<std::string> names;
  for (int gpu = 0; gpu < gpus; ++gpu) names.push_back(std::to_string(gpu));
  return names;
}

}  // namespace

Devices choose_devices(const LaunchOptions& options, const LaunchMachine& machine) {
  if (options.style != LaunchStyle::kPaddle) return {};
  const Asked asked = asked_devices(options);
  const int gpus = machine.gpus();
  if (asked.list.empty()) return {.count = std::max(gpus, 0), .on_cpu = gpus == 0, .visible = {}, .flag = ""};
  const auto names = read_words(asked.flag, asked.list);
  Devices devices{static_cast<int>(names.size()), gpus == 0, {}, cat("--", asked.flag, ' ', asked.list)};
  const auto variable = machine.variables("CUDA_VISIBLE_DEVICES");
  if (gpus == 0 && asked.flag == "devices") return devices;
  const auto visible = visible_names(variable, gpus);
  for (const auto& name : names) {
    if (std::find(visible.begin(), visible.end(), name) != visible.end()) continue;
    const std::string seen =
        visible.empty() ? "none is" : cat(config::joined(visible, ","), visible.size() == 1 ? " is" : " are");
    const std::string why = variable ? cat(" (CUDA_VISIBLE_DEVICES=", *variable, ")") : "";
    throw ConfigError(devices.flag, ": GPU ", name, " is not visible; ", seen, why, "; ",
                      visible.empty() ? cat("type --devices ", asked.list, " to run on the CPU")
                                      : cat("type --", asked.flag, ' ', config::joined(visible, ",")));
  }
  devices.visible = names;
  return devices;
}

void check_devices(const Devices& devices, int nproc) {
  if (devices.flag.empty() || nproc <= devices.count) return;
  throw ConfigError(devices.flag, ": these are ", devices.count, ", for ", nproc, " processes; name ", nproc,
                    " or type --nproc_per_node=", devices.count);
}

}  // namespace lockstep::apps
