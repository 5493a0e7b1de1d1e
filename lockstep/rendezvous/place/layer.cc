#include "lockstep/rendezvous/place/layer.h"

#include <functional>

#include "lockstep/base/error.h"
#include "lockstep/rendezvous/place/address.h"

namespace lockstep::rendezvous {
namespace {

void throw_contradiction(const Place& place, const std::string& one, const std::string& other, const std::string& why) {
  throw ConfigError("environment variables ", one, " and ", other, " (", place.launcher,
                    ") contradict each other: ", why);
}

std::string pair(const char* name, int value) { return cat(name, '=', value); }

}  // namespace

void complete_node(Place& place, std::optional<int> local_rank, std::optional<int> local_size) {
  if (!local_size) {
    const bool one_node = !local_rank || *local_rank == place.rank;
    local_size = one_node ? place.size : *local_rank + 1;
  }
  place.local_size = *local_size;
  place.local_rank = local_rank.value_or(place.rank % place.local_size);
}

std::optional<Place> read_numbers(Variables& variables, const Names& names, Layer& layer) {
  layer.launcher = names.launcher;
  const auto rank = variables.number(names.rank, 0, kMostRanks - 1);
  const auto size = variables.number(names.size, 1, kMostRanks);
  if (!rank && !size) return std::nullopt;
  if (!rank || !size) {
    layer.missing = cat("environment variable ", rank ? names.rank : names.size, " is set but ",
                        rank ? names.size : names.rank, " is not: set both or none");
    return std::nullopt;
  }
  Place place{.rank = *rank, .size = *size, .launcher = names.launcher};
  const auto local_size =
      names.local_size == nullptr ? std::nullopt : variables.number(names.local_size, 1, kMostRanks);
  complete_node(place, variables.number(names.local_rank, 0, kMostRanks - 1), local_size);
  return place;
}

void check_numbers(const Place& place, const Names& names) {
  const std::string rank = pair(names.rank, place.rank), size = pair(names.size, place.size);
  const std::string local_rank = pair(names.local_rank, place.local_rank);
  if (place.rank >= place.size) {
    throw_contradiction(
        place, rank, size,
        cat("rank ", place.rank, " in a world of ", place.size, ", where ranks go from 0 to ", place.size - 1));
  }
  const std::string local_size =
      names.local_size == nullptr ? cat("a node of ", place.local_size) : pair(names.local_size, place.local_size);
  if (place.local_size > place.size) {
    throw_contradiction(place, local_size, size,
                        cat("a node of ", place.local_size, " ranks in a world of ", place.size));
  }
  if (place.local_rank >= place.local_size) {
    throw_contradiction(place, local_rank, local_size, cat("local rank ", place.local_rank, " of ", place.local_size));
  }
  const bool one_node = place.local_size == place.size;
  if (place.local_rank > place.rank || (one_node && place.local_rank != place.rank)) {
    throw_contradiction(place, rank, local_rank,
                        cat("rank ", place.rank, " of ", place.size, " can't be local rank ", place.local_rank, " of ",
                            place.local_size));
  }
}

std::string master_address(Variables& variables) {
  const std::string host = variables.text("MASTER_ADDR"), port = variables.text("MASTER_PORT");
  return host.empty() || port.empty() ? "" : tcp_address(host, port);
}

std::vector<Layer> find_layers(const Lookup& lookup, int64_t parent) {
  // The innermost first: what starts processes within a job of the ones below it.
  const std::function<void(Variables&, Layer&)> readers[] = {
      read_torchrun,
      read_paddle,
      [parent](Variables& variables, Layer& layer) { read_mpi(variables, parent, layer); },
      read_srun,
      read_pytorch_job,  // whose names may be set by hand
      read_kubeflow_trainer,
      read_job_set};
  std::vector<Layer> layers;
  for (const auto& read : readers) {
    Variables variables(lookup);
    Layer layer;
    try {
      read(variables, layer);
    } catch (const ConfigError& error) {
      layer.wrong = error.what();
      layer.place.reset();
    }
    layer.readings = variables.readings();
    if (layer.place || !layer.missing.empty() || !layer.wrong.empty()) layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace lockstep::rendezvous
