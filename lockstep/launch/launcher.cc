#include "lockstep/launch/launcher.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/base/log.h"
#include "lockstep/train/folder/run_files.h"

namespace lockstep::launch {
namespace {

// Another build of a program may compute other bits.
std::string identity_of(const std::string& program) {
  struct stat file {};
  if (stat(program.c_str(), &file) != 0) return "";
  return cat(file.st_dev, ' ', file.st_ino, ' ', file.st_mtim.tv_sec, '.', file.st_mtim.tv_nsec);
}

}  // namespace

// What the logs keep may be left out on the terminal.
Launcher::Launcher(Options options)
    : options_(std::move(options)),
      terminal_(options_.out_fd, options_.err_fd,
                {.wraps = options_.own_workers, .leaves_out = !options_.log_dir.empty()}),
      policy_(options_.max_restarts, options_.own_workers),
      nproc_(options_.nproc),
      program_(identity_of(options_.command.at(0))) {
  if (options_.nproc < 1 || options_.nproc > kMaxLocalRanks) {
    throw ConfigError("--nproc ", options_.nproc, ": expected a whole number from 1 to ", kMaxLocalRanks);
  }
}

int Launcher::run() {
  const int code = try_until_done();
  attempt_->let_go();
  if (slots_ && stop_.at_once) slots_->keeper().abandon();
  for (const auto stream : {Terminal::Stream::kOut, Terminal::Stream::kErr}) terminal_.sink(stream).flush();
  constexpr std::chrono::seconds kForTheLogs{2};
  terminal_.logs().drain(kForTheLogs);
  if (code == 0 || is_answer(code)) check_output();
  return code;
}

// The signals are watched from the first attempt to the last: one that comes between two ends the run as well.
int Launcher::try_until_done() {
  SignalWatch signals;
  for (int number = 0;; ++number) {
    const Assignment next{number, nproc_, attempt_ ? attempt_->board().saved.get() : options_.saved,
                          attempt_ && attempt_->trained()};
    if (number > 0) await_port(signals);
    attempt_.reset();  // its memory goes before that of the next is made
    if (!slots_ && options_.saves) slots_.emplace(options_.nproc, *options_.saves);
    attempt_ = std::make_unique<Attempt>(options_, next, terminal_, stop_, slots_ ? &*slots_ : nullptr);
    attempt_->run(command_of(next), signals);
    counts_steps_ = counts_steps_ || attempt_->counts_steps();
    progress_ = attempt_->progress(counts_steps_);
    bool again = false;
    const int code = conclude(&again);
    if (!again) return code;
  }
}

// The port that all attempts have; 0: each has one of its own.
int Launcher::fixed_port() const { return options_.layout ? options_.layout->master_port : 0; }

// A port that the last attempt's ranks had may be theirs for a moment yet.
void Launcher::await_port(const SignalWatch& signals) {
  constexpr std::chrono::seconds kPatience{10};
  constexpr std::chrono::milliseconds kLook{50};
  const int port = fixed_port();
  if (port == 0 || options_.layout->nodes > 1 || is_free_port(port)) return;
  terminal_.say(cat("waiting: port ", port, " (--master-port) is taken yet"));
  for (const Deadline deadline(kPatience); !deadline.passed() && !signals.has_stop() && !is_free_port(port);)
    std::this_thread::sleep_for(kLook);
}

std::vector<std::string> Launcher::command_of(const Assignment& next) const {
  return next.number > 0 && options_.command_again ? options_.command_again(next.trained) : options_.command;
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

// The ranks were killed before they had saved.
int Launcher::conclude_grace() {
  const std::string& snapshot = attempt_->snapshot();
  const std::string& newest = attempt_->newest_saved();
  if (options_.stop_by == StopBy::kSignal && !is_saved()) {  // perhaps a program that saves nothing
    terminal_.say(
        cat("what did not end within the grace of ", static_cast<double>(options_.grace_ns) * 1e-9, " s was killed"));
    return 128 + stop_.signal;
  }
  terminal_.say(cat("the grace of ", static_cast<double>(options_.grace_ns) * 1e-9,
                    " s was too short for a checkpoint; ",
                    !snapshot.empty() ? cat("saved: ", snapshot)
                    : !newest.empty() ? newest
                                      : "no snapshot was there to be saved"));
  return snapshot.empty() ? 128 + stop_.signal : kExitStoppedOnRequest;
}

// Returns the exit code of the attempt, and whether there is to be another one.
int Launcher::conclude(bool* again) {
  const std::vector<RankOutcome> outcomes = attempt_->outcomes();
  const int code = exit_code(outcomes);
  const bool passed_on = stop_.request.asked() && options_.stop_by == StopBy::kSignal && !attempt_->failed();
  const bool ended_by_signal = (passed_on || stop_.at_once) && code != 0 && code != kExitStoppedOnRequest;
  if (stop_.out_of_grace && !stop_.failed_before && code != 0 && code != kExitStoppedOnRequest) return conclude_grace();
  if (ended_by_signal && !stop_.failed_before && !attempt_->failed_in_stop()) return 128 + stop_.signal;
  if (is_answer(code)) return code;
  const auto root = root_cause(outcomes);
  if (!root) return code;
  ended_by_quit_ = stop_.quit && outcomes[*root].status.signal == SIGQUIT;
  if (ended_by_quit_) return 128 + SIGQUIT;
  Report report = report_of(outcomes, *root);
  RestartPolicy::Verdict verdict = ask_policy(report);
  const bool stopped = verdict.again && stop_.request.asked();  // it ends where it would have gone on
  if (stopped) verdict = {.text = "none: the run was asked to stop"};
  report.restart = verdict.text;
  report.restarts = *again = verdict.again;
  tell(report);
  if (stopped && options_.stop_by == StopBy::kBoard && !stop_.at_once && is_saved()) return kExitStoppedOnRequest;
  return ended_by_signal ? 128 + stop_.signal : code;
}

Report Launcher::report_of(const std::vector<RankOutcome>& outcomes, size_t root) const {
  Report report{.outcomes = outcomes, .root = root};
  report.resume_command = options_.resume_command;
  attempt_->describe(report);
  return report;
}

// A rank that the machine has no memory for, and ranks that get no further, are tried in a smaller number, if that is
// allowed.
RestartPolicy::Verdict Launcher::ask_policy(const Report& report) {
  const RankOutcome& root = report.outcomes[report.root];
  const bool port_taken = !fixed_port() && attempt_->drawn_port_was_taken(root);
  if (options_.max_restarts == 0 && !port_taken) return {};
  if (!attempt_->at_rest()) return {.text = "none: the disk takes nothing"};
  if (options_.own_workers && identity_of(options_.command[0]) != program_) {
    return {.text = cat("none: ", options_.command[0], " was replaced since the run began")};
  }
  if (port_taken) {
    if (const auto again = policy_.next_after_taken_port()) return *again;
  }
  RestartPolicy::Verdict verdict = policy_.next(root, progress_);
  const bool too_many = !report.oom.empty() || policy_.without_progress() > 0;
  const int fewer = verdict.again && too_many && options_.fewer ? options_.fewer(nproc_) : 0;
  if (fewer == 0) return verdict;
  verdict.text += cat(", with ", fewer, fewer == 1 ? " rank in place of " : " ranks in place of ", nproc_);
  nproc_ = fewer;
  policy_.forgive();
  return verdict;
}

// Whether a run that goes on finds what the failed ranks had done.
bool Launcher::is_saved() const { return !attempt_->snapshot().empty() || !attempt_->newest_saved().empty(); }

void Launcher::tell(const Report& report) {
  const RankOutcome& root = report.outcomes[report.root];
  plain_mistake_ = is_plain_mistake(root);
  would_fail_again_ = plain_mistake_ || policy_.would_repeat(root);
  if (!plain_mistake_) write_report_file(to_json(report));
  std::string text = to_text(report);
  text.pop_back();  // say() adds the newline
  terminal_.say(text);
}

// attempt0.json, or the next number: a resumed run keeps the reports of its earlier attempts. A disk that takes no more
// files must not hide the report itself, so failures are passed over.
void Launcher::write_report_file(const std::string& json) const {
  std::string folder = options_.error_dir;
  if (folder.empty() && !attempt_->told_run().empty()) folder = train::RunFiles{attempt_->told_run()}.errors();
  if (folder.empty() || attempt_->must_not_write()) return;
  // `lockstep train` has made its own, in whose place another run's folder may be by now.
  std::error_code ignored;
  if (options_.layout) std::filesystem::create_directory(folder, ignored);
  for (int attempt = 0; attempt < 10000; ++attempt) {
    const std::string path = cat(folder, "/attempt", attempt, ".json");
    const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file && errno == EEXIST) continue;
    if (file) write_all(file.get(), json);
    return;
  }
}

}  // namespace lockstep::launch
