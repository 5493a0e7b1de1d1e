#include "lockstep/apps/commands/plain_commands.h"

#include "lockstep/base/error.h"

namespace lockstep::apps {

void declare_json(config::OptionSet& options, bool* json) {
  options.flag("json", "machine-readable output", json, config::Effect::kNone);
}

std::string InspectOptions::help(const std::string& rows) {
  return cat(R"(Usage: lockstep inspect FILE|DIR [options]

What a checkpoint, or the newest one in a folder (a run's, or a loop's checkpoints/), holds, as a tree: of tensors the
type, shape, bytes, least, mean and largest element, standard deviation (torch.std's), the start of the SHA-256 of their
elements, and how many NaNs and infinities they have. The statistics are of the finite elements, of complex numbers those
of the magnitudes. With --json every leaf by its path, {"dtype", "shape", "sha256"} or {"value"}.
)",
             rows, R"(
Examples:
  lockstep inspect runs/mnist-1 --only model
  lockstep inspect model.pt --json --stats --only '*.weight'
)");
}

void InspectOptions::declare(config::OptionSet& options) {
  options.section("Options");
  options.subject("file", &file, config::Effect::kNone);
  options.text("only", "PATTERN", "paths that begin so; or that match it, if it has a * or a ?", &only,
               config::Effect::kNone);
  options.flag("stats", "with --json: bytes, min, max, mean, std, nan and inf as well", &stats, config::Effect::kNone);
  options.flag("ignore-unknown", "show objects of unknown classes by their names (nothing in a file is called)",
               &ignore_unknown, config::Effect::kNone);
  declare_json(options, &json);
}

void InspectOptions::take(const config::Given& line) { file = only_word(line, cat("lockstep ", kName), "FILE"); }

std::string LaunchOptions::help(const std::string& rows) {
  return cat(R"(Usage: lockstep launch [options] PROGRAM ARGS…

Starts PROGRAM once a rank with RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT set, as
torchrun does; and OMP_NUM_THREADS by --threads, where it is not set. When one fails the others are stopped. A .py file
is run by python3.
)",
             rows, R"(
Example:
  lockstep launch --nproc 4 train.py --epochs 3
)");
}

void LaunchOptions::declare(config::OptionSet& options) {
  options.section("Options");
  processes.declare(options);
  options.text("log-dir", "DIR", "keep each process's output in DIR/rank<k>.log", &log_dir, config::Effect::kNone);
}

void LaunchOptions::take(const config::Given& line) {
  program = line.words;
  if (program.empty()) throw ConfigError("launch: PROGRAM is missing; launch --help says more");
}

std::string DoctorOptions::help(const std::string& rows) {
  return cat(R"(Usage: lockstep doctor [options]

What this machine has: CPU, memory, network interfaces, GPUs, and the versions of what Lockstep builds on, naming any
two that don't fit. Then two processes try each transport for a second or two and check its results.
Ends with 0, or 69 if a transport that is there failed.
)",
             rows);
}

void DoctorOptions::declare(config::OptionSet& options) {
  options.section("Options");
  declare_json(options, &json);
}

void DoctorOptions::take(const config::Given& line) { refuse_words(line, cat("lockstep ", kName)); }

}  // namespace lockstep::apps
