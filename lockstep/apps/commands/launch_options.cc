#include "lockstep/apps/commands/launch_options.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "lockstep/apps/commands/launch_line.h"
#include "lockstep/base/error.h"
#include "lockstep/config/tokenizer.h"

namespace lockstep::apps {
namespace {

using config::Effect::kNone;

constexpr std::string_view kOfTorchrun[] = {"node-rank",
                                            "master-addr",
                                            "master-port",
                                            "rdzv-backend",
                                            "rdzv-endpoint",
                                            "rdzv-id",
                                            "rdzv-conf",
                                            "standalone",
                                            "max-restarts",
                                            "monitor-interval",
                                            "start-method",
                                            "event-log-handler",
                                            "role",
                                            "module",
                                            "no-python",
                                            "run-path",
                                            "redirects",
                                            "tee",
                                            "local-ranks-filter",
                                            "duplicate-stdout-filters",
                                            "duplicate-stderr-filters",
                                            "local-addr",
                                            "logs-specs",
                                            "numa-binding",
                                            "signals-to-handle",
                                            "virtual-local-rank",
                                            "use-env",
                                            "local-rank"};
constexpr std::string_view kOfPaddle[] = {
    "devices", "gpus",   "selected-gpus", "ips",      "host",      "master",        "start-port",     "started-port",
    "rank",    "job-id", "max-restart",   "run-mode", "log-level", "elastic-level", "elastic-timeout"};
constexpr std::string_view kOfBoth[] = {"nproc-per-node", "nnodes", "log-dir"};
// These have no PET_* variable.
constexpr std::string_view kOnLineOnly[] = {"logs-specs", "numa-binding", "use-env", "local-rank"};

// What one calls so is called so by the other.
struct SamePurpose {
  std::string_view torchrun, paddle;
};
constexpr SamePurpose kSamePurpose[] = {{"node-rank", "rank"},     {"master-addr", "master"},
                                        {"master-port", "master"}, {"rdzv-endpoint", "master"},
                                        {"rdzv-id", "job-id"},     {"max-restarts", "max-restart"},
                                        {"local-addr", "host"},    {"virtual-local-rank", "devices"},
                                        {"standalone", "nnodes"}};

template <size_t N>
bool is_among(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Refuses a line that is partly torchrun's and partly Paddle's.
void check_style(const LaunchOptions& options) {
  if (options.style != LaunchStyle::kPaddle) return;
  const auto& given = options.given;
  const auto torchs =
      std::find_if(given.begin(), given.end(), [](const auto& name) { return is_among(kOfTorchrun, name); });
  if (torchs == given.end()) return;
  const auto paddles =
      std::find_if(given.begin(), given.end(), [](const auto& name) { return is_among(kOfPaddle, name); });
  const auto same = std::find_if(std::begin(kSamePurpose), std::end(kSamePurpose),
                                 [&](const SamePurpose& each) { return each.torchrun == *torchs; });
  throw ConfigError("--", *paddles, " is Paddle's and --", *torchs, " is torchrun's; give those of one: ",
                    same == std::end(kSamePurpose) ? cat("leave --", *torchs, " out")
                                                   : cat("--", *torchs, " is --", same->paddle, " there"));
}

// Whether --standalone says it, too: torchrun's goes before the variables as well.
bool is_of_standalone(std::string_view name) { return name == "rdzv-backend" || name == "rdzv-endpoint"; }

// "PET_NPROC_PER_NODE".
std::string variable_of(std::string_view name) {
  std::string variable = cat("PET_", name);
  for (char& each : variable)
    each = each == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(each)));
  return variable;
}

}  // namespace

bool LaunchOptions::has(const std::string& name) const {
  return std::find(given.begin(), given.end(), name) != given.end();
}

