// launch: any program as the ranks of one node, after the launchers of all nodes have agreed on the numbers.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "commands.h"
#include "elastic_launch.h"
#include "lockstep/apps/commands/launch_options.h"
#include "lockstep/apps/commands/launch_plan.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/base/log.h"
#include "lockstep/config/inputs.h"
#include "lockstep/launch/environment.h"
#include "lockstep/launch/launcher.h"
#include "lockstep/launch/process.h"
#include "lockstep/parallel/options/lanes.h"

namespace lockstep::front {
namespace {

using launch::LogLayout;

// The launch's own folder in --log-dir, as torchrun makes one; without --log-dir among temporary files.
std::string make_run_folder(const LogLayout& logs, std::string run_id) {
  for (char& each : run_id) {
    if (each == '/') each = '_';
  }
  const std::string base = logs.folder.empty() ? env("TMPDIR").value_or("/tmp") : logs.folder;
  std::string name = cat(base, '/', logs.folder.empty() ? "lockstep_" : "", run_id, "_XXXXXX");
  if (mkdtemp(name.data()) == nullptr)
    throw IoError("--log-dir: can't make a folder in ", base, ": ", errno_text(errno));
  return name;
}

void prepare_logs(launch::RankLayout& layout) {
  LogLayout& logs = layout.logs;
  if (!logs.folder.empty()) {
    config::require_folder_place("--log-dir", logs.folder, "; choose another folder");
    std::error_code error;
    std::filesystem::create_directories(logs.folder, error);
    if (error) throw IoError("--log-dir ", logs.folder, ": ", errno_text(error.value()));
  }
  if (logs.kind != LogLayout::Kind::kTorchrun) return;
  const bool named = !logs.folder.empty();
  logs.folder = make_run_folder(logs, layout.run_id);
  if (!named) write_all(STDERR_FILENO, cat("logs: ", logs.folder, '\n'));
}

// The launchers of all nodes meet; none starts a rank before all have come.
void meet_other_nodes(apps::LaunchPlan& plan) {
  if (!plan.handshake) return;
  launch::NodeHandshake& handshake = *plan.handshake;
  handshake.ports = free_ports(plan.nproc);
  handshake.say = [](const std::string& line) { write_all(STDERR_FILENO, line + '\n'); };
  const launch::NodeTable table = shake_hands(handshake);
  plan.layout.node = table.node;
  plan.layout.first_rank = table.first_rank;
  plan.layout.world_size = table.world_size;
  if (plan.layout.endpoints.empty()) plan.layout.endpoints = table.endpoints;
  if (std::ssize(plan.layout.endpoints) == table.world_size) return;
  throw ConfigError("--ips: the nodes have ", table.world_size, " processes together, and ", plan.nproc,
                    " of each were expected; give all nodes the same number");
}

void find_script(const apps::LaunchPlan& plan, const apps::LaunchOptions& options) {
  const std::string& script = options.program[0];
  const bool is_script = plan.command[0] != script && !options.module;
  if (is_script && access(script.c_str(), R_OK) != 0) throw ConfigError("can't run ", script, ": ", errno_text(errno));
}

}  // namespace

int launch(const Arguments& args) {
  apps::LaunchCommand line;
  const auto variable = [](const char* name) { return env(name); };
  if (const auto help = line.read(args, variable)) return print(*help), 0;
  const apps::LaunchOptions& options = line.options();
  apps::LaunchPlan plan = apps::plan_launch(options, {.cores = usable_cores(), .variables = variable});
  for (const auto& flag : plan.without_effect) {
    Logger::from_environment("").debug(cat("launch: ", flag, ": accepted, and without effect here"));
  }
  find_script(plan, options);
  plan.command[0] = launch::find_program(plan.command[0]);
  meet_other_nodes(plan);
  const bool alone = plan.layout.nodes == 1 && !plan.elastic;
  if (alone && plan.layout.master_port > 0 && !is_free_port(plan.layout.master_port)) {
    throw ConfigError("--master-port ", plan.layout.master_port,
                      ": somebody listens on that port of this machine; choose another, or leave it out");
  }
  prepare_logs(plan.layout);
  const launch::RunSpec spec{
      .command = plan.command,
      .max_restarts = plan.max_restarts,
      .nproc = plan.nproc,
      .threads = parallel::threads_or_default(options.threads, usable_cores(), plan.nproc),
      .keep_threads = options.threads == 0,
      .log_dir = plan.layout.logs.kind == LogLayout::Kind::kTorchrun ? "" : plan.layout.logs.folder,
      .error_dir = plan.layout.logs.folder.empty() ? "" : plan.layout.logs.folder + "/errors",
      .stop_by = launch::StopBy::kSignal,
      .saves = checkpoint::Keeper::Options{},  // of ranks that train by lockstep; others know nothing of it
      .timeout_ns = static_cast<int64_t>(options.timeout * 1e9),
      .grace_ns = static_cast<int64_t>(options.grace * 1e9),
      .lines_at_once = true,
      .layout = plan.layout};
  return plan.elastic ? launch_elastic(plan, spec) : launch::Launcher(spec).run();
}

}  // namespace lockstep::front
