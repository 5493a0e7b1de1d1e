// pack, data and draw: a data set packed, looked at and made, by one process.
#include "lockstep/apps/commands/data_commands.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/datasets/drawn/draw_files.h"
#include "lockstep/datasets/packing/pack_text.h"
#include "lockstep/datasets/survey/contact_sheet.h"
#include "lockstep/datasets/survey/survey_text.h"

namespace lockstep::worker {
namespace {

// The signal that asked to stop; 0: none. A signal handler can reach nothing but this.
volatile sig_atomic_t g_signal = 0;

void watch_signals() {
  signal(SIGPIPE, SIG_IGN);
  struct sigaction action {};
  action.sa_handler = [](int number) { g_signal = number; };
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction current {};
    sigaction(signal, nullptr, &current);
    if (current.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);  // nohup stays in force
  }
}

// Names of files and classes are not always UTF-8.
constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;

bool stops() { return g_signal != 0; }

// A line that says how far it is, where somebody reads along; it goes with its owner.
class Ticker {
 public:
  explicit Ticker(bool quiet)
      : shown_(!quiet && (env("LOCKSTEP_PROGRESS").value_or("") == "tty" ||
                          (!env("LOCKSTEP_PROGRESS") && isatty(STDOUT_FILENO) == 1))) {}
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;
  ~Ticker() { clear(); }

  void update(int64_t done, int64_t samples, const std::string& more) {
    constexpr int64_t kBetweenNs = 100'000'000;
    const int64_t now = monotonic_ns();
    if (!shown_ || now < drawn_ns_ + kBetweenNs) return;
    drawn_ns_ = now;
    const double rate = static_cast<double>(done) / watch_.seconds();
    const auto left = static_cast<int64_t>(static_cast<double>(samples - done) / rate);
    char text[160];
    std::snprintf(text, sizeof text, "\r\033[K%lld of %lld samples%s, %.0f a second, %lld:%02lld left",
                  static_cast<long long>(done), static_cast<long long>(samples), more.c_str(), rate,
                  static_cast<long long>(left / 60), static_cast<long long>(left % 60));
    print(text);
  }

  void clear() const {
    if (drawn_ns_ == 0) return;
    try {
      print("\r\033[K");
    } catch (const IoError&) {  // what is said next meets the same fault
    }
  }

 private:
  bool shown_;
  Stopwatch watch_;
  int64_t drawn_ns_ = 0;
};

}  // namespace

int pack(const Arguments& args) {
  apps::Command<apps::PackCommand> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  const apps::PackCommand& options = command.options();
  watch_signals();
  const Stopwatch watch;
  std::optional<datasets::PackResult> result;
  {
    Ticker ticker(options.json);
    const auto on_progress = [&](const datasets::PackProgress& at) {
      ticker.update(at.done, at.samples, ", " + human_bytes(at.bytes));
    };
    result = datasets::pack(options.pack, {.on_progress = on_progress, .stops = stops});
  }
  if (!result) return 128 + g_signal;
  print(options.json ? datasets::json_of(*result, watch.seconds()).dump(1, ' ', false, kReplace) + "\n"
                     : datasets::text_of(*result, options.pack.out, watch.seconds()));
  return 0;
}

int draw(const Arguments& args) {
  apps::Command<apps::DrawCommand> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  const apps::DrawCommand& options = command.options();
  watch_signals();
  int64_t drawn = 0;
  {
    Ticker ticker(options.json);
    const auto on_progress = [&](int64_t done, int64_t samples) { ticker.update(done, samples, ""); };
    drawn = datasets::draw_files(options.draw, on_progress, stops);
  }
  if (g_signal != 0) return 128 + g_signal;
  print(options.json
            ? nlohmann::ordered_json{{"folder", options.draw.out}, {"samples", drawn}}.dump(1, ' ', false, kReplace) +
                  "\n"
            : cat(shown(options.draw.out), ": ", drawn, drawn == 1 ? " image\n" : " images\n"));
  return 0;
}

int data(const Arguments& args) {
  apps::Command<apps::DataCommand> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  const apps::DataCommand& options = command.options();
  watch_signals();
  std::optional<datasets::Survey> found;
  {
    Ticker ticker(options.json);
    const auto on_progress = [&](int64_t done, int64_t samples) { ticker.update(done, samples, ""); };
    found = datasets::survey(options.survey, {.on_progress = on_progress, .stops = stops});
  }
  if (!found) return 128 + g_signal;
  auto json = datasets::json_of(*found);
  std::string text = datasets::text_of(*found);
  if (!options.survey.sheet.empty() && found->trainable()) {
    const datasets::ContactSheet sheet = datasets::contact_sheet(*found, options.survey);
    datasets::write_sheet(sheet, options.survey.sheet);
    json["sheet"] = {{"file", options.survey.sheet}, {"samples", sheet.samples}};
    text += datasets::text_of(sheet, options.survey.sheet);
  }
  print(options.json ? json.dump(1, ' ', false, kReplace) + "\n" : text);
  if (found->trainable()) return 0;
  const size_t problems = found->problems.size();
  throw DataError(shown(options.survey.data), ": ", problems, problems == 1 ? " problem" : " problems",
                  options.survey.sheet.empty() ? "" : ", and no sheet was drawn", "; training would not get through");
}

}  // namespace lockstep::worker
