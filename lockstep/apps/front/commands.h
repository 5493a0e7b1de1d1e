// What each command does in the front: settle where things go, then launch.
#pragma once

#include <string>

#include "lockstep/config/command_line.h"

namespace lockstep::front {

// Each returns the exit code, and throws lockstep::Error.
int run(const config::HelpCommand& help);
int run(const config::VersionCommand& version);
int run(const config::TrainOptions& options);
int run(const config::EvalOptions& options);
int run(const config::BenchOptions& options);
int run(const config::InspectOptions& options);
int run(const config::LaunchOptions& options);
int run(const config::DoctorOptions& options);

// lockstep-worker, beside this program. Throws IoError if it is not there.
std::string worker_program();

// `bench startup`: starts training a few times and prints the time to the end of the first step.
int bench_startup(const config::BenchOptions& options);

}  // namespace lockstep::front
