// The header that a run prints first: everything that decides its numbers, for people.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "lockstep/train/plan.h"

namespace lockstep::train {

struct HeaderFacts {
  std::string program = "lockstep";  // how the user calls it
  std::string recipe;
  std::string recipe_options;  // its own: "--arch resnet18 --size 64"
  std::string folder;
  std::string libtorch;   // in a bundle, which one: "/venv/…/torch (/venv/bin/python3)"
  std::string device;     // "CPU (AMX, AVX512-BF16)"
  std::string precision;  // "O1 bfloat16"
  int ranks = 1;
  std::string backend;
  std::string bits;  // of the weights, where they are the same
  bool sync_bn = false;
  int threads = 1;
  bool snapshot_keeper = false;  // Lockstep's launcher keeps this run's snapshots
  int64_t parameters = 0;
  std::string network;  // Model::text
  std::string train_data, test_data, validation_data;
  std::string mixing;                 // of training batches: "MixUp 0.2"; empty: none
  std::string input;                  // how batches reach the device, and what they take of it; empty: no way to go
  int64_t skip_bad = 0, skipped = 0;  // samples: that --skip-bad passes over, and that it has
  int64_t train_samples = 0, test_samples = 0, validation_samples = 0;
  std::string parallel = {};  // the form, where it is not data parallelism
  std::string sharding;       // of the optimizer: "state and weights shared by 2 ranks"; empty: it is whole
  std::string chosen;  // options that the bits depend on and that differ from their defaults: "--lr 0.05 --ema 0.99"
  int64_t first_step = 0;  // above 0: resumed
  int keep = 3;            // the numbered checkpoints that stay
  std::string resumed_from;
  bool forked = false;               // from another run's checkpoint
  std::vector<std::string> dropped;  // what --overwrite has removed
  std::vector<std::string> changes;  // options changed by the resume: "--lr 0.1 -> 0.05"
  std::string loaded;                // "net.pt, the names without module."; empty: no --load
};

// Where the weights' bits are the same. `repeats`: the device is asked for algorithms that repeat theirs
// (--deterministic). `any_ranks`: sums over ranks don't depend on their number (Communicator::same_bits).
std::string bits_text(c10::Device device, bool repeats, bool any_ranks);

std::string header(const HeaderFacts& facts, const Plan& plan);

}  // namespace lockstep::train
