// The classes that a network's scores mean: one rule for losses, metrics, pictures and files.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace lockstep::nn {

// Returns whether a network with so many outputs tells two classes by one sigmoid.
constexpr bool is_sigmoid(int64_t outputs) { return outputs == 1; }

// Returns how many classes a network with so many outputs tells: two of a sigmoid.
constexpr int64_t classes_of_outputs(int64_t outputs) { return is_sigmoid(outputs) ? 2 : outputs; }

// The class of the highest score along `dim`, of equal ones the first; of one score, a sigmoid's, class 1 where it is
// above 0, its probability above a half, else class 0. Scores are of any floating-point type and device; the result is
// int64, without that dimension.
at::Tensor predicted_classes(const at::Tensor& scores, int64_t dim);

// The probabilities of classes along `dim`, float64: softmax; of a sigmoid those of classes 0 and 1.
at::Tensor class_probabilities(const at::Tensor& scores, int64_t dim);

}  // namespace lockstep::nn
