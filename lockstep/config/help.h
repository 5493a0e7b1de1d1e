// The texts of --help.
#pragma once

#include <span>
#include <string>

#include "lockstep/config/option_spec.h"

namespace lockstep::config {

std::string general_help();
std::string train_help(std::span<const OptionShape> shapes);
std::string eval_help(std::span<const OptionShape> shapes);
std::string bench_help();
std::string inspect_help(std::span<const OptionShape> shapes);
std::string launch_help(std::span<const OptionShape> shapes);
std::string doctor_help(std::span<const OptionShape> shapes);

}  // namespace lockstep::config
