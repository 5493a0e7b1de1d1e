// The commands of a worker. Each returns the process's exit code; what goes wrong is thrown.
#pragma once

#include "lockstep/config/command_line.h"

namespace lockstep::worker {

int run(const config::TrainOptions& options);
int run(const config::EvalOptions& options);
int run(const config::BenchOptions& options);
int run(const config::InspectOptions& options);

// The kinds of bench.
int bench_step(const config::BenchOptions& options);
int bench_allreduce(const config::BenchOptions& options);
int bench_optimizer(const config::BenchOptions& options);
int bench_data(const config::BenchOptions& options);
int bench_precision(const config::BenchOptions& options);

// Writes to standard output at once, whole.
void print(const std::string& text);

}  // namespace lockstep::worker
