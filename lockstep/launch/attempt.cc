#include "lockstep/launch/attempt.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <optional>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/base/lease.h"
#include "lockstep/base/log.h"
#include "lockstep/base/process_state.h"
#include "lockstep/base/terminal.h"
#include "lockstep/launch/environment.h"
#include "lockstep/launch/launched_ranks.h"

namespace lockstep::launch {
namespace {

std::atomic<int64_t> launcher_lease_until_ns = 0;  // as the board's of the same name, for what the launcher writes

constexpr int kPatienceMs = 200;  // for processes that a rank has started and left behind at the end of a run

}  // namespace

Attempt::Attempt(const RunSpec& spec, const Assignment& assignment, Terminal& terminal, Stop& stop, KeptSlots* slots)
    : spec_(spec),
      assignment_(assignment),
      terminal_(terminal),
      stop_(stop),
      slots_(slots),
      group_(std::in_place, terminal),
      memory_(NodeMemory::create(assignment.nproc)),
      board_memory_(memory_.board.get()),
      board_(Board::attach(board_memory_.data())),
      failure_(assignment.nproc, spec.save_patience_ns) {
  if (slots_ != nullptr) slots_->begin_attempt(board_, assignment_.nproc);
  board_->saved.set(assignment_.saved);
  const int world_size = spec_.layout ? spec_.layout->size_with(assignment_.nproc) : assignment_.nproc;
  watch_.emplace(*board_, spec_.timeout_ns, rank_in_world(0), world_size);
  started_ns_ = board_->running_ns();
}

Attempt::~Attempt() {
  if (slots_ != nullptr) slots_->begin_attempt(nullptr, assignment_.nproc);
}

void Attempt::run(const std::vector<std::string>& command, SignalWatch& signals) {
  start_all(command);
  while (!group_->all_ended()) {
    end_from_outside();
    if (group_->wait(signals.descriptor(), wait_ms(), [this](RankProcess& p) { on_end(p); })) on_signals(signals);
    tell_of_first_step();
    if (slots_ != nullptr) slots_->watch_folder();
    end_others_in_stop();
    stop_others();
    end_grace();
    watch();
  }
  asked_others_ns_ = 0;  // this process may have stood still for longer than its lease
  ask_others();
  if (slots_ != nullptr && ended_badly() && !must_not_write_) slots_->hold_folder();
  await_saves(signals);
  save_snapshot(signals);
  group_->finish(failure_.begun() || stop_.request.asked() ? 0 : kPatienceMs);
}

void Attempt::start_all(const std::vector<std::string>& command) {
  const auto base = own_environment();
  const int slots = slots_ == nullptr ? -1 : slots_->descriptor();
  drawn_port_ = free_port();
  RankEnvironment rank{.world_size = assignment_.nproc,
                       .master_port = drawn_port_,
                       .threads = spec_.threads,
                       .keep_threads = spec_.keep_threads,
                       .node_memory = memory_.to_env(),
                       .run_lock = spec_.run_lock,
                       .snapshots = slots,
                       .attempt = assignment_.number,
                       .max_restarts = spec_.max_restarts,
                       .columns = terminal_columns(spec_.out_fd)};
  board_->columns.store(rank.columns);
  ask_others();
  // A program asks isatty() whether a person reads along, so it gets a terminal only where there is one.
  const bool pty = spec_.lines_at_once && rank.columns > 0;
  rank.by_line = spec_.lines_at_once && !pty;
  rank.plain = pty && !spec_.log_dir.empty();
  SpawnRequest request{.command = command, .environment = {}, .inherited = {}, .pty = pty, .columns = rank.columns};
  request.inherited = {memory_.board.get(), memory_.comm.get()};
  for (const auto& pool : memory_.pools) request.inherited.push_back(pool.get());
  for (const int fd : {spec_.run_lock, slots}) {
    if (fd >= 0) request.inherited.push_back(fd);
  }
  if (spec_.layout) launched_.emplace(*spec_.layout, assignment_.nproc, assignment_.number, rank.master_port);
  for (rank.rank = 0; rank.rank < assignment_.nproc; ++rank.rank) {
    request.command = command;
    request.environment = rank_environment(base, rank);
    set_variable(request.environment, Logger::kNamed, "1");
    request.in = rank.rank == 0 ? spec_.in_fd : -1;
    RankOutput::Options output{.prefix = assignment_.nproc > 1 ? cat("[rank ", rank.rank, "] ") : "",
                               .raw_out = rank.rank == 0,
                               .out_to_err = spec_.only_rank0_on_stdout,
                               .silent = spec_.quiet,
                               .log_path = spec_.log_dir.empty() ? "" : cat(spec_.log_dir, "/rank", rank.rank, ".log")};
    if (launched_) launched_->complete(rank.rank, request, output);
    group_->start(rank.rank, request, std::move(output));
  }
}

void Attempt::on_signals(SignalWatch& signals) {
  while (const auto signal = signals.next()) on_signal(signals, *signal);
}

void Attempt::on_end(RankProcess& process) {
  BoardRank& said = board_->ranks[static_cast<size_t>(process.rank)];
  process.ended_ns = board_->running_ns();
  if (hang_ && hang_->rank == process.rank && process.status->signal == SIGKILL) {
    process.status = ExitStatus{.code = DesyncError::kExitCode};
    process.stopped = false;  // it is the one that failed
  }
  process.status = status_of(said, *process.status);
  const bool failed = note_end(said, *process.status);
  const bool was_asked = stop_.request.asked() && spec_.stop_by == StopBy::kSignal;
  if (!failed) return;
  const bool for_others = process.status->exit_code() == CommError::kExitCode;
  // The first one that ends may have heard of it from one that unwinds yet, and will say whom it has missed.
  if (for_others && !was_asked && !hang_ && (failed_for_others_ || !failure_.begun())) {
    if (const auto hang = watch_->waited_for(running(), monotonic_ns())) return end_hang(*hang);
  }
  if (failure_.begun()) return;
  if (was_asked) return note_failure_in_stop(process);
  failed_for_others_ = for_others;
  note_first_failure(process);
  failure_.begin(monotonic_ns());
  note_halted();
}

void Attempt::note_first_failure(const RankProcess& process) {
  first_failure_ = cat("rank ", rank_in_world(process.rank), ' ', process.status->text());
  failed_ns_ = process.ended_ns;
}

void Attempt::note_halted() {
  for (const auto& each : group_->ranks()) each->halted = !each->status && process_stopped(each->child.pid());
}

void Attempt::on_signal(const SignalWatch& signals, int signal) {
  switch (signal) {
    case SIGCHLD:
      if (group_->guard_lost()) {
        terminal_.say(
            "warning: lockstep-guard was killed, the run goes on; if the launcher is killed as well, programs that the "
            "ranks have started may be left");
      }
      return group_->reap_strays();
    case SIGQUIT:
      return ask_for_stacks();
    case SIGWINCH:
      return resize();
    case SIGTSTP:
      return pause(signals);
    default:
      return on_stop_signal(signal);
  }
}

// SIGSTOP, which no program can leave unheard: ranks that went on would wait for those that stop.
void Attempt::pause(const SignalWatch& signals) {
  const int64_t began_ns = monotonic_ns();
  group_->signal_running(SIGSTOP);
  signals.stop_here();
  board_->paused_ns.fetch_add(monotonic_ns() - began_ns);
  if (failed_in_stop_ns_ != 0) failed_in_stop_ns_ += monotonic_ns() - began_ns;
  group_->signal_running(SIGCONT);
  failure_.resumed(monotonic_ns());
  watch_->resumed(monotonic_ns());
  resize();
}

void Attempt::resize() {
  const int columns = terminal_.sink(Terminal::Stream::kOut).columns();
  if (columns == 0 || columns == board_->columns.load()) return;
  board_->columns.store(columns);
  group_->resize(columns);
}

void Attempt::tell_of_first_step() {
  if (!spec_.on_first_step || assignment_.trained || told_of_first_step_ || board_->first_step_ns.load() == 0) return;
  told_of_first_step_ = true;
  spec_.on_first_step();
}

int Attempt::wait_ms() const {
  const int64_t now_ns = monotonic_ns();
  const int signal_ms = failure_.wait_ms(now_ns);
  constexpr int kAskMs = 100;  // whether ranks must end from outside, or have told their folder
  const bool asks = spec_.must_end || (slots_ != nullptr && slots_->awaits_folder());
  const int look_ms = asks ? kAskMs : ProgressWatch::kLookMs;
  const int least = signal_ms < 0 ? look_ms : std::min(signal_ms, look_ms);
  if (spec_.grace_ns == 0 || stop_.first_ns == 0 || stop_.out_of_grace) return least;
  const auto left = static_cast<int>(std::max<int64_t>(0, (stop_.first_ns + spec_.grace_ns - now_ns) / 1'000'000 + 1));
  return std::min(least, left);
}

// Our ranks' main threads write it to their logs; other programs do with the signal what they like.
void Attempt::ask_for_stacks() {
  if (!spec_.own_workers) {
    stop_.quit = true;
    return group_->signal_running(SIGQUIT);
  }
  for (const auto& each : group_->ranks()) ask_for_stack(*each);
}

void Attempt::ask_for_stack(const RankProcess& process) const {
  const BoardRank& rank = board_->ranks[static_cast<size_t>(process.rank)];
  const pid_t pid = rank.pid.load();  // the program's, which a script may have started
  const bool hears = rank.state.load() == RankState::kRunning && rank.writes_stack.load() != 0;
  const bool is_of_rank = getpgid(pid) == process.child.pid();  // and no stranger with the number of one that has ended
  if (hears && is_of_rank && !process.status) syscall(SYS_tgkill, pid, pid, SIGUSR2);
}

// By local rank, whether its process has not ended.
std::vector<bool> Attempt::running() const {
  std::vector<bool> running;
  for (const auto& process : group_->ranks()) running.push_back(!process->status);
  return running;
}

// Looks at the ranks' progress. One that hangs is killed, and has failed by that; the others are stopped as after any
// failure.
void Attempt::watch() {
  const int64_t now_ns = monotonic_ns();
  if (failure_.begun() || now_ns - looked_ns_ < int64_t{ProgressWatch::kLookMs} * 1'000'000) return;
  constexpr int64_t kGapNs = 5'000'000'000;  // this process was frozen, and the ranks perhaps with it
  if (looked_ns_ != 0 && now_ns - looked_ns_ > kGapNs) watch_->resumed(now_ns);
  looked_ns_ = now_ns;
  const ProgressWatch::Findings found = watch_->look(running(), now_ns);
  for (const std::string& line : found.lines) terminal_.say(line);
  for (const int rank : found.stacks) ask_for_stack(*group_->ranks()[static_cast<size_t>(rank)]);
  if (found.hang) end_hang(*found.hang);
}

// Whether the ranks must end; nothing where there is nobody to ask, or it was asked a moment ago. What the ranks and
// the launcher write holds by the lease that comes with the answer.
std::optional<MustEnd> Attempt::ask_others() {
  constexpr int64_t kAskEveryNs = 100'000'000;
  const int64_t now_ns = monotonic_ns();
  if (!spec_.must_end || (asked_others_ns_ != 0 && now_ns - asked_others_ns_ < kAskEveryNs)) return std::nullopt;
  asked_others_ns_ = now_ns;
  MustEnd must = spec_.must_end();
  board_->lease_until_ns = launcher_lease_until_ns = must.lease_until_ns;
  act_by_lease(&launcher_lease_until_ns);
  must_not_write_ = must_not_write_ || must.at_once;
  return must;
}

// No rank of this node has failed: none is the root cause, unless the others have ended because one hangs here.
void Attempt::end_from_outside() {
  const auto asked = ask_others();
  if (!asked) return;
  const MustEnd& must = *asked;
  // Ranks that have been asked to stop save, and end by themselves.
  if (must.why.empty() || (stop_.request.asked() && !must.at_once)) return;
  if (!failure_.begun()) {
    terminal_.say(cat("ending the ranks of this node: ", must.why));
    const auto hang = must.for_a_peer ? watch_->given_up_elsewhere(running(), monotonic_ns()) : std::nullopt;
    if (hang) return end_hang(*hang);
    first_failure_ = must.why;
    failed_ns_ = board_->running_ns();
    failure_.begin(monotonic_ns());
  }
  for (size_t rank = 0; must.at_once && rank < group_->ranks().size(); ++rank) group_->stop(rank, SIGKILL);
}

// The failure is the hang, whenever its process ends: in a call that the kernel does not end, a signal waits.
void Attempt::end_hang(const ProgressWatch::Hang& hang) {
  hang_ = hang;
  board_->ranks[static_cast<size_t>(hang.rank)].fail(DesyncError::kExitCode, hang.error);
  first_failure_ = cat("rank ", rank_in_world(hang.rank), " has hung");
  if (!failure_.begun()) failed_ns_ = board_->running_ns();
  failure_.begin(monotonic_ns());
  note_halted();
  group_->ranks()[static_cast<size_t>(hang.rank)]->child.signal_group(SIGKILL);
}

RankOutcome Attempt::outcome_of(const RankProcess& process) const {
  RankOutcome outcome = outcome_on(board_->ranks[static_cast<size_t>(process.rank)], *process.status);
  outcome.rank = rank_in_world(process.rank);
  outcome.pid = process.child.pid();
  outcome.ended = static_cast<double>(process.ended_ns - started_ns_) * 1e-9;
  outcome.stopped = process.stopped;
  outcome.halted = process.halted;
  outcome.spared = failure_.has_spared(static_cast<size_t>(process.rank));
  outcome.trained = trained();
  const bool by_itself = outcome.error.empty() && outcome.status.signal == 0;
  outcome.lost_peer = by_itself && tells_of_lost_peer(process.output.last_lines());
  return outcome;
}

std::vector<RankOutcome> Attempt::outcomes() const {
  std::vector<RankOutcome> outcomes;
  for (const auto& process : group_->ranks()) outcomes.push_back(outcome_of(*process));
  return outcomes;
}

// Another port would not help a command whose own program has chosen one, and what came before would be done twice.
bool Attempt::drawn_port_was_taken(const RankOutcome& root) const {
  const BoardRank& rank = board_->ranks[0];
  return root.status.exit_code() == CommError::kExitCode && rank.worlds.load() <= 1 && !trained() &&
         root.error.find(cat(kPortTaken, drawn_port_, ':')) != std::string::npos;
}

bool Attempt::counts_steps() const {
  const auto ranks = board_->ranks.begin();
  return spec_.own_workers || std::any_of(ranks, ranks + assignment_.nproc,
                                          [](const BoardRank& rank) { return rank.counts_steps.load() != 0; });
}

int64_t Attempt::progress(bool counts_steps) const {
  int64_t furthest = snapshot_step_;
  for (int rank = 0; rank < assignment_.nproc; ++rank) {
    const auto step = static_cast<int64_t>(board_->ranks[static_cast<size_t>(rank)].step.load());
    if (step > 0 || counts_steps) furthest = std::max(furthest, step);
  }
  return furthest;
}

void Attempt::describe(Report& report) const {
  RankOutput& output = group_->ranks()[report.root]->output;
  report.failed = static_cast<double>(failed_ns_ - started_ns_) * 1e-9;
  report.oom = report.outcomes[report.root].status.signal == SIGKILL ? oom_.verdict() : "";
  report.saved = board_->saved.get();
  report.log_path = output.log_path();
  report.last_lines = output.last_lines();
  if (launched_) read_recorded_error(launched_->error_file(static_cast<int>(report.root)), report);
  output.note(cat("error: ", headline(report)));
}

}  // namespace lockstep::launch
