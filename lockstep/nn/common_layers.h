// libtorch's common layers, with their templates compiled once in this room's library. A program that includes it
// before others of libtorch's layers compiles faster; lockstep_precompile includes it.
#pragma once

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

// libtorch's templates that every layer instantiates. Word: `extern` to declare the instances, nothing to define them.
// Input: the type of forward()'s argument.
#define LOCKSTEP_LAYER(Word, Name, Input)    \
  Word template class Cloneable<Name##Impl>; \
  Word template struct AnyModuleHolder<Name##Impl, Input>;
#define LOCKSTEP_COMMON_LAYERS(Word)                                      \
  Word template class NormImplBase<1, BatchNorm1dImpl, BatchNormOptions>; \
  Word template class NormImplBase<2, BatchNorm2dImpl, BatchNormOptions>; \
  Word template class BatchNormImplBase<1, BatchNorm1dImpl>;              \
  Word template class BatchNormImplBase<2, BatchNorm2dImpl>;              \
  LOCKSTEP_LAYER(Word, BatchNorm1d, const at::Tensor&)                    \
  LOCKSTEP_LAYER(Word, BatchNorm2d, const at::Tensor&)                    \
  Word template class ConvNdImpl<2, Conv2dImpl>;                          \
  LOCKSTEP_LAYER(Word, Conv2d, const at::Tensor&)                         \
  LOCKSTEP_LAYER(Word, Linear, const at::Tensor&)                         \
  LOCKSTEP_LAYER(Word, MaxPool2d, const at::Tensor&)                      \
  LOCKSTEP_LAYER(Word, ReLU, at::Tensor)                                  \
  LOCKSTEP_LAYER(Word, Dropout, at::Tensor)                               \
  Word template class Cloneable<SequentialImpl>;

namespace torch::nn {
LOCKSTEP_COMMON_LAYERS(extern)
}
