// What the ranks of a step tell each other beside its gradients: a few numbers, which travel as one small fold.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::parallel {

// Each adds up over ranks.
struct StepNotes {
  double loss = 0;      // this rank's share of the global batch's mean loss
  double decision = 0;  // rank 0's; 0 on others
  double others = 0;    // that of another rank; 0 on rank 0
  double samples = 0;   // of this rank's lanes
  double unfolded = 0;  // hash_of() the parameters with gradients that are this rank's alone
  double weights = 0;   // their fingerprint (step_checks.h)
  double modes = 0;     // which of their modules train (step_checks.h)
  double lanes = 0;     // how many this rank has
  double numbers = 0;   // number_hash() of each of them, added up
  double order = 0;     // order_note() of the samples' order, the same on all ranks; 0: unknown
};

class NotesFold {
 public:
  // Begins the fold of this rank's notes. All ranks do so at the same place of the step.
  NotesFold(const StepNotes& own, int64_t step, comm::Communicator& comm);
  // Returns the sums over ranks, in the order of the fold's tree. Throws as Communicator's waits.
  StepNotes wait();

 private:
  at::Tensor notes_;
  std::shared_ptr<comm::Work> work_;
};

// A whole number, so that its sum over ranks is exact; 0 for no names.
double hash_of(const std::vector<std::string>& names);

// Of a lane's number: a whole one, so that sums over some thousand lanes are exact.
double number_hash(int lane);

// A whole number below 2^40, so that sums over ranks are exact; 0 for 0.
double order_note(uint64_t order_hash);

// Throws ConfigError unless the lanes of all ranks have the numbers from 0 on, each once, and `samples` samples, all
// ranks have `unfolded` gradients of the same parameters, one order of samples, and the same weights and modes.
// `whose`: "step 3".
void check_notes(const StepNotes& sum, const StepNotes& own, int64_t samples, const std::vector<std::string>& unfolded,
                 const std::string& whose, const comm::Communicator& comm);

}  // namespace lockstep::parallel
