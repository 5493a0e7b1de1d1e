// The line of `train` as a rank reads it: first alone, and again where the ranks agree on another run that goes on.
#pragma once

#include <optional>
#include <string>

#include "lockstep/base/shared_memory.h"
#include "lockstep/cli/commands.h"
#include "lockstep/train/options/train_command.h"
#include "lockstep/world/world.h"

namespace lockstep::cli {

// Used by one thread at a time.
class TrainLine {
 public:
  TrainLine(const Program& program, Arguments args, const Recipes& recipes);

  // Reads the line with the options of the run that goes on as far as this rank can tell. What --resume names may be on
  // another node's disk. Returns the text of --help if the line asks for it. Throws as TrainCommand::read().
  std::optional<std::string> read();

  // Reads it again, on the ranks that had read another file than `config`: the config.toml, on the rank `decider`, of
  // the run that goes on, "" for none. Its path counts there alone. Throws ConfigError on all ranks if one of them
  // can't follow, which it names. A collective.
  void agree(World& world, int decider, const std::string& config);

  // How the line would have the ranks joined.
  InitOptions world() const;

  train::TrainCommand& command() { return command_; }
  train::TrainOptions& options() { return command_.options(); }

 private:
  std::optional<std::string> read_with(const train::FindResumedConfig& find);
  void follow(const std::string& config, const std::string& text, int decider);
  std::string why_apart(const std::string& file, const InitOptions& joined, const train::TrainOptions& before) const;

  Arguments args_;
  parallel::Machine machine_;
  bool launched_ = false;
  train::TrainCommand command_;
  std::string config_;   // that was read; empty: none
  Descriptor received_;  // another rank's, which this one has no file of
};

// Throws ConfigError for data, weights or a device that the options name and this rank has not.
void check_inputs(const train::TrainOptions& options);

}  // namespace lockstep::cli