void LaunchOptions::declare(config::OptionSet& options) {
  constexpr int kMostNodes = 1 << 16, kMostPort = 65535, kMostRestarts = 1'000'000;
  options.section("Processes");
  options.text("nproc", "N|auto|cpu|gpu", "processes to start; auto: a GPU each, or a core where there is none", &nproc,
               kNone);
  options.number("threads", "N", "OMP_NUM_THREADS, where it is not set; left out: cores ÷ processes", &threads, 1, 1024,
                 kNone);
  options.text("log-dir", "DIR", "keep each process's output in DIR/rank<k>.log (workerlog.<k> with Paddle's flags)",
               &log_dir, kNone);
  options.number("grace", "S", "seconds from a request to stop until processes are killed; left out: none are", &grace,
                 0.0, 1e6, kNone);
  options.number("timeout", "S", "seconds without progress of programs of ours, which ends them (76); left out: none",
                 &timeout, 0.0, 1e6, kNone);
  options.section("torchrun's (dashes or underscores; PET_* variables are defaults)");
  options.text("nproc-per-node", "N|auto|cpu|gpu", "as --nproc", &nproc_per_node, kNone);
  options.text("nnodes", "N", "nodes, each with a launcher of its own; with etcd or c10d MIN:MAX of them", &nnodes,
               kNone);
  options.number("node-rank", "K", "this node's number, 0 … N-1", &node_rank, 0, kMostNodes, kNone);
  options.text("master-addr", "HOST", "a name or an address of node 0", &master_addr, kNone);
  options.number("master-port", "PORT", "a port of node 0; left out: 29500, or a free one on one node", &master_port, 0,
                 kMostPort, kNone);
  options.text("rdzv-backend", "static|c10d|etcd",
               "c10d: the nodes are numbered as they come; etcd: they may go, too (c10d with restarts runs one)",
               &rdzv_backend, kNone);
  options.text("rdzv-endpoint", "HOST:PORT[,…]", "where the nodes meet; etcd's addresses", &rdzv_endpoint, kNone);
  options.text("rdzv-id", "ID", "the job's name; nodes of other jobs are refused", &rdzv_id, kNone);
  options.text("rdzv-conf", "K=V,…",
               "join_timeout, last_call_timeout: seconds; etcd's protocol, cacert, cert, key, user, password",
               &rdzv_conf, kNone);
  options.flag("standalone", "one node, on a free port", &standalone, kNone);
  options.number("max-restarts", "N", "restarts after a failure", &max_restarts, 0, kMostRestarts, kNone);
  options.text("role", "NAME", "ROLE_NAME", &role, kNone);
  options.flag("module", "PROGRAM is a Python module, as in python3 -m (also -m)", &module, kNone);
  options.flag("no-python", "PROGRAM is run as it is", &no_python, kNone);
  options.flag("run-path", "PROGRAM is a Python script, whatever its name", &run_path, kNone);
  options.text("redirects", "S", "streams to files in --log-dir: 0 none, 1 out, 2 err, 3 both; or 0:3,1:1 (also -r)",
               &redirects, kNone);
  options.text("tee", "S", "the same, and to the terminal too (also -t)", &tee, kNone);
  options.text("local-ranks-filter", "K,…", "local ranks whose output is shown", &local_ranks_filter, kNone);
  options.text("duplicate-stdout-filters", "TEXT,…", "lines with one of these go to filtered_stdout.log as well",
               &stdout_filters, kNone);
  options.text("duplicate-stderr-filters", "TEXT,…", "the same of standard error", &stderr_filters, kNone);
  options.text("local-addr", "HOST", "this node's address, for the others", &local_addr, kNone);
  options.text("signals-to-handle", "SIG,…", "checked, and named in the variable; all are passed on", &signals, kNone);
  options.flag("virtual-local-rank", "LOCAL_RANK is 0 everywhere, and each process sees its GPU alone",
               &virtual_local_rank, kNone);
  options.choice("numa-binding", "bind each process to the CPUs near its GPU, or to its share of the machine",
                 &numa_binding, {"node", "socket", "exclusive", "core-complex"}, kNone);
  options.number("monitor-interval", "S", "accepted; ends of processes are seen at once", &monitor_interval, 0.0, 1e9,
                 kNone);
  options.choice("start-method", "accepted; processes are always started anew", &start_method,
                 {"spawn", "fork", "forkserver"}, kNone);
  options.text("event-log-handler", "NAME", "accepted; there are no events", &event_log_handler, kNone);
  options.text("logs-specs", "NAME", "accepted; logs are written as said here", &logs_specs, kNone);
  options.section("torch.distributed.launch's");
  options.flag("use-env", "LOCAL_RANK says the local rank, and no argument", &use_env, kNone);
  options.flag("local-rank", "PROGRAM gets --local-rank=K (--local_rank: with the underscore)", &local_rank, kNone);
  options.section("paddle.distributed.launch's (dashes or underscores)");
  options.text("devices", "K,…", "GPUs, a process each; processes on the CPU where there is no GPU", &devices, kNone);
  options.text("gpus", "K,…", "the same, for GPUs alone", &gpus, kNone);
  options.text("selected-gpus", "K,…", "the same", &selected_gpus, kNone);
  options.text("ips", "A,B,…", "the nodes' addresses, node 0's first", &ips, kNone);
  options.text("host", "A", "this node's address", &host, kNone);
  options.number("start-port", "PORT", "the processes' first port (with --ips 6070)", &start_port, 1, kMostPort, kNone);
  options.number("started-port", "PORT", "the same", &started_port, 1, kMostPort, kNone);
  options.text("master", "HOST:PORT", "where the nodes meet", &master, kNone);
  options.number("rank", "K", "this node's number; left out: as the nodes come", &paddle_rank, -1, kMostNodes, kNone);
  options.text("job-id", "ID", "the job's name", &job_id, kNone);
  options.number("max-restart", "N", "restarts after a failure", &max_restart, 0, kMostRestarts, kNone);
  options.choice("run-mode", "accepted; there is one mode", &run_mode, {"collective"}, kNone);
  options.text("log-level", "NAME", "accepted; see --quiet", &log_level, kNone);
  options.text("elastic-level", "N", "accepted; --nnodes MIN:MAX says it", &elastic_level, kNone);
  options.text("elastic-timeout", "S", "accepted; --timeout says it", &elastic_timeout, kNone);
}

