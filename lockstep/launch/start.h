// The commands that train and evaluate, for the process that starts their ranks on this machine and waits for them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/parallel/options/parallel_options.h"
#include "lockstep/train/options/eval_command.h"
#include "lockstep/train/options/train_command.h"

namespace lockstep::launch {

// Opens what shows the run in a folder while it trains, at a port, 0: a free one, and returns what ends it when it is
// destroyed. `quiet`: without a word.
using OpenDashboard = std::function<std::shared_ptr<void>(const std::string& folder, int port, bool quiet)>;

// `rank_program` is the path of the program that is started as each rank, with the command's own words. Each returns
// the run's exit code, and throws ConfigError or IoError if no rank could be started. To be called on the main thread.

// Prepares the run's folder, which then is in the options, and trains. `command` has been read.
int start_training(const std::string& rank_program, train::TrainCommand& command, const OpenDashboard& open_dashboard);

// Evaluates. `command` has been read.
int start_evaluation(const std::string& rank_program, const train::EvalCommand& command);

// A command that keeps no run: its results go to standard output, with `json` those of rank 0 alone. A rank that ends
// with the exit code `answer` has not failed, and rank 0 reads `in_fd` (Launcher::Options).
int start_ranks(const std::string& rank_program, const std::vector<std::string>& arguments,
                const parallel::ProcessOptions& processes, bool json, int answer = 0, int in_fd = -1);

}  // namespace lockstep::launch
