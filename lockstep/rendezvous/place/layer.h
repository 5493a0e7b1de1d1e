// What one launcher's variables say. Where launchers are nested, as torchrun within srun, a rank has several layers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/rendezvous/place/place.h"
#include "lockstep/rendezvous/place/variables.h"

namespace lockstep::rendezvous {

struct Layer {
  std::string launcher;             // as Place::launcher
  std::optional<Place> place = {};  // nothing: the layer is not complete, or wrong
  std::string missing = {};         // what makes it incomplete
  std::string wrong = {};           // what contradicts what, or is no number
  bool must_be_whole = true;        // whether an incomplete layer is a mistake where no other is complete
  std::vector<Reading> readings = {};
};

// Returns the layers of which any variable is set, the innermost first. `parent` is the pid of the parent process.
std::vector<Layer> find_layers(const Lookup& lookup, int64_t parent);

// A launcher's variables for the four numbers of a place.
struct Names {
  const char* launcher;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;  // null: there is none
};

// Reads the numbers; nothing if neither rank nor size is set. Where one of the two is not, `layer` says so and the
// result is nothing, too. Throws ConfigError for what is no number.
std::optional<Place> read_numbers(Variables& variables, const Names& names, Layer& layer);

// Throws ConfigError that names both variables if the numbers contradict each other.
void check_numbers(const Place& place, const Names& names);

// Fills in the node's numbers that the environment lacks. Without any of them all ranks are assumed to be on one node;
// a rank on another fails at the rendezvous and says so. A local rank that differs from the rank means several nodes.
void complete_node(Place& place, std::optional<int> local_rank, std::optional<int> local_size);

// A place's address by MASTER_ADDR and MASTER_PORT; empty if one of them is not set.
std::string master_address(Variables& variables);

// What reads each launcher. Returns nothing if none of its variables is set. They throw ConfigError for what is wrong.
void read_torchrun(Variables& variables, Layer& layer);
void read_paddle(Variables& variables, Layer& layer);
void read_mpi(Variables& variables, int64_t parent, Layer& layer);
void read_srun(Variables& variables, Layer& layer);
void read_pytorch_job(Variables& variables, Layer& layer);
void read_kubeflow_trainer(Variables& variables, Layer& layer);
void read_job_set(Variables& variables, Layer& layer);

}  // namespace lockstep::rendezvous
