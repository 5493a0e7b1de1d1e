// The ledger of a run: which samples each of its steps trained on, for audits. `lockstep verify` reads it
// (inspection/ledger_check.h).
//
// RUN/ledger/rank0.jsonl … have a line for each start of the rank, and one for each lane of each step, written before
// the step computes:
//   {"attempt": 0, "rank": 0, "ranks": 2, "local_rank": 0, "local_size": 2, "after": 0,
//    "samples": 8000, "lanes": 4, "batch_size": 8, "drop_last": false}
//   {"attempt": 0, "step": 1, "lane": 0, "first": 0, "count": 8, "xxh3": "0123456789abcdef"}
// Attempts are counted through all starts of the run; the lines of a step's last attempt are those that count. `first`
// and `count` are places in the epoch's order of samples. The hash is of the samples' numbers, and of those that
// key their random draws.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/base/shared_memory.h"
#include "lockstep/data/loader.h"
#include "lockstep/world/world.h"

namespace lockstep::train {

// One rank's file. One thread.
class Ledger {
 public:
  // Begins this start's lines in `folder`, at the step after `after`. `begins` says whether the run begins here, from
  // its first step or from another run's checkpoint: what a node has in `folder` is then of an earlier run, and is
  // removed. A collective. Throws IoError.
  Ledger(const std::string& folder, World& world, const data::LaneSampler& sampler, int64_t after, bool begins);

  // Writes the lines of a step, counted from 1 through the run. Throws IoError.
  void note(int64_t step, const data::StepBatch& batch);

 private:
  void write(const std::string& lines);

  std::string path_;
  data::LaneSampler sampler_;
  int64_t attempt_ = 0;
  Descriptor file_;
};

}  // namespace lockstep::train
