// Runs of training, as the tests start them, and what they leave behind.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program.h"

namespace lockstep::e2e {

// Data for all tests of this program: 100 train and 64 test digits, made at the first call, removed at the program's
// end. With kLanes lanes of kBatch samples an epoch has 4 steps, and the last holds 4 samples: a lane one, of 8.
const std::string& digits_folder();
constexpr int kLanes = 4, kBatch = 8, kStepsPerEpoch = 4;

using Words = std::vector<std::string>;

// `train mnist` on that data with lanes and batch size set; `more` is added. Unless that says --max-restarts, a rank's
// death is the run's end.
Words train_words(const Words& more);
Words operator+(Words words, const Words& more);

// An optimizer with state, an average of the weights, clipped gradients.
inline const Words kAveraged = {"--optimizer", "adamw", "--lr", "0.001", "--ema", "0.9", "--clip-value", "0.01"};

// The folder of a run of kSteps steps with `more`, one rank, made at the first call with these words and then kept.
// The test that asks for it fails where the run does.
const std::string& finished_run(const Words& more = {});
constexpr int kSteps = 12;

// Expects this exit code, and one line on standard error that has `what` in it.
void expect_one_line(const Result& result, int exit_code, const std::string& what);

nlohmann::json final_of(const std::string& run);  // null if there is no final.json, or it is none
// The records of metrics.jsonl of a kind ("train"), in their order; none of a line that is still being written.
std::vector<nlohmann::json> records_of(const std::string& run, const std::string& kind);
std::vector<int64_t> steps_logged(const std::string& run);  // those of the train records
std::vector<int64_t> first_steps(int64_t count);            // 1, 2, … count

// What must not depend on the number of ranks, or on how often a run was stopped.
nlohmann::json outcome_of(const std::string& run);

}  // namespace lockstep::e2e
