#include "lockstep/cli/train_line.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/cli/ranks.h"
#include "lockstep/launch/resumed.h"
#include "lockstep/launch/run_directory.h"
#include "lockstep/train/device.h"
#include "lockstep/world/once.h"

namespace lockstep::cli {
namespace {

bool join_alike(const InitOptions& a, const InitOptions& b) {
  return a.backend == b.backend && a.interfaces == b.interfaces && a.timeout == b.timeout;
}

}  // namespace

TrainLine::TrainLine(const Program& program, Arguments args, const Recipes& recipes)
    : args_(std::move(args)), launched_(is_launched()), command_(program.name, {recipes.begin(), recipes.end()}) {
  machine_ = {.cores = usable_cores(), .launched = launched_ || program.of_ranks.empty()};
}

std::optional<std::string> TrainLine::read() {
  return read_with([this](const train::TrainOptions& asked) {
    return launched_ ? launch::guess_resumed_config(asked)
                     : launch::find_resumed_config(asked, launch::find_start(asked));
  });
}

std::optional<std::string> TrainLine::read_with(const train::FindResumedConfig& find) {
  config_.clear();
  return command_.read(args_, machine_, [&](const train::TrainOptions& asked) { return config_ = find(asked); });
}

void TrainLine::agree(World& world, const std::string& config) {
  together(world.communicator(), [&] {
    if (config != config_) follow(config);
  });
}

void TrainLine::follow(const std::string& config) {
  const InitOptions joined = world();
  const train::TrainOptions before = options();
  if (!config.empty() && access(config.c_str(), R_OK) != 0) {
    throw ConfigError(config, ": of the run that rank 0 goes on with, and it can't be read here: ", errno_text(errno),
                      "; let --out and --resume name what all nodes share");
  }
  read_with([&](const train::TrainOptions&) { return config; });
  const std::string why = why_apart(config, joined, before);
  if (!why.empty()) {
    throw ConfigError("can't go on with the run that rank 0 goes on with (",
                      config.empty() ? "of no config.toml" : config, "): ", why,
                      "; give all ranks one line, and name the run's folder by --resume DIR");
  }
  check_inputs(options());
}

// Why this rank can't go on by the line that it has read again; empty if it can.
std::string TrainLine::why_apart(const std::string& config, const InitOptions& joined,
                                 const train::TrainOptions& before) const {
  if (config != config_) return "its own line resumes none";
  const train::TrainOptions& now = command_.options();
  if (before.device != now.device) return "it has joined for another --device";
  const bool on_gpu = now.device.on_gpu();  // where the environment says so before (device.h)
  if (on_gpu && before.deterministic != now.deterministic) return "it has joined for another --deterministic";
  if (!join_alike(joined, world())) return "it has joined by another --backend, --interfaces or --timeout";
  return "";
}

InitOptions TrainLine::world() const {
  const train::TrainOptions& options = command_.options();
  return {.backend = train::backend_for(options.device, options.comm.backend),
          .interfaces = options.comm.interfaces,
          .gpu = options.device.gpu,
          .timeout = std::chrono::seconds(options.comm.timeout),
          .timeout_name = "--timeout",
          .same_bits = options.deterministic};
}

void check_inputs(const train::TrainOptions& options) {
  launch::check_inputs(options);
  train::require_gpu(options.device);
}

}  // namespace lockstep::cli
