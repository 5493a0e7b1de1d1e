// A process that Kubernetes has started on each node: Kubeflow Trainer's and JobSet's variables.
#include "lockstep/base/error.h"
#include "lockstep/rendezvous/place/address.h"
#include "lockstep/rendezvous/place/layer.h"

namespace lockstep::rendezvous {
namespace {

constexpr Names kTrainer{"Kubeflow Trainer", "PET_NODE_RANK", "PET_NNODES", "LOCAL_RANK", nullptr};
constexpr Names kJobSet{"JobSet", "JOB_COMPLETION_INDEX", "WORLD_SIZE", "LOCAL_RANK", nullptr};

void take_node(Place& place, const Names& names) {
  if (place.rank >= place.size) check_numbers(place, names);
  place.node = place.rank;
  place.local_rank = 0;
  place.local_size = 1;
}

}  // namespace

// These are defaults of torchrun's and `lockstep launch`'s as well: a process that they start has a layer further in.
void read_kubeflow_trainer(Variables& variables, Layer& layer) {
  layer.must_be_whole = false;
  if (!variables.has("PET_NODE_RANK")) return;
  auto place = read_numbers(variables, kTrainer, layer);
  if (!place) return;
  const std::string processes = variables.text("PET_NPROC_PER_NODE");
  if (!processes.empty() && processes != "1") {
    throw ConfigError(
        "environment variables PET_NPROC_PER_NODE=", processes, " and PET_NODE_RANK=", place->rank,
        " ask for a launcher on each node, and none has started this process; start `lockstep launch` here");
  }
  take_node(*place, kTrainer);
  const std::string host = variables.text("PET_MASTER_ADDR"), port = variables.text("PET_MASTER_PORT");
  if (!host.empty()) place->rendezvous = tcp_address(host, port.empty() ? "29500" : port);
  layer.place = std::move(place);
}

// An indexed job has the index alone; its author says the rest.
void read_job_set(Variables& variables, Layer& layer) {
  layer.must_be_whole = false;
  if (!variables.has("JOB_COMPLETION_INDEX") || variables.has("RANK") || !variables.has("MASTER_ADDR")) return;
  auto place = read_numbers(variables, kJobSet, layer);
  if (!place) return;
  take_node(*place, kJobSet);
  place->rendezvous = master_address(variables);
  layer.place = std::move(place);
}

}  // namespace lockstep::rendezvous
