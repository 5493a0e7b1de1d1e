// The options that divide a run among processes, lanes and threads.
#pragma once

#include <array>
#include <string>

#include "lockstep/base/gpus.h"
#include "lockstep/config/option_set.h"
#include "lockstep/parallel/options/pipeline_schedule.h"

namespace lockstep::parallel {

// What a step is divided into: the batch among processes, the batch among replicas of the network in one process, the
// network's layers among processes, or the batch among processes of which some keep the weights (parameter servers).
// docs/choosing.md says when each wins.
enum class ParallelForm { kDdp, kDp, kPipeline, kPs };
constexpr auto words(ParallelForm) {
  return std::to_array<config::Word<ParallelForm>>({{ParallelForm::kDdp, "ddp"},
                                                    {ParallelForm::kDp, "dp"},
                                                    {ParallelForm::kPipeline, "pipeline"},
                                                    {ParallelForm::kPs, "ps"}});
}

// The type that gradients are rounded to, at every node of the fold's tree and on the wire. Each addition is computed
// in fp32.
enum class CommType { kFp32, kBf16 };
constexpr auto words(CommType) {
  return std::to_array<config::Word<CommType>>({{CommType::kFp32, "fp32"}, {CommType::kBf16, "bf16"}});
}

// Whether each rank keeps the optimizer's state of its slice alone. auto: yes if the ranks share memory.
enum class ShardOptimizer { kAuto, kOn, kOff };
constexpr auto words(ShardOptimizer) {
  return std::to_array<config::Word<ShardOptimizer>>(
      {{ShardOptimizer::kAuto, "auto"}, {ShardOptimizer::kOn, "on"}, {ShardOptimizer::kOff, "off"}});
}

// Where a command runs.
struct Machine {
  int cores = 1;                  // that this process may use
  bool launched = false;          // a launcher has started the ranks already, and --nproc means nothing
  CountGpus gpus = visible_gpus;  // that this process may use; asked where it matters alone, for it may take seconds
};

struct ParallelOptions {
  static constexpr int kAuto = 0, kUnsaid = -1;
  int nproc = kUnsaid;  // a number after resolve()
  int min_nproc = 0;    // of --nproc MIN:MAX: so few ranks will do where more keep failing; 0: nproc it stays
  int lanes = 0;        // 0: the world size
  int threads = 0;      // intra-op threads a rank; 0: default_threads() (lanes.h)
  bool pin = false;
  bool sync_bn = false;  // BatchNorm over all lanes
  ShardOptimizer shard_optimizer = ShardOptimizer::kAuto;
  CommType comm_dtype = CommType::kFp32;
  ParallelForm form = ParallelForm::kDdp;
  int stages = 0;  // of a pipeline; 0: as many as ranks
  PipelineSchedule schedule_pp = PipelineSchedule::k1F1B;
  int replicas = 0;  // of dp; 0: as many as cores for their threads, and lanes
  int servers = 0;   // of ps: so many of the processes keep the weights and the optimizer's state; 0: one

  void declare(config::OptionSet& options);
  // Replaces what nproc leaves open by a number: as many ranks as there are cores for their threads. A run that says
  // neither nproc nor lanes gets the recipe's lanes, and a thread a rank, so that its bits depend on no number of
  // cores. Throws ConfigError for lanes that can't be divided among the processes.
  void resolve(const Machine& machine, int recipe_lanes);
  // Returns the next smaller number of ranks with which the run may go on; 0 if there is none. After resolve().
  int fewer_than(int ranks) const;
  // Whether so many ranks can compute so many lanes in this form; 0 lanes: as many as ranks.
  bool fits(int ranks, int of_lanes) const;
  // Returns how many groups of so many ranks divide the lanes: each rank with ddp and ps, each pipeline, one with dp.
  int groups_of(int ranks) const;
  // Throws ConfigError that says why, unless fits().
  void check_ranks(int ranks, int of_lanes) const;
  // Returns the lanes of a world of `world_size` ranks.
  int lanes_of(int world_size) const { return lanes == 0 ? world_size : lanes; }

 private:
  void check_form() const;
};

// The options --nproc N and --threads N, or one of them, for commands without lanes.
struct ProcessOptions {
  int nproc = 1;    // 0: auto
  int threads = 0;  // 0: default_threads()

  void declare(config::OptionSet& options);
  void declare_nproc(config::OptionSet& options);
  // --nproc N|auto, whose default is auto: 0 in nproc.
  void declare_nproc_or_auto(config::OptionSet& options);
  void declare_threads(config::OptionSet& options);
};

}  // namespace lockstep::parallel
