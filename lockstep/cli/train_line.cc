#include "lockstep/cli/train_line.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/cli/ranks.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/launch/resumed.h"
#include "lockstep/launch/run_directory.h"
#include "lockstep/train/device.h"
#include "lockstep/train/folder/text_file.h"
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
  std::exception_ptr missing;
  const auto find = [&](const train::TrainOptions& asked) -> std::string {
    if (!launched_) return launch::find_resumed_config(asked, launch::find_start(asked));
    try {
      return launch::guess_resumed_config(asked);
    } catch (const ConfigError&) {
      if (!may_span_nodes()) throw;
      missing = std::current_exception();
      return "";
    }
  };
  try {
    return read_with(find);
  } catch (const ConfigError&) {
    if (missing) std::rethrow_exception(missing);  // such as of a line that leaves the recipe to the run
    throw;
  }
}

std::optional<std::string> TrainLine::read_with(const train::FindResumedConfig& find) {
  config_.clear();
  return command_.read(args_, machine_, [&](const train::TrainOptions& asked) { return config_ = find(asked); });
}

void TrainLine::agree(World& world, int decider, const std::string& config) {
  std::string text;
  together(world.communicator(), [&] {
    if (world.rank() != decider || config.empty()) return;
    text = train::read_text(config);
    if (text.empty()) throw ConfigError(config, ": of the run that goes on, and it can't be read");
  });
  text = comm::text_of_rank(world.communicator(), decider, text);
  together(world.communicator(), [&] {
    if (text != train::read_text(config_)) follow(config, text, decider);
  });
}

// Reads the line with the options of `config`, a file of the rank `decider` that has this text.
void TrainLine::follow(const std::string& config, const std::string& text, int decider) {
  const InitOptions joined = world();
  const train::TrainOptions before = options();
  std::string file;
  if (!text.empty()) {
    received_ = create_memfd("lockstep-config", text.size());
    std::copy(text.begin(), text.end(), Mapping(received_.get()).at<char>(0));
    file = cat("/proc/self/fd/", received_.get());
  }
  read_with([&](const train::TrainOptions&) { return file; });
  const std::string why = why_apart(file, joined, before);
  if (!why.empty()) {
    throw ConfigError("can't go on with the run that rank ", decider, " goes on with (",
                      config.empty() ? "of no config.toml" : config, "): ", why,
                      "; give all ranks one line, and name the run's folder by --resume DIR");
  }
  check_inputs(options());
}

// Why this rank can't go on by the line that it has read again; empty if it can.
std::string TrainLine::why_apart(const std::string& file, const InitOptions& joined,
                                 const train::TrainOptions& before) const {
  if (file != config_) return "its own line resumes none";
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
