// torchrun's variables, ours, and those of an operator that numbers nodes by the same names.
#include "lockstep/base/error.h"
#include "lockstep/rendezvous/place/address.h"
#include "lockstep/rendezvous/place/layer.h"

namespace lockstep::rendezvous {
namespace {

constexpr Names kTorchrun{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names kOurs{"lockstep", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names kOursAlone{"lockstep", "RANK", "WORLD_SIZE", "LOCKSTEP_LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names kPyTorchJob{"PyTorchJob", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};

// Whether RANK is a node's: no local rank is set, and the ranks meet where other machines can. On Kubernetes a master
// may be told "localhost".
bool numbers_nodes(Variables& variables) {
  if (!variables.has("RANK") || !variables.has("WORLD_SIZE")) return false;
  if (variables.has("LOCAL_RANK") || variables.has("LOCAL_WORLD_SIZE") || variables.has("LOCKSTEP_NODE_MEMORY"))
    return false;
  if (!variables.has("MASTER_ADDR")) return false;
  return variables.has("KUBERNETES_SERVICE_HOST") || !names_loopback(variables.text("MASTER_ADDR"));
}

}  // namespace

void read_torchrun(Variables& variables, Layer& layer) {
  if (numbers_nodes(variables)) return;
  const bool is_ours = variables.has("LOCKSTEP_NODE_MEMORY");
  // Under --virtual-local-rank LOCAL_RANK is 0 everywhere.
  const Names& names = !is_ours ? kTorchrun : variables.has("LOCKSTEP_LOCAL_RANK") ? kOursAlone : kOurs;
  auto place = read_numbers(variables, names, layer);
  if (!place) return;
  check_numbers(*place, names);
  place->launcher_hosts = variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  place->node = variables.number("GROUP_RANK", 0, kMostRanks - 1).value_or(-1);
  // One store serves all attempts of an elastic job, and the starts after a node has left, which are not counted.
  place->job = variables.text("TORCHELASTIC_RUN_ID") + '.' + variables.text("TORCHELASTIC_RESTART_COUNT");
  if (place->launcher_hosts) place->job += cat('.', place->size);
  place->rendezvous = master_address(variables);
  layer.place = std::move(place);
}

void read_pytorch_job(Variables& variables, Layer& layer) {
  if (!numbers_nodes(variables)) return;
  auto place = read_numbers(variables, kPyTorchJob, layer);
  if (!place) return;
  const auto nodes = variables.number("PET_NNODES", 1, kMostRanks);
  if (nodes && *nodes != place->size && place->size % *nodes == 0) {
    throw ConfigError("environment variables WORLD_SIZE=", place->size, " and PET_NNODES=", *nodes, " ask for ",
                      place->size / *nodes, " processes on each node, and RANK=", place->rank,
                      " is this node's number; start `lockstep launch` here, which starts them");
  }
  if (place->rank >= place->size) check_numbers(*place, kPyTorchJob);
  place->node = place->rank;
  place->local_rank = 0;
  place->local_size = 1;
  place->rendezvous = master_address(variables);
  layer.place = std::move(place);
}

}  // namespace lockstep::rendezvous
