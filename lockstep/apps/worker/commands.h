// The commands that only lockstep's own worker has; train and eval are in lockstep/cli/commands.h. Each takes the words
// after its name and returns the process's exit code. Errors are thrown.
#pragma once

#include <string>
#include <vector>

#include "lockstep/apps/commands/bench_command.h"
#include "lockstep/cli/commands.h"

namespace lockstep::worker {

using apps::BenchOptions;
using cli::Arguments;
using cli::print;

int bench(const Arguments& args);
int inspect(const Arguments& args);
int verify(const Arguments& args);
int diff(const Arguments& args);
int convert(const Arguments& args);
int draw(const Arguments& args);
int pack(const Arguments& args);
int data(const Arguments& args);

// The kinds of bench.
int bench_step(const BenchOptions& options);
int bench_allreduce(const BenchOptions& options);
int bench_optimizer(const BenchOptions& options);
int bench_data(const BenchOptions& options);
int bench_precision(const BenchOptions& options);
int bench_checkpoint(const BenchOptions& options);
int bench_pipeline(const BenchOptions& options);
int bench_forms(const BenchOptions& options);

}  // namespace lockstep::worker
