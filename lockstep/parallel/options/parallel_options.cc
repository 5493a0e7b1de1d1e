#include "lockstep/parallel/options/parallel_options.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/board.h"
#include "lockstep/base/error.h"
#include "lockstep/parallel/options/lanes.h"

namespace lockstep::parallel {
namespace {

int read_nproc(const std::string& name, const std::string& text) {
  return text == "auto" ? ParallelOptions::kAuto : static_cast<int>(config::read_whole(name, text, 1, kMaxLocalRanks));
}

// N, auto or MIN:MAX; the minimum is 0 where there is none.
std::pair<int, int> read_nproc_range(const std::string& name, const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return {0, read_nproc(name, text)};
  const auto bound = [&](const std::string& part) {
    return static_cast<int>(config::read_whole(name, part, 1, kMaxLocalRanks));
  };
  const int least = bound(text.substr(0, colon)), most = bound(text.substr(colon + 1));
  if (least > most) {
    throw ConfigError("--", name, ' ', text, ": the least number comes first; give --", name, ' ', most, ':', least);
  }
  return {least == most ? 0 : least, most};
}

std::string write_nproc(int nproc) { return nproc <= ParallelOptions::kAuto ? "auto" : std::to_string(nproc); }

}  // namespace

void ParallelOptions::declare(config::OptionSet& options) {
  using enum config::Effect;
  options.section("Processes");
  const auto read = [this](const std::string& name, const std::string& text) {
    const auto [least, most] = read_nproc_range(name, text);
    min_nproc = least;
    return most;
  };
  const auto write = [this](int most) { return min_nproc > 0 ? cat(min_nproc, ':', most) : write_nproc(most); };
  config::Option& row =
      options.form("nproc", "N|MIN:MAX|auto",
                   "processes; fewer where MAX keep failing (default: by the cores and the recipe's lanes)", &nproc,
                   read, write, kNone);
  row.is_text = false;
  row.reset = [this] { nproc = kUnsaid, min_nproc = 0; };
  options.number("lanes", "S", "slices of the global batch (default: N of --nproc, else the recipe's)", &lanes, 0,
                 65536, kIdentity);
  options.number("threads", "N", "compute threads a process (default: cores / lanes)", &threads, 0, 1024, kTrajectory);
  options.flag("pin", "pin processes to cores", &pin, kNone);
  options.flag("sync-bn", "BatchNorm's statistics over all lanes of a step", &sync_bn, kIdentity);
  options.word("shard-optimizer", "each process keeps and updates a slice", &shard_optimizer, kNone);
  options.word("comm-dtype", "what gradients are added and sent in", &comm_dtype, kIdentity);
}

void ParallelOptions::resolve(const Machine& machine, int recipe_lanes) {
  if (machine.launched) {
    nproc = std::max(nproc, 1);
  } else if (nproc == kUnsaid && lanes == 0) {
    lanes = recipe_lanes;
    threads = std::max(threads, 1);
  }
  if (nproc <= kAuto) nproc = fitting_nproc(machine.cores / std::max(threads, 1), lanes);
  if (min_nproc > 0 && lanes == 0) lanes = nproc;  // they stay where ranks go
  check_lanes(nproc, lanes);
}

int ParallelOptions::fewer_than(int ranks) const {
  if (min_nproc == 0 || ranks <= min_nproc) return 0;
  const int fewer = fitting_nproc(ranks - 1, lanes);
  return fewer >= min_nproc ? fewer : 0;
}

void ProcessOptions::declare(config::OptionSet& options) {
  declare_nproc(options);
  declare_threads(options);
}

void ProcessOptions::declare_nproc(config::OptionSet& options) {
  options.number("nproc", "N", "processes", &nproc, 1, kMaxLocalRanks, config::Effect::kNone);
}

void ProcessOptions::declare_nproc_or_auto(config::OptionSet& options) {
  nproc = 0;
  options
      .form("nproc", "N|auto", "processes (auto: one a core, or a GPU, but two at least)", &nproc, read_nproc,
            write_nproc, config::Effect::kNone)
      .is_text = false;
}
void ProcessOptions::declare_threads(config::OptionSet& options) {
  options.number("threads", "N", "compute threads a process (default: cores / processes)", &threads, 0, 1024,
                 config::Effect::kNone);
}

}  // namespace lockstep::parallel
