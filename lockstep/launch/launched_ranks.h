// What a rank of `lockstep launch` is started with besides what every rank gets: the variables of torchrun and Paddle,
// its own arguments, and the files of its output.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/launch/output.h"
#include "lockstep/launch/process.h"
#include "lockstep/launch/rank_layout.h"

namespace lockstep::launch {

// The ranks of this node in one attempt. One thread.
class LaunchedRanks {
 public:
  // Chooses the ports and makes the folders of the logs. `first_port` is the master's where the layout leaves it open.
  // `layout` outlives this. Throws IoError.
  LaunchedRanks(const RankLayout& layout, int nproc, int attempt, int first_port);

  // Completes the start of a local rank: `request` has the command and the rank's environment already.
  void complete(int local_rank, SpawnRequest& request, RankOutput::Options& output) const;

  // TORCHELASTIC_ERROR_FILE of a local rank; "": it has none.
  std::string error_file(int local_rank) const;

 private:
  void set_variables(int local_rank, std::vector<std::string>& variables) const;
  void set_torchruns(int local_rank, std::vector<std::string>& variables) const;
  void set_paddles(int local_rank, std::vector<std::string>& variables) const;
  void set_gpus(int local_rank, std::vector<std::string>& variables) const;
  void set_output(int local_rank, RankOutput::Options& output) const;
  void make_folders();

  const RankLayout& layout_;
  int nproc_, attempt_, port_;
  int world_size_;
  std::vector<std::string> endpoints_;
  std::string folder_;  // of the attempt, with LogLayout::Kind::kTorchrun
  std::shared_ptr<const LineFilter> filters_[2];
};

// Replaces "${local_rank}" in a word, as torchrun does.
std::string with_local_rank(std::string word, int local_rank);

}  // namespace lockstep::launch
