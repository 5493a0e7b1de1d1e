#include "lockstep/apps/commands/run_commands.h"

#include <limits>

#include "lockstep/apps/commands/plain_commands.h"
#include "lockstep/base/error.h"

namespace lockstep::apps {

std::string PsOptions::help(const std::string& rows) {
  return cat(R"(Usage: lockstep ps [DIR…] [options]

The runs under way in DIR, each a run's folder or one with runs in it (default: runs/), however they were started: recipe,
process, ranks, the last step and its loss, samples a second over the last steps, and since when it runs.
)",
             rows, R"(
Examples:
  lockstep ps
  lockstep ps --all /data/runs
)");
}

void PsOptions::declare(config::OptionSet& options) {
  options.section("Options");
  options.flag("all", "those that have ended, too, and how they ended", &all, config::Effect::kNone);
  declare_json(options, &json);
}

void PsOptions::take(const config::Given& line) { folders = line.words; }

std::string LogsOptions::help(const std::string& rows) {
  return cat(R"(Usage: lockstep logs RUN [-f] [options]

What a run printed: logs/launcher.log of one that was started with --detach, else logs/rank0.log. RUN is a run's folder, or
its name under runs/.
)",
             rows, R"(
Other names: -f (--follow), -n (--lines)

Examples:
  lockstep logs -f mnist-1
  lockstep logs runs/mnist-1 --rank 1 --lines 20
)");
}

void LogsOptions::declare(config::OptionSet& options) {
  options.section("Options");
  options.subject("run", &run, config::Effect::kNone);
  options.flag("follow", "go on as the log grows, until the run has ended", &follow, config::Effect::kNone);
  options.number("rank", "K", "this rank's log", &rank, 0, 1'000'000, config::Effect::kNone);
  options.number("lines", "N", "begin N lines before the log's end (default: at its beginning)", &lines, 0,
                 std::numeric_limits<int64_t>::max(), config::Effect::kNone);
}

void LogsOptions::take(const config::Given& line) { run = only_word(line, cat("lockstep ", kName), "RUN"); }

std::vector<config::Spelling> LogsOptions::spellings() {
  return {{.other = "-f", .option = "follow", .before = "true", .takes_value = false},
          {.other = "-n", .option = "lines"}};
}

std::string DashOptions::help(const std::string& rows) {
  return cat(R"(Usage: lockstep dash RUN [options]

A run's dashboard, under way or ended: how far it is, its curves, its failures and its log on a web page, served until
Ctrl-C. RUN is a run's folder, or its name under runs/. The page has no password: who reaches the address can read it.
)",
             rows, R"(
Examples:
  lockstep dash mnist-1
  lockstep dash runs/mnist-1 --out mnist-1.html
)");
}

void DashOptions::declare(config::OptionSet& options) {
  options.section("Options");
  options.subject("run", &run, config::Effect::kNone);
  options.number("port", "PORT", "where it listens (default: 7007, or the next free one)", &port, 1, 65535,
                 config::Effect::kNone);
  options.text("host", "ADDRESS", "of this machine; 0.0.0.0: all of its addresses, for everybody who reaches them",
               &host, config::Effect::kNone);
  options.text("out", "FILE", "write the page to a file, which needs no server, and end", &out, config::Effect::kNone);
}

void DashOptions::take(const config::Given& line) {
  run = only_word(line, cat("lockstep ", kName), "RUN");
  if (!out.empty() && (port || host != "127.0.0.1"))
    throw ConfigError("--out: a file is not served; leave out ", port ? "--port" : "--host");
}

std::string StopOptions::help(const std::string& rows) {
  return cat(R"(Usage: lockstep stop RUN [options]

Asks a run under way on this machine to end its step, save a checkpoint and end, as Ctrl-C does, waits for that, and says
what is saved. RUN is a run's folder, or its name under runs/.
)",
             rows, R"(
Example:
  lockstep stop mnist-1
)");
}

void StopOptions::declare(config::OptionSet& options) {
  options.section("Options");
  options.subject("run", &run, config::Effect::kNone);
  options.flag("now", "a second later its ranks are killed, saved or not", &now, config::Effect::kNone);
  options.number("timeout", "SECONDS", "that the run may take to end", &timeout, 0.001, 1e7, config::Effect::kNone);
}

void StopOptions::take(const config::Given& line) { run = only_word(line, cat("lockstep ", kName), "RUN"); }

}  // namespace lockstep::apps
