// Paddle's names and layouts of a model's parameters, and PyTorch's: what .pdparams files need to be loaded into a
// module, and to be written from one.
//
// A Linear's weight is transposed between the two. BatchNorm's statistics are called "_mean" and "_variance" there, and
// nothing counts its batches. All else has the same names and shapes.
#pragma once

#include <torch/nn/module.h>

#include <set>
#include <string>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// The names of the weights of the module's torch::nn::Linear layers: "classifier.weight".
std::set<std::string> linear_weights(const torch::nn::Module& module);

// Of a state dict alone, which may be of either kind: the two-dimensional weights that Paddle's own names in its table
// call linear. Where there is no such name, those that have a bias beside them, which embeddings lack: a Linear without
// one can't be told from an embedding, and is left out.
std::set<std::string> likely_linear_weights(const Dict& state);

// Whether a name of Paddle's is that of a statistic, which no optimizer has: "bn._mean".
bool is_paddle_statistic(const std::string& name);

// Paddle's state dict in PyTorch's names and layouts, without the table of names. Tensors share memory; transposed ones
// are views. `linear` holds the names of the weights to be transposed. Throws DataError that names `file` if one of
// them is not two-dimensional.
Dict from_paddle(const Dict& state, const std::set<std::string>& linear, const std::string& file);

// The same for a module: with its Linear layers, and a zero for each counter of batches that the module has and the
// file lacks ("num_batches_tracked").
Dict from_paddle(const Dict& state, const torch::nn::Module& module, const std::string& file);

// The way back; counters of batches are left out.
Dict to_paddle(const Dict& state, const std::set<std::string>& linear, const std::string& file);

}  // namespace lockstep::checkpoint
