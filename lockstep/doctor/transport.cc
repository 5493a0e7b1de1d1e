#include "lockstep/doctor/transport.h"

#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"

namespace lockstep::doctor {

std::string first_error(const std::string& err) {
  constexpr std::string_view kMark = "error: ";
  const size_t mark = err.find(kMark);
  const size_t start = mark == std::string::npos ? 0 : mark + kMark.size();
  return err.substr(start, err.find('\n', start) - start);
}

std::string missing_for_nccl(int usable_gpus) {
  if (usable_gpus == 0) return "no GPU";
  return usable_gpus == 1 ? "one GPU; NCCL takes one a rank, and a test has two ranks" : "";
}

SelfTest self_test(const std::string& worker, const std::string& backend) {
  const std::vector<std::string> work = {worker,          "bench",     "allreduce",    "--backend=" + backend,
                                         "--sizes=1K,1M", "--nproc=2", "--timeout=10", "--json"};
  if (backend != "mpi") return {work, 2};
  SelfTest test{{"env"}, 1};
  // Its ranks must not take themselves for the launcher's. Open MPI must also run for root and on few cores.
  for (const char* name : {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR",
                           "MASTER_PORT", "LOCKSTEP_NODE_MEMORY", "PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"}) {
    test.command.insert(test.command.end(), {"-u", name});
  }
  test.command.insert(test.command.end(), {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                                           "OMPI_MCA_rmaps_base_oversubscribe=1", "mpirun", "-n", "2"});
  test.command.insert(test.command.end(), work.begin(), work.end());
  return test;
}

Transport judge(const std::string& backend, int exit_code, const std::string& out, const std::string& err) {
  Transport transport{.name = backend};
  const auto fail = [&](const std::string& why) {
    transport.health = exit_code == ConfigError::kExitCode ? Health::kNotAvailable : Health::kFailed;
    transport.why = why.empty() ? cat("ended with exit code ", exit_code) : why;
    return transport;
  };
  if (exit_code != 0) return fail(first_error(err));
  const auto rows = nlohmann::json::parse(out, nullptr, /*allow_exceptions=*/false);
  if (!rows.is_array() || rows.size() != 2) return fail("did not say what it measured");
  try {
    if (rows[0].at("ranks") != 2) return fail("not all ranks took part");
    transport.microseconds = rows[0].at("seconds").get<double>() * 1e6;
    transport.gbps = rows[1].at("algbw_gbps").get<double>();
  } catch (const nlohmann::json::exception&) {
    return fail("did not say what it measured");
  }
  return transport;
}

std::string_view to_string(Health health) {
  return health == Health::kOk ? "ok" : health == Health::kFailed ? "failed" : "not available";
}

}  // namespace lockstep::doctor
