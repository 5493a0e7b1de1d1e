#include "lockstep/apps/commands/checkpoint_commands.h"

#include <limits>

#include "lockstep/apps/commands/plain_commands.h"
#include "lockstep/base/error.h"

namespace lockstep::apps {

std::string VerifyOptions::help(const std::string& rows) {
  return cat(R"(Usage: lockstep verify RUN|FILE… [options]

Reads checkpoints from the first byte to the last: checksums, structure, whether each tensor lies within its storage. Of a
run's folder all of them, where last.pt and best.pt lead, metrics.jsonl, final.json and config.toml; files that a killed
writer has left are named. A line for each file. Ends with 0, or with 65 if one is damaged.
)",
             rows, R"(
Examples:
  lockstep verify runs/mnist-1
  lockstep verify a.pt b.pt --json
)");
}

void VerifyOptions::declare(config::OptionSet& options) {
  options.section("Options");
  declare_json(options, &json);
}

void VerifyOptions::take(const config::Given& line) {
  paths = line.words;
  if (paths.empty()) throw ConfigError("verify: RUN or FILE is missing; verify --help says more");
}

std::string DiffOptions::help(const std::string& rows) {
  return cat(R"(Usage: lockstep diff A B [options]

Where two runs, or two checkpoints, went apart. Of checkpoints: the tensors and values that one lacks or that differ, how
many elements do (by their bits), by how much at most and at which index; the largest differences first. Of two runs'
folders: options, the first record of metrics.jsonl that differs, results, and the checkpoints of the first step that
differs.
Options that do not bear on the result, such as --nproc, are shown and don't count.
Ends with 0 if A and B are equal, with 1 if they differ.
)",
             rows, R"(
Examples:
  lockstep diff runs/mnist-1 runs/mnist-2
  lockstep diff runs/mnist-1/checkpoints/last.pt other.pt --most 5
)");
}

void DiffOptions::declare(config::OptionSet& options) {
  options.section("Options");
  options.subject("a", &a, config::Effect::kNone);
  options.subject("b", &b, config::Effect::kNone);
  options.number("most", "N", "tensors and values to list (20; with --json all)", &most, 0, 1'000'000'000,
                 config::Effect::kNone);
  declare_json(options, &json);
}

void DiffOptions::take(const config::Given& line) {
  if (line.words.size() != 2) {
    throw ConfigError(
        "lockstep diff: expected two words, A and B: two runs' folders or two checkpoints; diff --help says more");
  }
  a = line.words[0];
  b = line.words[1];
}

size_t DiffOptions::listed() const {
  constexpr size_t kForPeople = 20;
  if (most > 0) return static_cast<size_t>(most);
  return json ? std::numeric_limits<size_t>::max() : kForPeople;
}

}  // namespace lockstep::apps
