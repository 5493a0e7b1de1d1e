// The variables of Slurm's srun.
#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/rendezvous/place/address.h"
#include "lockstep/rendezvous/place/layer.h"
#include "lockstep/rendezvous/place/slurm_lists.h"

namespace lockstep::rendezvous {
namespace {

constexpr Names kSlurm{"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr};

// Whether srun has started this process as a rank. salloc and sbatch set some of Slurm's variables too. srun's steps
// count from 0; the steps of batch scripts and interactive shells have numbers just below 2^32, or none.
bool started_by_srun(Variables& variables) {
  constexpr int64_t kFirstSpecialStep = 0xfffffff0;
  const auto step = parse_number(variables.text("SLURM_STEP_ID"));
  return step && *step >= 0 && *step < kFirstSpecialStep && variables.has("SLURM_PROCID");
}

[[noreturn]] void refuse(const std::string& one, const std::string& other, const std::string& why) {
  throw ConfigError("environment variables ", one, " and ", other, " (srun) contradict each other: ", why);
}

void read_tasks(Variables& variables, Place& place) {
  for (const char* name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"}) {
    const std::string list = variables.text(name);
    if (list.empty()) continue;
    const auto tasks = expand_tasks(list);
    const int node = variables.number("SLURM_NODEID", 0, kMostRanks - 1).value_or(-1);
    const auto at = static_cast<size_t>(node < 0 ? 0 : node);
    if (!tasks) throw ConfigError("environment variable ", name, "=", list, ": expected a list such as 2(x3),1");
    if (at >= tasks->size() && name != std::string_view("SLURM_NTASKS_PER_NODE")) {
      refuse(cat(name, '=', list), cat("SLURM_NODEID=", node), cat("it lists ", tasks->size(), " nodes"));
    }
    place.local_size = (*tasks)[at < tasks->size() ? at : 0];
    place.node = node;
    const int sum = std::accumulate(tasks->begin(), tasks->end(), 0);
    if (name == std::string_view("SLURM_STEP_TASKS_PER_NODE") && sum != place.size) {
      refuse(cat(name, '=', list), cat("SLURM_NTASKS=", place.size), cat("it lists ", sum, " tasks"));
    }
    if (place.local_rank >= place.local_size) {
      refuse(cat(name, '=', list), cat("SLURM_LOCALID=", place.local_rank),
             cat("node ", at, " has ", place.local_size, " tasks"));
    }
    return;
  }
}

// The host of rank 0, if Slurm names it.
std::string first_host(Variables& variables) {
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
    const std::string list = variables.text(name);
    if (list.empty()) continue;
    const auto nodes = expand_nodes(list);
    if (!nodes)
      throw ConfigError("environment variable ", name, "=", list, ": expected a list such as node[01-04,07],other");
    return nodes->front();
  }
  return "";
}

}  // namespace

void read_srun(Variables& variables, Layer& layer) {
  if (!started_by_srun(variables)) return;
  auto place = read_numbers(variables, kSlurm, layer);
  if (!place) return;
  if (place->rank >= place->size) check_numbers(*place, kSlurm);
  read_tasks(variables, *place);
  check_numbers(*place, kSlurm);
  place->job = variables.text("SLURM_JOB_ID") + '.' + variables.text("SLURM_STEP_ID");
  std::string host = variables.text("MASTER_ADDR");
  const std::string port = variables.text("MASTER_PORT");
  if (host.empty()) host = place->local_size == place->size ? "127.0.0.1" : first_host(variables);
  if (!host.empty()) place->rendezvous = tcp_address(host, port.empty() ? derived_port(place->job) : port);
  layer.place = std::move(place);
}

}  // namespace lockstep::rendezvous
