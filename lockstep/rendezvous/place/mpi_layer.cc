// The variables of Open MPI's mpirun, and of MPICH's and Intel MPI's (PMI).
#include "lockstep/base/text.h"
#include "lockstep/rendezvous/place/address.h"
#include "lockstep/rendezvous/place/layer.h"

namespace lockstep::rendezvous {
namespace {

constexpr Names kOpenMpi{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                         "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Names kPmi{"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};

}  // namespace

void read_mpi(Variables& variables, int64_t parent, Layer& layer) {
  const Names* names = &kOpenMpi;
  auto place = read_numbers(variables, kOpenMpi, layer);
  // Slurm's own PMI sets the first two of MPICH's variables as well; the node's are then Slurm's.
  if (!place && layer.missing.empty()) {
    const bool by_slurm =
        variables.has("PMI_RANK") && variables.has("SLURM_STEP_ID") && !variables.has("MPI_LOCALRANKID");
    if (by_slurm) return;
    names = &kPmi;
    place = read_numbers(variables, kPmi, layer);
  }
  if (!place) return;
  check_numbers(*place, *names);
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "I_MPI_HYDRA_UUID"}) {
    if (place->job.empty()) place->job = variables.text(name);
  }
  std::string host = variables.text("MASTER_ADDR");
  const std::string port = variables.text("MASTER_PORT");
  // MPICH tells no name of the job. On one node the process above its ranks is theirs alone; on several the address is.
  if (place->job.empty()) {
    const bool is_alone = place->local_size == place->size;
    place->job = is_alone && port.empty() ? cat("parent ", parent) : cat("mpirun ", host, ':', port);
  }
  if (host.empty() && place->local_size == place->size) host = "127.0.0.1";
  if (!host.empty()) place->rendezvous = tcp_address(host, port.empty() ? derived_port(place->job) : port);
  layer.place = std::move(place);
}

}  // namespace lockstep::rendezvous
