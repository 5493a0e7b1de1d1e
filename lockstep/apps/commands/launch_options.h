// The options of `lockstep launch`: its own, torchrun's and torch.distributed.launch's, and
// paddle.distributed.launch's. What they come to is launch_plan.h's matter.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/config/option_set.h"

namespace lockstep::apps {

// Whose flags stand on the line. Those that both know (nproc-per-node, nnodes, log-dir) are torchrun's where no flag of
// Paddle's stands beside them.
enum class LaunchStyle { kTorchrun, kPaddle };

// As the line or PET_* variables say. An empty text, or nothing in an optional, is an option that is not given.
struct LaunchOptions {
  std::string nproc, nproc_per_node;  // a number, auto, cpu or gpu
  int threads = 0;                    // OMP_NUM_THREADS, where it is not set; 0: cores ÷ processes
  std::string nnodes = "1";           // N or MIN:MAX
  std::string log_dir;

  // torchrun's.
  std::optional<int> node_rank;
  std::string master_addr;
  std::optional<int> master_port;
  std::string rdzv_backend = "static", rdzv_endpoint, rdzv_id = "none", rdzv_conf;
  bool standalone = false;
  int max_restarts = 0;           // --max-restart in Paddle's style
  double grace = 0, timeout = 0;  // seconds; 0: as long as it takes
  double monitor_interval = 0.1;
  std::string start_method = "spawn", event_log_handler, logs_specs;
  std::string run_mode = "collective", log_level, elastic_level, elastic_timeout;
  std::string role = "default";
  bool module = false, no_python = false, run_path = false;
  std::string redirects = "0", tee = "0", local_ranks_filter;
  std::string stdout_filters, stderr_filters;
  std::string local_addr, numa_binding;
  std::string signals = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";
  bool virtual_local_rank = false;

  // torch.distributed.launch's.
  bool use_env = false;
  bool local_rank = false;
  std::string local_rank_as;  // "--local-rank" or "--local_rank", as the flag was spelled

  // paddle.distributed.launch's.
  std::string devices, gpus, selected_gpus;
  std::string ips, host, master, job_id = "default";
  std::optional<int> start_port, started_port, paddle_rank;
  int max_restart = 0;

  LaunchStyle style = LaunchStyle::kTorchrun;
  std::vector<std::string> given;    // the options' names, on the line or by variables
  std::vector<std::string> program;  // with its arguments; never empty

  void declare(config::OptionSet& options);
  bool has(const std::string& name) const;
};

class LaunchCommand {
 public:
  // Looks an environment variable up; nothing if it is unset or empty.
  using Lookup = std::function<std::optional<std::string>(const char* name)>;

  LaunchCommand() { options_.declare(rows_); }

  // Reads the words after `launch`, and for what they leave open torchrun's PET_* variables. Returns the text of --help
  // where it is asked for, else nothing. Throws ConfigError that says what was understood and what to type.
  std::optional<std::string> read(const std::vector<std::string>& args, const Lookup& lookup);

  const LaunchOptions& options() const { return options_; }
  const config::OptionSet& rows() const { return rows_; }

 private:
  void apply_variables(const Lookup& lookup);

  LaunchOptions options_;
  config::OptionSet rows_;
};

}  // namespace lockstep::apps
