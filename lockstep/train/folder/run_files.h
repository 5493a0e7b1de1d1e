// The files of a run's folder, which rank 0 alone writes; with --save-on node each node's first rank its own.
#pragma once

#include <string>

namespace lockstep::train {

struct RunFiles {
  std::string folder;

  std::string config() const { return folder + "/config.toml"; }
  std::string metrics() const { return folder + "/metrics.jsonl"; }
  std::string metrics_csv() const { return folder + "/metrics.csv"; }
  std::string final_json() const { return folder + "/final.json"; }
  std::string checkpoints() const { return folder + "/checkpoints"; }
  std::string best() const { return checkpoints() + "/best.pt"; }
  std::string last() const { return checkpoints() + "/last.pt"; }
  std::string interrupted() const { return checkpoints() + "/INTERRUPTED.pt"; }
  std::string logs() const { return folder + "/logs"; }
  std::string launcher_log() const { return logs() + "/launcher.log"; }  // of a run in the background
  std::string rank_log(int rank) const { return logs() + "/rank" + std::to_string(rank) + ".log"; }
  std::string errors() const { return folder + "/errors"; }
  std::string data_list() const { return folder + "/data.list"; }
  std::string data_scan() const { return folder + "/data.scan"; }
  std::string skipped() const { return folder + "/skipped.txt"; }
  std::string run_id() const { return folder + "/run-id"; }  // of a run with a folder on every node
  std::string ledger() const { return folder + "/ledger"; }  // a folder: which samples each step trained on
  std::string lock() const { return folder + "/lock"; }
};

}  // namespace lockstep::train
