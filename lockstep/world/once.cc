#include "lockstep/world/once.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/remote_error.h"
#include "lockstep/comm/text_exchange.h"

namespace lockstep {
namespace {

// "" for success, else the exit code, a space and the error's line.
std::string outcome_of(const std::function<void()>& act) {
  try {
    act();
    return "";
  } catch (const Error& error) {
    return cat(error.exit_code(), ' ', error.what());
  } catch (const std::exception& error) {
    return cat(BugError::kExitCode, ' ', error.what());
  } catch (...) {
    return cat(BugError::kExitCode, " an exception that is none of the standard library's");
  }
}

void throw_if_failed(int rank, const std::string& outcome) {
  if (outcome.empty()) return;
  const size_t space = outcome.find(' ');
  throw_error(std::stoi(outcome.substr(0, space)), cat("rank ", rank, ": ", outcome.substr(space + 1)));
}

// Throws the first rank's error, on all ranks; this rank's own if the others can't be reached.
void throw_first(comm::Communicator& comm, const std::string& outcome) {
  std::vector<std::string> outcomes;
  try {
    outcomes = comm::gather_texts(comm, outcome);
  } catch (const CommError&) {
    throw_if_failed(comm.rank(), outcome);
    throw;
  }
  for (int rank = 0; rank < comm.size(); ++rank) throw_if_failed(rank, outcomes[static_cast<size_t>(rank)]);
}

// Waits for all others, for `timeout`; the exchange of what came out has the usual one. `who` prepares, for messages.
void finish_once(World& world, const std::string& who, const std::string& outcome,
                 std::optional<std::chrono::nanoseconds> timeout) {
  comm::Call prepared = comm::calls::barrier();
  prepared.what = cat("once: what ", who, " prepares");
  if (timeout) prepared.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(*timeout);
  world.communicator().start(std::move(prepared))->wait();
  throw_first(world.communicator(), outcome);
}

}  // namespace

void once(World& world, OnceScope scope, const std::function<void()>& prepare, std::chrono::nanoseconds timeout) {
  if (scope == OnceScope::kWorld) return once(world, std::vector{0}, prepare, timeout);
  finish_once(world, "local rank 0", world.local_rank() == 0 ? outcome_of(prepare) : "", timeout);
}

void once(World& world, const std::vector<int>& ranks, const std::function<void()>& prepare,
          std::chrono::nanoseconds timeout) {
  const bool prepares = std::find(ranks.begin(), ranks.end(), world.rank()) != ranks.end();
  const std::string who = ranks.empty() ? "no rank" : cat("rank ", ranks.front());
  const std::string outcome = prepares ? outcome_of(prepare) : "";
  // The only one that prepares waits for the others as in any collective: they have nothing else to do.
  if (prepares && ranks.size() == 1) return finish_once(world, who, outcome, std::nullopt);
  finish_once(world, who, outcome, timeout);
}

void together(comm::Communicator& comm, const std::function<void()>& act) { throw_first(comm, outcome_of(act)); }

at::Tensor reduce_tensor(comm::Communicator& comm, const at::Tensor& tensor) {
  if (!tensor.is_floating_point()) throw BugError("reduce_tensor: no mean of a ", tensor.toString());
  at::Tensor mean = tensor.detach().clone();
  comm.all_reduce(mean, comm::ReduceOp::kMean);
  return mean;
}

}  // namespace lockstep
