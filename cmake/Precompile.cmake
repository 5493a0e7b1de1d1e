# lockstep_precompile(TARGET…): these programs begin with a precompiled header of libtorch's common layers and optimizers and of
# what a loop uses of Lockstep. It takes as long as a program does without it, once for each target; after that a program
# compiles in a third of the time or less. g++ doesn't look for the targets of virtual calls in them: to inline such a
# target it would compile all virtual functions of libtorch's modules anew in every file, a second each time.
function(lockstep_precompile)
  foreach(target ${ARGN})
    target_precompile_headers(${target} PRIVATE <ATen/ATen.h> <torch/nn/module.h> <torch/optim/optimizer.h>
                              <lockstep/nn/common_layers.h> <lockstep/amp/mixed_precision.h> <lockstep/base/run_main.h>
                              <lockstep/checkpoint/state_dict.h> <lockstep/data/tensor_dataset.h>
                              <lockstep/loop/evaluate.h> <lockstep/loop/make_loader.h> <lockstep/loop/state.h>
                              <lockstep/parallel/distributed_data_parallel.h>)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-devirtualize>)
  endforeach()
endfunction()
