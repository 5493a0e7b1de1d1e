#include "lockstep/rendezvous/place/environment.h"

#include <unistd.h>

#include <fstream>
#include <sstream>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/process_state.h"
#include "lockstep/rendezvous/place/address.h"

namespace lockstep::rendezvous {
namespace {

// The number of the layer that counts; -1 if there is none. Throws ConfigError for a layer that is wrong, if it is
// further in than any that is complete.
int choose_layer(const std::vector<Layer>& layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i].wrong.empty()) throw ConfigError(layers[i].wrong);
    if (layers[i].place) return static_cast<int>(i);
  }
  for (const Layer& layer : layers) {
    if (layer.must_be_whole) throw ConfigError(layer.missing);
  }
  return -1;
}

Place read_environment(const Lookup& lookup, int64_t parent) {
  const auto layers = find_layers(lookup, parent);
  const int chosen = choose_layer(layers);
  return chosen < 0 ? Place{} : *layers[static_cast<size_t>(chosen)].place;
}

void apply_request(const PlaceRequest& request, Variables& variables, Place& place) {
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

void check_arguments(const Place& place) {
  if (place.rank < place.size) return;
  throw ConfigError("rank ", place.rank, " in a world of ", place.size, " (", place.launcher, "): ranks go from 0 to ",
                    place.size - 1);
}

// Where the ranks meet, for a place that came by arguments or has no address yet.
std::string address_of(Variables& variables, const Place& place) {
  if (!place.rendezvous.empty() || place.launcher == "lockstep") return place.rendezvous;
  if (const std::string master = master_address(variables); !master.empty()) return master;
  if (place.launcher == "mpirun" || place.launcher == "srun") {
    throw ConfigError("rank ", place.rank, " of ", place.size, " (", place.launcher,
                      ") has ranks on other nodes, and MASTER_ADDR is not set: set it to the host of rank 0");
  }
  throw ConfigError("rank ", place.rank, " of ", place.size, " does not know where to meet the others: ",
                    variables.has("MASTER_ADDR") ? "MASTER_PORT" : "MASTER_ADDR",
                    " is not set; set it, or give init_method tcp://host:port or file:///path");
}

}  // namespace

Place find_place(const PlaceRequest& request, const Lookup& lookup) {
  Variables variables(lookup);
  Place place = read_environment(lookup, request.parent);
  apply_request(request, variables, place);
  check_arguments(place);
  const bool by_environment = request.init_method == "env://";
  if (!by_environment) {
    parse_address(request.init_method);
    place.launcher_hosts = false;
    place.rendezvous = request.init_method;
  }
  place.rendezvous = place.size > 1 ? address_of(variables, place) : "";
  if (!place.rendezvous.empty()) parse_address(place.rendezvous);
  return place;
}

PlaceReport explain_place(const Lookup& lookup, int64_t parent) {
  PlaceReport report{{}, "", -1, find_layers(lookup, parent)};
  try {
    report.place = find_place({.parent = parent}, lookup);
    report.used = choose_layer(report.layers);
  } catch (const ConfigError& error) {
    report.error = error.what();
  }
  return report;
}

int64_t launcher_pid() {
  constexpr int kMost = 16;  // scripts that start each other
  const int parent = getppid();
  if (!env("PMI_RANK")) return parent;
  for (int pid = parent, i = 0; pid > 1 && i < kMost; ++i) {
    std::string name, state;
    std::ifstream(cat("/proc/", pid, "/comm")) >> name;
    if (name.starts_with("hydra_pmi_proxy") || name.starts_with("pmi_proxy")) return pid;
    std::istringstream fields(process_fields(pid));
    if (!(fields >> state >> pid)) break;
  }
  return parent;
}

}  // namespace lockstep::rendezvous
