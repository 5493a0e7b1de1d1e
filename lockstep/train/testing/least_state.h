// For tests: a checkpoint that says no more of a run than where it goes on.
#pragma once

#include <cstdint>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::train::testing_support {

// As much of a run's checkpoint as read_state() reads.
inline checkpoint::Value least_state(int64_t step) {
  using checkpoint::Dict;
  return Dict{{"sampler", Dict{{"dataset_size", int64_t{8}}}},
              {"meta", Dict{{"step", step},
                            {"steps_per_epoch", int64_t{1}},
                            {"best", 0.5},
                            {"options", Dict{{"recipe", "tiny"}}},
                            {"sample_shape", checkpoint::List{}}}}};
}

}  // namespace lockstep::train::testing_support
