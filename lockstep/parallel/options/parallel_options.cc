#include "lockstep/parallel/options/parallel_options.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/board.h"
#include "lockstep/base/error.h"
#include "lockstep/base/lanes_fit.h"
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
  options.word("parallel", "what a step is divided into (docs/choosing.md)", &form, kTrajectory);
  options.number("stages", "N", "of a pipeline: parts of the network (default: all processes)", &stages, 0,
                 kMaxLocalRanks, kTrajectory);
  options.word("schedule-pp", "of a pipeline: order of its lanes", &schedule_pp, kTrajectory);
  options.number("replicas", "N", "of dp: copies of the network (default: by cores and lanes)", &replicas, 0,
                 kMaxLocalRanks, kTrajectory);
  options.number("servers", "N", "of ps: processes that keep the weights (default: 1)", &servers, 0, kMaxLocalRanks,
                 kNone);
}

void ParallelOptions::check_form() const {
  const auto goes_with = [this](bool is_said, const char* option, ParallelForm wanted) {
    if (!is_said || form == wanted) return;
    throw ConfigError(option, ": goes with --parallel ", config::word_of(wanted), ", and this is --parallel ",
                      config::word_of(form), "; leave one of them out");
  };
  goes_with(stages > 0, "--stages", ParallelForm::kPipeline);
  goes_with(schedule_pp != PipelineSchedule::k1F1B, "--schedule-pp", ParallelForm::kPipeline);
  goes_with(replicas > 0, "--replicas", ParallelForm::kDp);
  goes_with(servers > 0, "--servers", ParallelForm::kPs);
  goes_with(comm_dtype != CommType::kFp32, "--comm-dtype", ParallelForm::kDdp);
  if (form == ParallelForm::kPs && shard_optimizer == ShardOptimizer::kOff) {
    throw ConfigError("--shard-optimizer off: servers keep the optimizer's state; leave it out");
  }
  if (form != ParallelForm::kPipeline) return;
  if (sync_bn) throw ConfigError("--sync-bn: a pipeline's lanes come one after the other; use --parallel ddp or dp");
  if (shard_optimizer == ShardOptimizer::kOff) {
    throw ConfigError("--shard-optimizer off: each stage of a pipeline keeps its own part; leave it out");
  }
}

int ParallelOptions::groups_of(int ranks) const {
  if (form == ParallelForm::kDdp || form == ParallelForm::kPs) return ranks;
  if (form == ParallelForm::kDp) return 1;
  return stages == 0 ? 1 : ranks / stages;
}

bool ParallelOptions::fits(int ranks, int of_lanes) const {
  if (form == ParallelForm::kDp) return ranks == 1;
  if (form == ParallelForm::kPs && servers > ranks) return false;
  if (form == ParallelForm::kPipeline && (ranks < 2 || stages == 1 || (stages > 1 && ranks % stages != 0)))
    return false;
  return of_lanes == 0 || lanes_fit(of_lanes, groups_of(ranks));
}

void ParallelOptions::check_ranks(int ranks, int of_lanes) const {
  if (fits(ranks, of_lanes)) return;
  if (form == ParallelForm::kPs && servers > ranks) {
    throw ConfigError("--servers ", servers, ": each is one of the processes of --nproc, and these are ", ranks,
                      "; give --servers ", ranks, " or less");
  }
  if (form == ParallelForm::kDdp || form == ParallelForm::kPs) return check_lanes(ranks, of_lanes);
  if (form == ParallelForm::kDp) {
    throw ConfigError("--parallel dp: one process computes all replicas, and these are ", ranks,
                      "; give --nproc 1 on one node, and --replicas N");
  }
  if (ranks < 2) throw ConfigError("--parallel pipeline: stages are on 2 processes or more; give --nproc N");
  if (stages == 1 || (stages > 1 && ranks % stages != 0)) {
    throw ConfigError("--stages ", stages, ": expected 2 or more, and a number that divides the ", ranks,
                      " processes of --nproc");
  }
  const int pipelines = groups_of(ranks);
  throw ConfigError("--lanes ", of_lanes, ": each of the ", pipelines, " pipelines of ", ranks / pipelines,
                    " stages needs a power of two of lanes; give --lanes ", 2 * pipelines, ", ", 4 * pipelines, " or ",
                    8 * pipelines);
}

void ParallelOptions::resolve(const Machine& machine, int recipe_lanes) {
  check_form();
  const int least = form == ParallelForm::kPipeline && stages == 0 ? 2 : std::max(stages, 1);
  servers = form == ParallelForm::kPs ? std::max(servers, 1) : 0;
  if (machine.launched) {
    nproc = std::max(nproc, 1);
  } else if (nproc == kUnsaid && lanes == 0) {
    lanes = std::max(replicas, recipe_lanes);
    threads = std::max(threads, 1);
  }
  if (form == ParallelForm::kDp && nproc == kUnsaid) nproc = 1;
  if (form == ParallelForm::kPipeline && nproc <= kAuto) {
    // Without stages two are enough: each core more would be one more.
    const bool fills_cores = nproc == kAuto && stages > 0;
    nproc = fills_cores ? std::max(least, std::min(machine.cores, kMaxLocalRanks) / least * least) : least;
  }
  if (nproc <= kAuto) {
    nproc = fitting_nproc(machine.cores / std::max(threads, 1), lanes);
    const int most = lanes > 0 ? lanes : servers;  // more servers than cores take turns
    while (nproc < most && (nproc < servers || !fits(nproc, lanes))) ++nproc;
    if (nproc > kMaxLocalRanks) {
      throw ConfigError("--servers ", servers, " with --lanes ", lanes, " would take ", nproc, " processes, and ",
                        kMaxLocalRanks, " is the most; give fewer servers, or lanes that they divide");
    }
  }
  if (min_nproc > 0 && lanes == 0) lanes = nproc;  // they stay where ranks go
  if (!machine.launched) check_ranks(nproc, lanes);
}

int ParallelOptions::fewer_than(int ranks) const {
  for (int fewer = ranks - 1; min_nproc > 0 && fewer >= min_nproc; --fewer) {
    if (fits(fewer, lanes)) return fewer;
  }
  return 0;
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
