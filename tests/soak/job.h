// One job of the soak: 100 calls of mixed kinds, drawn from a seed alike on all ranks, each result checked; and the
// moment at which one rank kills itself.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "lockstep/comm/communicator.h"

namespace lockstep::soak {

constexpr int kSteps = 100;  // the last is a barrier

struct Plan {
  uint64_t seed = 0;
  int victim = -1;  // the rank that dies; -1: none
  int step = 0;     // so long after it came to this step: 0 … kSteps - 1, -1: before it joins, kSteps: at its end
  int microseconds = 0;  // 0: at once, without another thread

  std::string encode() const;
  static Plan decode(const std::string& text);
};

// Kills its process at the plan's moment, if that is this rank's.
class Killer {
 public:
  Killer(const Plan& plan, int rank) : plan_(plan), is_victim_(plan.victim == rank) {}
  ~Killer();
  void at(int step);  // this rank comes to that step

 private:
  Plan plan_;
  bool is_victim_;
  std::thread thread_;
};

// The calls, one step at a time, with folds under way beside them. Expects (GoogleTest) what they give; throws as they.
class Job {
 public:
  Job(comm::Communicator& comm, uint64_t seed) : comm_(comm), draw_(seed) {}
  void step(int number);

 private:
  struct Fold {
    std::shared_ptr<comm::Work> work;
    std::vector<at::Tensor> tensors;
    double sum;
  };

  at::Tensor tensor(double value);
  double sum_of(int step) const;
  void fold(int step);
  void finish_fold();
  void reduce(int step);
  void broadcast(int step);
  void gather(int step);
  void messages(int step);
  void split(int step);

  comm::Communicator& comm_;
  std::mt19937_64 draw_;
  int64_t elements_ = 0;
  std::deque<Fold> folds_;
};

}  // namespace lockstep::soak