void LaunchCommand::apply_variables(const Lookup& lookup) {
  for (const config::Option& row : rows_.rows()) {
    const bool has_variable = (is_among(kOfTorchrun, row.name) || is_among(kOfBoth, row.name)) &&
                              !is_among(kOnLineOnly, row.name) && !options_.has(row.name) &&
                              !(row.name == "nproc-per-node" && options_.has("nproc")) &&
                              !(is_of_standalone(row.name) && options_.has("standalone"));
    if (!has_variable) continue;
    const std::string variable = variable_of(row.name);
    auto value = lookup(variable.c_str());
    if (!value) continue;
    if (row.form == config::OptionForm::kFlag) {
      if (*value == "0") continue;
      if (*value != "1") throw ConfigError("environment variable ", variable, "=", *value, ": expected 0 or 1");
      value = "true";
    }
    try {
      row.set(*value);
    } catch (const ConfigError& error) {
      throw ConfigError("environment variable ", variable, "=", *value, ": ", error.what(), "; set it so, or unset it");
    }
    options_.given.push_back(row.name);
  }
}

std::optional<std::string> LaunchCommand::read(const std::vector<std::string>& args, const Lookup& lookup) {
  const LaunchLine split = split_launch_line(args, rows_.shapes());
  const config::Given line =
      config::tokenize(rows_.shapes(), split.options, config::Rest::kOptions, {}, config::Repeated::kLastCounts);
  if (line.help) return launch_help(config::describe(rows_.shapes()));
  rows_.apply_as_given(line.options);
  for (const auto& option : line.options) options_.given.push_back(option.name);
  options_.local_rank_as = split.local_rank_as;
  const bool of_paddle = std::any_of(options_.given.begin(), options_.given.end(),
                                     [](const auto& name) { return is_among(kOfPaddle, name); });
  options_.style = of_paddle ? LaunchStyle::kPaddle : LaunchStyle::kTorchrun;
  check_style(options_);
  if (of_paddle) {
    options_.max_restarts = options_.max_restart;
  } else {
    apply_variables(lookup);
  }
  options_.program = split.program;
  if (options_.program.empty()) throw ConfigError("launch: PROGRAM is missing; launch --help says more");
  return std::nullopt;
}

}  // namespace lockstep::apps
