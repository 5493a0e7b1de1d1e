// Paddle's optimizer state (.pdopt) and PyTorch's Optimizer.state_dict(), of the same parameters.
//
// Paddle has it by the parameters' own names ("linear_0.w_0_moment1_0"), which the table of a .pdparams tells; PyTorch
// by their numbers in the order of the model's parameters(). The moments of a Linear's weight are transposed between
// the two.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

struct PaddleParameter {
  std::string name;            // of the state dict: "0.weight"
  std::string paddle;          // Paddle's own: "linear_0.w_0"
  bool is_linear;              // whether it is transposed
  std::vector<int64_t> sizes;  // in Paddle's layout
};

// The parameters of a .pdparams' state dict in its order, without statistics; one that two layers share is there once,
// as in parameters(). `linear` as for from_paddle(). Throws DataError that names `file` where the table of names is
// missing or lacks one.
std::vector<PaddleParameter> paddle_parameters(const Dict& state, const std::set<std::string>& linear,
                                               const std::string& file);

// Whether a file of Paddle's holds an optimizer's state, and no weights.
bool is_paddle_optimizer(const Dict& dict);

struct PaddleOptimizer {
  Dict state;                           // PyTorch's state_dict(), or Paddle's
  std::string name;                     // of the class in PyTorch: Adam, SGD, Adagrad
  std::vector<std::string> notes = {};  // for people: whose state it is, and what the file doesn't tell
};

// Of Adam, AdamW and Lamb, which can't be told from each other, Momentum and Adagrad. Hyper-parameters are not in a
// .pdopt, but for the rate of a scheduler: others are Paddle's defaults, and `betas`, which tell the number of steps.
// RMSProp's state means something else in PyTorch. Tensors share memory; transposed ones are views. Throws DataError
// that names `file` for other optimizers, for state of parameters that are not in the list, and where the betas don't
// give a number of steps.
PaddleOptimizer optimizer_from_paddle(const Dict& optimizer, const std::vector<PaddleParameter>& parameters,
                                      std::pair<double, double> betas, const std::string& file);

// The way back, of one group that has all parameters in the order of the list. A scheduler's position is not in it:
// what it counts, steps or epochs, PyTorch's state doesn't tell. Throws DataError as above, for several groups, other
// numbers of parameters, and options that give the state another meaning than Paddle's (maximize, dampening, lr_decay,
// LARS's).
PaddleOptimizer optimizer_to_paddle(const Value& optimizer, const std::vector<PaddleParameter>& parameters,
                                    const std::string& file);

// The fp32 masters of a .pdopt as a state dict of `parameters`, in PyTorch's layouts; empty if there are none.
Dict masters_from_paddle(const Dict& optimizer, const std::vector<PaddleParameter>& parameters,
                         const std::string& file);

}  // namespace lockstep::checkpoint
