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

std::string DoctorOptions::help(const std::string& rows) {
  return cat(R"(Usage: lockstep doctor [options]

What this machine has: CPU, memory, network interfaces, GPUs, and the versions of what Lockstep builds on, naming any
two that don't fit. Then two processes try each transport for a second or two and check its results.
With --env: which launcher's variables a rank would go by here, and what they say; put it in the program's place to see
what a rank sees. Ends with 0, or 69 if a transport that is there failed, or 2 if the variables contradict each other.
)",
             rows);
}

void DoctorOptions::declare(config::OptionSet& options) {
  options.section("Options");
  options.flag("env", "the rank, and the variables that it is from: torchrun's, Paddle's, Slurm's, MPI's, Kubernetes'",
               &env, config::Effect::kNone);
  declare_json(options, &json);
}

void DoctorOptions::take(const config::Given& line) { refuse_words(line, cat("lockstep ", kName)); }

}  // namespace lockstep::apps
