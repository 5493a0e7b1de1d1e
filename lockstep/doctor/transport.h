// The self-test of one transport: two workers run `bench allreduce`, which checks values and measures.
#pragma once

#include <string>
#include <vector>

namespace lockstep::doctor {

enum class Health { kOk, kFailed, kNotAvailable };

struct Transport {
  std::string name;  // "shm"
  Health health = Health::kOk;
  std::string why = {};     // the reason if it is not ok; else empty
  double microseconds = 0;  // of one fold of 1 KiB
  double gbps = 0;          // algorithm bandwidth of one fold of 1 MiB, GB/s
};

// Returns what NCCL lacks for a self-test of two ranks, on a machine of which a process may use so many GPUs; "" if it
// has them. A pure function.
std::string missing_for_nccl(int usable_gpus);

// The command of a self-test. Our launcher starts it in `processes` processes; MPI's, in one, starts its ranks itself.
struct SelfTest {
  std::vector<std::string> command;
  int processes;
};
SelfTest self_test(const std::string& worker, const std::string& backend);

// Judges a transport by the exit code and the output of its self-test. Exit code 2 says that this build or this machine
// does not have the transport, any other but 0 that it failed. A pure function.
Transport judge(const std::string& backend, int exit_code, const std::string& out, const std::string& err);

// The message after the first "error: ", with which launcher and worker begin theirs; the first line where there is
// none.
std::string first_error(const std::string& err);

// "ok", "failed" or "not available".
std::string_view to_string(Health health);

}  // namespace lockstep::doctor
