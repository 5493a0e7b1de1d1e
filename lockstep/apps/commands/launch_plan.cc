#include "lockstep/apps/commands/launch_plan.h"

#include <algorithm>

#include "lockstep/apps/commands/launch_devices.h"
#include "lockstep/apps/commands/launch_nodes.h"
#include "lockstep/apps/commands/launch_values.h"
#include "lockstep/base/board.h"
#include "lockstep/base/error.h"
#include "lockstep/base/split_list.h"
#include "lockstep/config/values.h"

namespace lockstep::apps {
namespace {

using launch::LogLayout;

bool is_python_script(const std::string& program) { return program.ends_with(".py"); }

// The words that start the program, and the place among them for an option of torch.distributed.launch's.
void plan_program(const LaunchOptions& options, const LaunchMachine& machine, LaunchPlan& plan) {
  if (options.module && options.no_python) {
    throw ConfigError("--module and --no-python: a module is run by Python; leave one of them out");
  }
  if (options.use_env && options.local_rank) {
    throw ConfigError("--use-env and ", options.local_rank_as,
                      ": the local rank is in the environment, or an argument; leave one of them out");
  }
  const std::string python = machine.variables("PYTHON_EXEC").value_or("python3");
  plan.command = options.program;
  plan.layout.option_place = 1;
  const bool by_python =
      options.module || options.run_path || (!options.no_python && is_python_script(plan.command[0]));
  if (by_python) {
    std::vector<std::string> before = {python};
    if (options.module) before.emplace_back("-m");
    plan.layout.option_place = before.size() + 1;
    plan.command.insert(plan.command.begin(), before.begin(), before.end());
  }
  if (options.local_rank) plan.layout.local_rank_option = options.local_rank_as;
}

// "--nproc-per-node" where that or its variable was given.
int count_processes(const LaunchOptions& options, const LaunchMachine& machine, int devices) {
  if (!options.nproc.empty() && !options.nproc_per_node.empty() && options.has("nproc") &&
      options.has("nproc-per-node")) {
    throw ConfigError("--nproc ", options.nproc, " and --nproc-per-node ", options.nproc_per_node,
                      ": they say the same; leave one of them out");
  }
  const bool is_torchs = options.nproc.empty();
  const std::string flag = is_torchs ? "nproc-per-node" : "nproc";
  const std::string& text = is_torchs ? options.nproc_per_node : options.nproc;
  if (text.empty()) return std::max(devices, 1);
  int count = 0;
  if (text == "auto" || text == "gpu") count = machine.gpus();
  if (text == "gpu" && count == 0) {
    throw ConfigError("--", flag, " gpu: no GPU is visible here; type --", flag, " cpu, or a number");
  }
  if (text == "cpu" || (text == "auto" && count == 0)) count = std::min(machine.cores, kMaxLocalRanks);
  if (count == 0) {
    if (text.find_first_not_of("0123456789") != std::string::npos) {
      throw ConfigError("--", flag, ' ', text, ": expected a number from 1 to ", kMaxLocalRanks, ", auto, cpu or gpu");
    }
    count = static_cast<int>(config::read_whole(flag, text, 1, kMaxLocalRanks));
  }
  return count;
}

void plan_logs(const LaunchOptions& options, LaunchPlan& plan) {
  LogLayout& logs = plan.layout.logs;
  logs.folder = options.log_dir;
  logs.redirected = read_streams("redirects", options.redirects, plan.nproc);
  logs.teed = read_streams("tee", options.tee, plan.nproc);
  logs.stdout_filters = read_texts(options.stdout_filters);
  logs.stderr_filters = read_texts(options.stderr_filters);
  if (!options.local_ranks_filter.empty()) {
    logs.shown = read_numbers("local-ranks-filter", options.local_ranks_filter, plan.nproc);
  }
  const auto says_something = [](const auto& streams) {
    return std::any_of(streams.begin(), streams.end(),
                       [](const auto& each) { return each.second != launch::kNoStream; });
  };
  const bool teed = says_something(logs.teed);
  if ((!logs.stdout_filters.empty() || !logs.stderr_filters.empty()) && !teed) {
    throw ConfigError("--duplicate-std", logs.stdout_filters.empty() ? "err" : "out",
                      "-filters: they look at lines that --tee copies; add --tee 3");
  }
  if (options.style == LaunchStyle::kPaddle) {
    logs.kind = LogLayout::Kind::kWorker;
  } else if (teed || says_something(logs.redirected)) {
    logs.kind = LogLayout::Kind::kTorchrun;
  }
}

// The CPUs of each process by --numa-binding: of the GPU that has its local rank as its number, as torchrun has it.
std::vector<std::vector<int>> bind_cpus(const LaunchOptions& options, const LaunchMachine& machine, int nproc) {
  constexpr std::pair<std::string_view, CpuBinding> kModes[] = {{"node", CpuBinding::kNode},
                                                                {"socket", CpuBinding::kSocket},
                                                                {"exclusive", CpuBinding::kExclusive},
                                                                {"core-complex", CpuBinding::kCoreComplex}};
  for (const auto& [name, binding] : kModes) {
    if (options.numa_binding != name) continue;
    std::vector<int> nodes = machine.gpu_nodes();
    const auto gpus = static_cast<int>(nodes.size());
    if (gpus > 0 && gpus < nproc) {
      throw ConfigError("--numa-binding ", name, ": ", nproc, " processes, and ", gpus,
                        gpus == 1 ? " GPU is" : " GPUs are", " visible; type --nproc-per-node ", gpus,
                        " or fewer, or hide them from processes on the CPU (CUDA_VISIBLE_DEVICES=)");
    }
    return machine.topology().bound_to(binding, nodes, nproc);
  }
  return {};
}

// With --virtual-local-rank each process sees one GPU of those that the user lets be seen.
void need_a_gpu_each(const Devices& devices, const LaunchMachine& machine, int nproc) {
  const auto listed = machine.variables("CUDA_VISIBLE_DEVICES");
  if (!devices.visible.empty() || !listed) return;
  const auto visible = std::ssize(split_list(*listed));
  if (visible == 0 || visible >= nproc) return;
  throw ConfigError("--virtual-local-rank: ", nproc, " processes need a GPU each, and CUDA_VISIBLE_DEVICES=", *listed,
                    " lists ", visible, "; type --nproc-per-node ", visible, " or fewer");
}

std::vector<std::string> flags_without_effect(const LaunchOptions& options) {
  std::vector<std::string> flags;
  if (options.has("monitor-interval")) flags.push_back(cat("--monitor-interval ", options.monitor_interval));
  if (options.has("start-method")) flags.push_back("--start-method " + options.start_method);
  if (options.has("event-log-handler")) flags.push_back("--event-log-handler " + options.event_log_handler);
  if (options.has("logs-specs")) flags.push_back("--logs-specs " + options.logs_specs);
  if (options.has("run-mode")) flags.push_back("--run-mode " + options.run_mode);
  if (options.has("log-level")) flags.push_back("--log-level " + options.log_level);
  if (options.has("elastic-level")) flags.push_back("--elastic-level " + options.elastic_level);
  if (options.has("elastic-timeout")) flags.push_back("--elastic-timeout " + options.elastic_timeout);
  return flags;
}

}  // namespace

LaunchPlan plan_launch(const LaunchOptions& options, const LaunchMachine& machine) {
  LaunchPlan plan;
  plan.max_restarts = options.max_restarts;
  plan.layout.role = options.role;
  plan.layout.signals = options.signals;
  check_signals(options.signals);
  plan.layout.virtual_local_rank = options.virtual_local_rank;
  plan.without_effect = flags_without_effect(options);
  plan_program(options, machine, plan);
  const Devices devices = choose_devices(options, machine);
  plan.nproc = count_processes(options, machine, devices.count);
  check_devices(devices, plan.nproc);
  plan.layout.devices = devices.visible;
  plan.layout.on_cpu = devices.on_cpu;
  if (options.virtual_local_rank) need_a_gpu_each(devices, machine, plan.nproc);
  plan.cpus_of = [options, machine](int nproc) { return bind_cpus(options, machine, nproc); };
  plan.layout.cpus = plan.cpus_of(plan.nproc);
  plan_logs(options, plan);
  plan_nodes(options, machine, plan);
  return plan;
}

}  // namespace lockstep::apps
