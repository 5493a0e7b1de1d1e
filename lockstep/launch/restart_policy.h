// Whether a run whose ranks have failed is tried again. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/launch/report.h"

namespace lockstep::launch {

class RestartPolicy {
 public:
  // So many attempts in a row that get no further are the last ones, however many restarts are left.
  static constexpr int kMostWithoutProgress = 3;

  // So many ports that are taken in a row are no chance.
  static constexpr int kMostTakenPorts = 5;

  // `own_workers`: all exit codes are this project's; else only those of ranks that have told an error, and a file or a
  // disk that fails there may do better on another node, or in another attempt.
  RestartPolicy(int max_restarts, bool own_workers) : max_restarts_(max_restarts), own_workers_(own_workers) {}

  struct Verdict {
    bool again = false;
    std::string text = {};  // for the report: "restart 1 of 3", or why there is none; "": the run has no restarts
  };

  // The verdict on an attempt that has failed. `progress` is the furthest step known: done, or saved. With -1 it is not
  // known, and each attempt counts as progress.
  Verdict next(const RankOutcome& root, int64_t progress);

  // The same of an attempt at which the port that was drawn for its ranks had been taken by the time when rank 0
  // listened. The next one has another port, and this one counts as none; nothing after too many of them.
  std::optional<Verdict> next_after_taken_port();

  // The next attempt is another one, with fewer ranks: what the last ones got no further than does not count for it.
  void forgive() { without_progress_ = 0; }

  // Whether another attempt would end in the same way: by a wrong option, bad data, or a disk that takes nothing.
  bool would_repeat(const RankOutcome& root) const;

  int restarts() const { return restarts_; }                  // that were granted
  int without_progress() const { return without_progress_; }  // attempts in a row, the last one among them

 private:
  int max_restarts_;
  bool own_workers_;
  int restarts_ = 0;
  int without_progress_ = 0;
  int taken_ports_ = 0;  // attempts in a row
  int64_t furthest_ = -1;
};

}  // namespace lockstep::launch
