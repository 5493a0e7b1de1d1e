#include "lockstep/rendezvous/environment.h"

#include <algorithm>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/rendezvous/address.h"

namespace lockstep::rendezvous {
namespace {

constexpr int kMostRanks = 1 << 20;

class Variables {
 public:
  explicit Variables(const Lookup& lookup) : lookup_(lookup) {}

  // Empty counts as unset.
  std::string text(const char* name) const { return lookup_(name).value_or(""); }
  bool has(const char* name) const { return !text(name).empty(); }

  std::optional<int> number(const char* name, int least, int most) const {
    const std::string value = text(name);
    if (value.empty()) return std::nullopt;
    const auto parsed = parse_number(value);
    if (!parsed || *parsed < least || *parsed > most) {
      throw ConfigError("environment variable ", name, "=", value, ": expected a whole number from ", least, " to ",
                        most);
    }
    return static_cast<int>(*parsed);
  }

 private:
  const Lookup& lookup_;
};

// A launcher's variables for the four numbers of a place.
struct Names {
  const char* launcher;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};
constexpr Names kTorch{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names kOpenMpi{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                         "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Names kMpich{"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};
constexpr Names kSlurm{"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr};

// Fills in the node's numbers that the environment lacks. Without any of them all ranks are assumed to be on one node;
// a rank on another fails at the rendezvous and says so. A local rank that differs from the rank means several nodes.
void complete_node(Place& place, std::optional<int> local_rank, std::optional<int> local_size) {
  if (!local_size) {
    const bool one_node = !local_rank || *local_rank == place.rank;
    local_size = one_node ? place.size : *local_rank + 1;
  }
  place.local_size = *local_size;
  place.local_rank = local_rank.value_or(place.rank % place.local_size);
}

void check_ranges(const Place& place) {
  const bool one_node = place.local_size == place.size;
  if (place.rank >= place.size) {
    throw ConfigError("rank ", place.rank, " in a world of ", place.size, " (", place.launcher,
                      "): ranks go from 0 to ", place.size - 1);
  }
  if (place.local_size > place.size || place.local_rank >= place.local_size ||
      (one_node && place.local_rank != place.rank)) {
    throw ConfigError("rank ", place.rank, " of ", place.size, " can't be local rank ", place.local_rank, " of ",
                      place.local_size, " (", place.launcher, "): the environment contradicts itself");
  }
}

std::optional<Place> read_place(const Variables& variables, const Names& names) {
  const auto rank = variables.number(names.rank, 0, kMostRanks - 1);
  const auto size = variables.number(names.size, 1, kMostRanks);
  if (!rank && !size) return std::nullopt;
  if (!rank || !size) {
    throw ConfigError("environment variable ", rank ? names.rank : names.size, " is set but ",
                      rank ? names.size : names.rank, " is not: set both or none");
  }
  Place place{.rank = *rank, .size = *size, .launcher = names.launcher};
  const auto local_size =
      names.local_size == nullptr ? std::nullopt : variables.number(names.local_size, 1, kMostRanks);
  complete_node(place, variables.number(names.local_rank, 0, kMostRanks - 1), local_size);
  return place;
}

// The number of tasks of node `node` in Slurm's list: "2(x3),1" stands for nodes of 2, 2, 2 and 1 tasks.
std::optional<int> tasks_of_node(const std::string& list, int node) {
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string item = list.substr(begin, end - begin);
    const size_t times = item.find("(x");
    const auto tasks = parse_number(std::string_view(item).substr(0, times));
    std::optional<int64_t> nodes = 1;
    if (times != std::string::npos) {
      nodes = item.back() == ')' ? parse_number(item.substr(times + 2, item.size() - times - 3)) : std::nullopt;
    }
    if (!tasks || !nodes || *tasks < 1 || *tasks > kMostRanks || *nodes < 1) return std::nullopt;
    if (node < *nodes) return static_cast<int>(*tasks);
    node -= static_cast<int>(*nodes);
    begin = end + 1;
  }
  return std::nullopt;
}

// Whether srun has started this process as a rank. salloc and sbatch set some of Slurm's variables too. srun's steps
// count from 0; the steps of batch scripts and interactive shells have numbers just below 2^32, or none.
bool started_by_srun(const Variables& variables) {
  constexpr int64_t kFirstSpecialStep = 0xfffffff0;
  const auto step = parse_number(variables.text("SLURM_STEP_ID"));
  return step && *step >= 0 && *step < kFirstSpecialStep && variables.has("SLURM_PROCID");
}

std::optional<Place> read_slurm(const Variables& variables) {
  if (!started_by_srun(variables)) return std::nullopt;
  auto place = read_place(variables, kSlurm);
  for (const char* name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"}) {
    const std::string list = variables.text(name);
    if (list.empty()) continue;
    const auto tasks = tasks_of_node(list, variables.number("SLURM_NODEID", 0, kMostRanks).value_or(0));
    if (!tasks) throw ConfigError("environment variable ", name, "=", list, ": expected a list such as 2(x3),1");
    place->local_size = *tasks;
    place->node = variables.number("SLURM_NODEID", 0, kMostRanks - 1).value_or(-1);
    break;
  }
  place->job = variables.text("SLURM_JOB_ID") + '.' + variables.text("SLURM_STEP_ID");
  return place;
}

std::optional<Place> read_torch(const Variables& variables) {
  auto place = read_place(variables, kTorch);
  if (!place) return std::nullopt;
  if (variables.has("LOCKSTEP_NODE_MEMORY")) place->launcher = "lockstep";
  place->launcher_hosts = variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  place->node = variables.number("GROUP_RANK", 0, kMostRanks - 1).value_or(-1);
  // One store serves all attempts of an elastic job, and the starts after a node has left, which are not counted.
  place->job = variables.text("TORCHELASTIC_RUN_ID") + '.' + variables.text("TORCHELASTIC_RESTART_COUNT");
  if (place->launcher_hosts) place->job += cat('.', place->size);
  return place;
}

std::optional<Place> read_mpi(const Variables& variables, int64_t parent) {
  auto place = read_place(variables, kOpenMpi);
  // Slurm's own PMI sets the first two of MPICH's variables as well; the node's are then Slurm's.
  if (!place && !started_by_srun(variables)) place = read_place(variables, kMpich);
  if (!place) return std::nullopt;
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}) {
    if (place->job.empty()) place->job = variables.text(name);
  }
  if (place->job.empty()) place->job = cat("parent ", parent);
  return place;
}

// The place that the environment describes; that of the innermost launcher if they are nested.
Place read_environment(const Variables& variables, int64_t parent) {
  std::optional<Place> place = read_torch(variables);
  if (!place) place = read_mpi(variables, parent);
  if (!place) place = read_slurm(variables);
  return place.value_or(Place{});
}

void apply_request(const PlaceRequest& request, const Variables& variables, Place& place) {
  if (request.rank < -1 || request.size < -1 || request.size == 0) {
    throw ConfigError("rank ", request.rank, ", world size ", request.size,
                      ": expected a rank from 0 and a size from 1");
  }
  if (place.launcher == "none" && request.rank < 0 && variables.has("LOCKSTEP_NODE_MEMORY")) {
    throw ConfigError("LOCKSTEP_NODE_MEMORY is set but RANK is not: only the launcher sets it");
  }
  if (place.launcher == "none" && (request.rank < 0) != (request.size < 0)) {
    throw ConfigError(
        request.rank < 0 ? "a world size was given without a rank" : "a rank was given without a world size",
        ", and the environment says neither: give both");
  }
  const int rank = request.rank < 0 ? place.rank : request.rank;
  const int size = request.size < 0 ? place.size : request.size;
  if (rank == place.rank && size == place.size) return;
  if (place.launcher == "lockstep") {
    throw ConfigError("rank ", rank, " of ", size, " was asked for, and the launcher has started this process as rank ",
                      place.rank, " of ", place.size, "; leave rank and world size out");
  }
  place = {.rank = rank, .size = size, .launcher = "arguments"};
  complete_node(place, std::nullopt, std::nullopt);
}

// The host of rank 0, if the launcher names it: Slurm's list "gpu[03-04,07],login" begins with gpu03.
std::string first_host(const Variables& variables, const Place& place) {
  if (place.local_size == place.size) return "127.0.0.1";
  std::string list = variables.text("SLURM_STEP_NODELIST");
  if (list.empty()) list = variables.text("SLURM_JOB_NODELIST");
  if (place.launcher != "srun" || list.empty()) {
    throw ConfigError("rank ", place.rank, " of ", place.size, " (", place.launcher,
                      ") has ranks on other nodes, and MASTER_ADDR is not set: set it to the host of rank 0");
  }
  const size_t bracket = list.find('['), comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  return list.substr(0, bracket) + list.substr(bracket + 1, list.find_first_of(",-]", bracket) - bracket - 1);
}

std::string address_of(const Variables& variables, const Place& place) {
  const std::string host = variables.text("MASTER_ADDR"), port = variables.text("MASTER_PORT");
  if (!host.empty() && !port.empty()) return tcp_address(host, port);
  if (place.launcher == "lockstep") return "";
  if (place.launcher == "mpirun" || place.launcher == "srun") {
    return tcp_address(host.empty() ? first_host(variables, place) : host,
                       port.empty() ? derived_port(place.job) : port);
  }
  throw ConfigError("rank ", place.rank, " of ", place.size,
                    " does not know where to meet the others: ", host.empty() ? "MASTER_ADDR" : "MASTER_PORT",
                    " is not set; set it, or give init_method tcp://host:port or file:///path");
}

}  // namespace

Place find_place(const PlaceRequest& request, const Lookup& lookup) {
  const Variables variables(lookup);
  Place place = read_environment(variables, request.parent);
  apply_request(request, variables, place);
  check_ranges(place);
  const bool by_environment = request.init_method == "env://";
  if (!by_environment) {
    parse_address(request.init_method);
    place.launcher_hosts = false;
  }
  if (place.size > 1) place.rendezvous = by_environment ? address_of(variables, place) : request.init_method;
  if (!place.rendezvous.empty()) parse_address(place.rendezvous);
  return place;
}

}  // namespace lockstep::rendezvous
