#include "lockstep/comm/once.h"

#include <poll.h>

#include <algorithm>
#include <exception>
#include <string>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/peers.h"
#include "lockstep/comm/remote_error.h"
#include "lockstep/comm/text_exchange.h"

namespace lockstep::comm {
namespace {

// "" for success, else the exit code, a space and the error's line.
std::string outcome_of(const std::function<void()>& prepare) {
  try {
    prepare();
    return "";
  } catch (const Error& error) {
    return cat(error.exit_code(), ' ', error.what());
  } catch (const std::exception& error) {
    return cat(BugError::kExitCode, ' ', error.what());
  } catch (...) {
    return cat(BugError::kExitCode, " an exception that is none of the standard library's");
  }
}

// Waits until `doer` has begun its next collective, which the board tells: the collectives' own timeout then only has
// to cover the exchange of what came out.
void wait_for(World& world, int doer, std::chrono::nanoseconds timeout) {
  constexpr int kMostMs = 20;
  const std::string what = cat("once: what rank ", doer, " prepares");
  const BoardRank& board = world.board().ranks[static_cast<size_t>(doer)];
  const uint64_t before = world.self().sequence.load();
  Peers peers(&world.board(), world.local_rank(), world.place().local_size);
  const Deadline deadline(timeout);
  world.self().doing.set(cat("waiting for ", what));
  for (int ms = 1; board.sequence.load() <= before; ms = std::min(2 * ms, kMostMs)) {
    peers.check(what);
    if (deadline.passed()) {
      throw CommError("rank ", world.rank(), ": waited ", std::chrono::duration<double>(timeout).count(), " s for ",
                      what, "; see what it was at in its log");
    }
    poll(nullptr, 0, ms);
  }
  world.self().doing.set("");
}

}  // namespace

void once(World& world, OnceScope scope, const std::function<void()>& prepare, std::chrono::nanoseconds timeout) {
  const bool prepares = (scope == OnceScope::kWorld ? world.rank() : world.local_rank()) == 0;
  std::string outcome;
  if (prepares) {
    outcome = outcome_of(prepare);
  } else {
    wait_for(world, 0, timeout);
  }
  const auto outcomes = gather_texts(world.communicator(), outcome);
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    const std::string& text = outcomes[rank];
    if (text.empty()) continue;
    const size_t space = text.find(' ');
    throw_error(std::stoi(text.substr(0, space)), cat("rank ", rank, ": ", text.substr(space + 1)));
  }
}

at::Tensor reduce_tensor(Communicator& comm, const at::Tensor& tensor) {
  if (!tensor.is_floating_point()) throw BugError("reduce_tensor: no mean of a ", tensor.toString());
  at::Tensor mean = tensor.detach().clone();
  comm.all_reduce(mean, ReduceOp::kMean);
  return mean;
}

}  // namespace lockstep::comm
