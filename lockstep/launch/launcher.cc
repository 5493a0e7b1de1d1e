#include "lockstep/launch/launcher.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/terminal.h"
#include "lockstep/launch/environment.h"

namespace lockstep::launch {
namespace {

constexpr int kPatienceMs = 200;  // for processes that a rank has started and left behind at the end of a run

Board* board_in(const Mapping& memory) { return Board::attach(memory.data()); }

}  // namespace

// What the logs keep may be left out on the terminal.
Launcher::Launcher(Options options)
    : options_(std::move(options)),
      terminal_(options_.out_fd, options_.err_fd,
                {.wraps = options_.own_workers, .leaves_out = !options_.log_dir.empty()}),
      failure_(std::clamp(options_.nproc, 1, kMaxLocalRanks), options_.save_patience_ns) {
  if (options_.nproc < 1 || options_.nproc > kMaxLocalRanks) {
    throw ConfigError("--nproc ", options_.nproc, ": expected a whole number from 1 to ", kMaxLocalRanks);
  }
}

int Launcher::run() {
  int code = 0;
  {
    const OomWatch oom;
    RankGroup group(terminal_);  // before the shared memory, which its guard must not hold
    memory_ = NodeMemory::create(options_.nproc);
    board_memory_ = Mapping(memory_.board.get());
    board_ = board_in(board_memory_);
    if (!options_.saves.folder.empty()) keep_slots();
    started_ns_ = board_->running_ns();
    supervise(group);
    code = conclude(group, oom);
    if (keeper_ && at_once_) keeper_->abandon();
    keeper_.reset();
  }
  for (const auto stream : {Terminal::Stream::kOut, Terminal::Stream::kErr}) terminal_.sink(stream).flush();
  constexpr std::chrono::seconds kForTheLogs{2};
  terminal_.logs().drain(kForTheLogs);
  if (code == 0 || is_answer(code)) check_output();
  return code;
}

bool Launcher::is_answer(int code) const { return code != 0 && code == options_.answer && options_.nproc == 1; }

// Output that went nowhere is an error where nothing else keeps it.
void Launcher::check_output() {
  if (!terminal_.sink(Terminal::Stream::kOut).lost()) return;
  if (options_.log_dir.empty()) {
    throw IoError("standard output: what the command has to say can't be written (a full disk?)");
  }
  terminal_.say(cat("warning: standard output: can't be written (a full disk?); the output is in ", options_.log_dir));
  terminal_.sink(Terminal::Stream::kErr).flush();
}

void Launcher::start_all(RankGroup& group) {
  const auto base = own_environment();
  RankEnvironment rank{.world_size = options_.nproc,
                       .master_port = free_port(),
                       .threads = options_.threads,
                       .keep_threads = options_.keep_threads,
                       .node_memory = memory_.to_env(),
                       .run_lock = options_.run_lock,
                       .snapshots = slot_memory_.get(),
                       .columns = terminal_columns(options_.out_fd)};
  board_->columns.store(rank.columns);
  // A program asks isatty() whether a person reads along, so it gets a terminal only where there is one.
  const bool pty = options_.lines_at_once && rank.columns > 0;
  rank.by_line = options_.lines_at_once && !pty;
  rank.plain = pty && !options_.log_dir.empty();
  SpawnRequest request{
      .command = options_.command, .environment = {}, .inherited = {}, .pty = pty, .columns = rank.columns};
  request.inherited = {memory_.board.get(), memory_.comm.get()};
  for (const auto& pool : memory_.pools) request.inherited.push_back(pool.get());
  for (const int fd : {options_.run_lock, slot_memory_.get()}) {
    if (fd >= 0) request.inherited.push_back(fd);
  }
  for (rank.rank = 0; rank.rank < options_.nproc; ++rank.rank) {
    request.environment = rank_environment(base, rank);
    request.in = rank.rank == 0 ? options_.in_fd : -1;
    group.start(rank.rank, request,
                {.prefix = options_.nproc > 1 ? cat("[rank ", rank.rank, "] ") : "",
                 .raw_out = rank.rank == 0,
                 .out_to_err = options_.only_rank0_on_stdout,
                 .silent = options_.quiet,
                 .log_path = options_.log_dir.empty() ? "" : cat(options_.log_dir, "/rank", rank.rank, ".log")});
  }
}

void Launcher::supervise(RankGroup& group) {
  SignalWatch signals;
  start_all(group);
  while (!group.all_ended()) {
    if (group.wait(signals.descriptor(), wait_ms(), [&](RankProcess& p) { on_end(p); })) on_signals(group, signals);
    stop_others(group);
    end_grace(group);
  }
  await_saves(group, signals);
  save_snapshot(group, signals);
  group.finish(failure_.begun() || stop_.asked() ? 0 : kPatienceMs);
}

void Launcher::on_signals(RankGroup& group, SignalWatch& signals) {
  while (const auto signal = signals.next()) on_signal(group, signals, *signal);
}

void Launcher::on_end(RankProcess& process) {
  BoardRank& said = board_->ranks[static_cast<size_t>(process.rank)];
  process.ended_ns = board_->running_ns();
  process.status = status_of(said, *process.status);
  const bool failed = note_end(said, *process.status);
  const bool was_asked = stop_.asked() && options_.stop_by == StopBy::kSignal;
  if (!failed || was_asked) return;
  if (failure_.begun()) return;
  first_failure_ = cat("rank ", process.rank, ' ', process.status->text());
  failed_ns_ = process.ended_ns;
  failure_.begin(monotonic_ns());
}

void Launcher::on_signal(RankGroup& group, const SignalWatch& signals, int signal) {
  switch (signal) {
    case SIGCHLD:
      if (group.guard_lost()) {
        terminal_.say(
            "warning: lockstep-guard was killed, the run goes on; if the launcher is killed as well, programs that the "
            "ranks have started may be left");
      }
      return group.reap_strays();
    case SIGWINCH:
      return resize(group);
    case SIGTSTP:
      return pause(group, signals);
    default:
      return on_stop_signal(group, signal);
  }
}

// SIGSTOP, which no program can leave unheard: ranks that went on would wait for those that stop.
void Launcher::pause(RankGroup& group, const SignalWatch& signals) {
  const int64_t began_ns = monotonic_ns();
  group.signal_running(SIGSTOP);
  signals.stop_here();
  board_->paused_ns.fetch_add(monotonic_ns() - began_ns);
  group.signal_running(SIGCONT);
  failure_.resumed(monotonic_ns());
  resize(group);
}

void Launcher::resize(RankGroup& group) {
  const int columns = terminal_.sink(Terminal::Stream::kOut).columns();
  if (columns == 0 || columns == board_->columns.load()) return;
  board_->columns.store(columns);
  group.resize(columns);
}

void Launcher::on_stop_signal(RankGroup& group, int signal) {
  // To other programs it may mean anything.
  if (signal == SIGUSR1 && options_.stop_by == StopBy::kSignal) return group.signal_running(signal);
  const auto meaning = stop_.take(signal);
  if (meaning == StopRequest::Meaning::kTheSame) return;
  stop_signal_ = signal;
  if (stop_ns_ == 0) stop_ns_ = monotonic_ns();
  if (meaning == StopRequest::Meaning::kOnceMore) {
    at_once_ = true;
    failed_before_ = failure_.begun();
    signal_all(group, SIGKILL);
  } else if (options_.stop_by == StopBy::kSignal) {
    signal_all(group, signal);
  } else {
    board_->stop_requested.store(1);
    if (!failure_.begun()) terminal_.say("stopping after this step, with a checkpoint; once more stops at once");
  }
}

// A rank that ends by this after another one's failure is not the cause.
void Launcher::signal_all(RankGroup& group, int signal) {
  if (!failure_.begun()) return group.signal_running(signal);
  for (size_t rank = 0; rank < group.ranks().size(); ++rank) group.stop(rank, signal);
}

void Launcher::stop_others(RankGroup& group) {
  failure_.act(
      *board_, monotonic_ns(), [&](size_t rank, int signal) { group.stop(rank, signal); },
      [this](size_t rank) { tell_of_save(rank); });
}

void Launcher::tell_of_save(size_t rank) {
  if (std::exchange(told_of_save_, true)) return;
  const std::string doing = board_->ranks[rank].doing.get();
  terminal_.say(cat(first_failure_, "; waiting for rank ", rank, " (", doing.empty() ? "saving a checkpoint" : doing,
                    "), for at most ", options_.save_patience_ns / 1'000'000'000, " s without progress"));
}

void Launcher::keep_slots() {
  slot_memory_ = checkpoint::Slots::create(options_.nproc);
  slots_ = std::make_shared<checkpoint::Slots>(slot_memory_.get());
  checkpoint::Keeper::Options saves = options_.saves;
  saves.on_saved = [board = board_](const std::string& path) { board->saved.set(cat("checkpoint ", path)); };
  keeper_.emplace(slots_, std::move(saves));
  slots_->header().kept.store(1);
}

int Launcher::wait_ms() const {
  const int64_t now_ns = monotonic_ns();
  const int least = failure_.wait_ms(now_ns);
  if (options_.grace_ns == 0 || stop_ns_ == 0 || out_of_grace_) return least;
  const auto left = static_cast<int>(std::max<int64_t>(0, (stop_ns_ + options_.grace_ns - now_ns) / 1'000'000 + 1));
  return least < 0 ? left : std::min(least, left);
}

void Launcher::end_grace(RankGroup& group) {
  if (options_.grace_ns == 0 || stop_ns_ == 0 || monotonic_ns() - stop_ns_ < options_.grace_ns) return;
  if (std::exchange(out_of_grace_, true)) return;
  failed_before_ = failure_.begun();
  signal_all(group, SIGKILL);
}

// The files that the ranks have left in memory. A disk that takes nothing for a minute is waited for no longer.
void Launcher::await_saves(RankGroup& group, SignalWatch& signals) {
  if (!keeper_) return;
  constexpr int kNapMs = 20;
  constexpr double kTold = 1;  // seconds
  const double patience = static_cast<double>(options_.save_patience_ns) * 1e-9;
  uint64_t last = 0;
  bool told = false;
  Stopwatch since_end, since_progress;
  while (!keeper_->at_rest() && !at_once_ && since_progress.seconds() < patience) {
    if (since_end.seconds() > kTold && !std::exchange(told, true)) {
      terminal_.say(cat("waiting for a checkpoint to be on the disk, for at most ", patience, " s without progress"));
    }
    const uint64_t progress = slots_->header().progress.load();
    if (progress != std::exchange(last, progress)) since_progress.restart();
    if (!group.wait(signals.descriptor(), kNapMs, [](RankProcess&) {})) continue;
    on_signals(group, signals);
    since_progress.restart();  // a pause (Ctrl-Z) stops the keeper, too
  }
}

// The newest snapshot of ranks that have failed, or were killed when their grace was over. The keeper's thread writes
// it, so that signals are heard and a disk that hangs is not waited for without end.
void Launcher::save_snapshot(RankGroup& group, SignalWatch& signals) {
  if (!failure_.begun() || at_once_ || !keeper_ || !keeper_->at_rest()) return;
  const uint32_t failed = slots_->header().failed_in_row.load();
  const auto asked = keeper_->ask_newest();
  if (!asked) return;
  if (asked->was_there) {
    newest_saved_ = cat("the newest checkpoint is that of step ", asked->step, ", ", asked->path);
    return;
  }
  await_saves(group, signals);
  if (!keeper_->at_rest() || slots_->header().failed_in_row.load() > failed) {
    const std::string why = keeper_->at_rest() ? slots_->header().error.get() : "the disk takes nothing";
    return terminal_.say(cat("warning: the newest snapshot was not saved: ", why));
  }
  snapshot_ = cat("snapshot of step ", asked->step, ", ", asked->path);
  board_->saved.set(snapshot_);
}

// The ranks were killed before they had saved.
int Launcher::conclude_grace() {
  terminal_.say(cat("the grace of ", static_cast<double>(options_.grace_ns) * 1e-9,
                    " s was too short for a checkpoint; ",
                    !snapshot_.empty()       ? cat("saved: ", snapshot_)
                    : !newest_saved_.empty() ? newest_saved_
                                             : "no snapshot was there to be saved"));
  return snapshot_.empty() ? 128 + stop_signal_ : kExitStoppedOnRequest;
}

RankOutcome Launcher::outcome_of(const RankProcess& process) const {
  RankOutcome outcome = outcome_on(board_->ranks[static_cast<size_t>(process.rank)], *process.status);
  outcome.rank = process.rank;
  outcome.pid = process.child.pid();
  outcome.ended = static_cast<double>(process.ended_ns - started_ns_) * 1e-9;
  outcome.stopped = process.stopped;
  outcome.spared = failure_.has_spared(static_cast<size_t>(process.rank));
  outcome.trained = board_->first_step_ns.load() != 0;
  return outcome;
}

int Launcher::conclude(RankGroup& group, const OomWatch& oom) {
  Report report;
  for (const auto& process : group.ranks()) report.outcomes.push_back(outcome_of(*process));
  const int code = exit_code(report.outcomes);
  const bool passed_on = stop_.asked() && options_.stop_by == StopBy::kSignal && !failure_.begun();
  const bool ended_by_signal = (passed_on || at_once_) && code != 0 && code != kExitStoppedOnRequest;
  if (out_of_grace_ && !failed_before_ && code != 0 && code != kExitStoppedOnRequest) return conclude_grace();
  if (ended_by_signal && !failed_before_) return 128 + stop_signal_;
  if (is_answer(code)) return code;
  const auto root = root_cause(report.outcomes);
  if (!root) return code;
  report.root = *root;
  RankOutput& output = group.ranks()[*root]->output;
  report.oom = report.outcomes[*root].status.signal == SIGKILL ? oom.verdict() : "";
  report.failed = static_cast<double>(failed_ns_ - started_ns_) * 1e-9;
  report.saved = board_->saved.get();
  report.log_path = output.log_path();
  report.last_lines = output.last_lines();
  report.resume_command = options_.resume_command;
  output.note(cat("error: ", headline(report)));
  plain_mistake_ = is_plain_mistake(report.outcomes[*root]);
  if (!plain_mistake_) write_report_file(to_json(report));
  std::string text = to_text(report);
  text.pop_back();  // say() adds the newline
  terminal_.say(text);
  return ended_by_signal ? 128 + stop_signal_ : code;
}

// attempt0.json, or the next number: a resumed run keeps the reports of its earlier attempts. A disk that takes no more
// files must not hide the report itself, so failures are passed over.
void Launcher::write_report_file(const std::string& json) const {
  if (options_.error_dir.empty()) return;
  for (int attempt = 0; attempt < 10000; ++attempt) {
    const std::string path = cat(options_.error_dir, "/attempt", attempt, ".json");
    const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file && errno == EEXIST) continue;
    if (file) write_all(file.get(), json);
    return;
  }
}

}  // namespace lockstep::launch
