// The command line of both programs: the front reads what the user wrote, a worker what the front passes on.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "lockstep/config/commands.h"
#include "lockstep/config/train_options.h"

namespace lockstep::config {

// --help in any of its forms: text to print on standard output.
struct HelpCommand {
  std::string text;
};
struct VersionCommand {};

using Command = std::variant<HelpCommand, VersionCommand, TrainOptions, EvalOptions, BenchOptions, InspectOptions,
                             LaunchOptions, DoctorOptions>;

// Everything after the program's name. Reads the file of --config, touches nothing else. Throws ConfigError: one line
// that names option, value and what is allowed. `cores`: what --nproc auto stands for.
// `resumed_config`: the config.toml of the run that is resumed, or nothing; what it says holds where neither --config
// nor the command line says anything, but for --steps, --load and --quiet, which belong to one start and not to the
// run.
Command parse_command(const std::vector<std::string>& args, int cores, const std::string& resumed_config = "");

// The words after the program's name that parse_command reads back as the same options.
std::vector<std::string> to_arguments(const TrainOptions& options);
std::vector<std::string> to_arguments(const EvalOptions& options);
std::vector<std::string> to_arguments(const BenchOptions& options);
std::vector<std::string> to_arguments(const InspectOptions& options);

}  // namespace lockstep::config
