# lockstep_precompile(TARGET…): these programs begin with a precompiled header of libtorch's common layers and optimizers and of
# what a loop uses of Lockstep. It takes as long as a program does without it, once for each target; after that a program
# compiles in half the time or less.
function(lockstep_precompile)
  foreach(target ${ARGN})
    target_precompile_headers(${target} PRIVATE <ATen/ATen.h> <torch/nn/module.h> <torch/optim/optimizer.h>
                              <lockstep/nn/common_layers.h> <lockstep/amp/mixed_precision.h> <lockstep/parallel/distributed_data_parallel.h>)
  endforeach()
endfunction()
