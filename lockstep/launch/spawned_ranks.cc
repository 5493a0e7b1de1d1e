#include "lockstep/launch/spawned_ranks.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <future>

#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/base/signals_blocked.h"
#include "lockstep/base/terminal.h"
#include "lockstep/launch/environment.h"
#include "lockstep/launch/report.h"
#include "lockstep/parallel/options/lanes.h"

namespace lockstep::launch {
SpawnedRanks::SpawnedRanks(const SpawnRequest& request, int nproc)
    : memory_(NodeMemory::create(nproc)),
      board_memory_(memory_.board.get()),
      board_(Board::attach(board_memory_.data())),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      stopping_(nproc) {
  if (!wake_) throw IoError("spawn: no room for one more descriptor: ", errno_text(errno));
  std::promise<void> started;
  const SignalsBlocked blocked;  // signals are for the caller's threads
  thread_ = std::thread([this, &request, nproc, &started] {
    try {
      start_all(request, nproc);
    } catch (...) {
      ranks_.clear();  // kills those that have started
      started.set_exception(std::current_exception());
      return;
    }
    started.set_value();  // request and promise are gone from here on
    watch();
  });
  try {
    started.get_future().get();
  } catch (...) {
    thread_.join();
    throw;
  }
}

void SpawnedRanks::wait() {
  if (thread_.joinable()) thread_.join();
  if (failure_ && !terminated_) throw *failure_;
}

void SpawnedRanks::terminate() {
  if (!thread_.joinable()) return;
  terminated_ = true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
  thread_.join();
}

void SpawnedRanks::start_all(SpawnRequest request, int nproc) {
  RankEnvironment rank{.world_size = nproc,
                       .master_port = free_port(),
                       .threads = parallel::default_threads(usable_cores(), nproc),
                       .keep_threads = true,
                       .node_memory = memory_.to_env(),
                       .columns = terminal_columns(STDOUT_FILENO)};
  const std::vector<std::string> base = request.environment;
  request.inherited = {memory_.board.get(), memory_.comm.get()};
  for (const auto& pool : memory_.pools) request.inherited.push_back(pool.get());
  for (rank.rank = 0; rank.rank < nproc; ++rank.rank) {
    request.environment = rank_environment(base, rank);
    ranks_.push_back(std::make_unique<Rank>(Rank{.child = Child(request)}));
    pids_.push_back(ranks_.back()->child.pid());
  }
}

void SpawnedRanks::watch() {
  while (!all_ended()) {
    wait_for_news();
    stopping_.act(
        *board_, monotonic_ns(), [this](size_t rank, int signal) { stop(*ranks_[rank], signal); }, [](size_t) {});
  }
  conclude();
  ranks_.clear();
}

bool SpawnedRanks::all_ended() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->status.has_value(); });
}

void SpawnedRanks::wait_for_news() {
  // poll ignores negative descriptors.
  std::vector<pollfd> entries = {{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
  for (const auto& rank : ranks_) {
    entries.push_back({.fd = rank->status ? -1 : rank->child.pidfd(), .events = POLLIN, .revents = 0});
  }
  if (poll(entries.data(), entries.size(), stopping_.wait_ms(monotonic_ns())) <= 0) return;
  uint64_t woken = 0;
  if (read(wake_.get(), &woken, sizeof woken) > 0) stopping_.begin_asking(monotonic_ns());
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (entries[i + 1].revents == 0) continue;
    Rank& rank = *ranks_[i];
    rank.status = rank.child.ended();
    rank.ended_ns = monotonic_ns();
    if (rank.status) rank.status = status_of(board_->ranks[i], *rank.status);
    if (rank.status && note_end(board_->ranks[i], *rank.status)) stopping_.begin(rank.ended_ns);
  }
}

void SpawnedRanks::stop(Rank& rank, int signal) {
  if (rank.status) return;
  rank.stopped = true;
  rank.child.signal_group(signal);
}

void SpawnedRanks::conclude() {
  Report report;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    RankOutcome outcome = outcome_on(board_->ranks[i], *ranks_[i]->status);
    outcome.rank = static_cast<int>(i);
    outcome.pid = pids_[i];
    outcome.ended = static_cast<double>(ranks_[i]->ended_ns) * 1e-9;
    outcome.stopped = ranks_[i]->stopped;
    report.outcomes.push_back(outcome);
  }
  const auto root = root_cause(report.outcomes);
  if (!root) return;
  report.root = *root;
  failure_.emplace(exit_code(report.outcomes), cat("spawn: ", headline(report)));
}

}  // namespace lockstep::launch
