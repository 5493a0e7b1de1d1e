// The options of the optimizers, with PyTorch's names and defaults; plain structs for designated initialisers.
//
// Each struct lists its fields once, in fields(): by that list options are read from names (a command line's, a
// checkpoint's) and written under them. fixed() names what PyTorch's optimizer has besides, with the one value that
// describes ours: it is written for PyTorch's sake, and a checkpoint with another value does not fit.
#pragma once

#include <utility>

#include "lockstep/optim/state.h"

namespace lockstep::optim {

struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;

  static constexpr const char* kName = "sgd";
  void check() const;  // throws ConfigError
  static NamedOptions fixed() { return {}; }
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit visit) {
    visit("lr", self.lr);
    visit("momentum", self.momentum);
    visit("dampening", self.dampening);
    visit("weight_decay", self.weight_decay);
    visit("nesterov", self.nesterov);
    visit("maximize", self.maximize);
  }
};

struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
  bool maximize = false;

  static constexpr const char* kName = "adagrad";
  void check() const;
  static NamedOptions fixed() { return {}; }
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit visit) {
    visit("lr", self.lr);
    visit("lr_decay", self.lr_decay);
    visit("weight_decay", self.weight_decay);
    visit("initial_accumulator_value", self.initial_accumulator_value);
    visit("eps", self.eps);
    visit("maximize", self.maximize);
  }
};

// Weight decay is added to the gradient by Adam, and taken off the weight, apart from the gradient, by AdamW.
template <bool Decoupled>
struct AdamOptionsOf {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = Decoupled ? 1e-2 : 0;
  bool amsgrad = false;
  bool maximize = false;

  static constexpr const char* kName = Decoupled ? "adamw" : "adam";
  void check() const;
  static NamedOptions fixed() { return {{"decoupled_weight_decay", Decoupled}, {"capturable", false}}; }
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit visit) {
    visit("lr", self.lr);
    visit("betas", self.betas);
    visit("eps", self.eps);
    visit("weight_decay", self.weight_decay);
    visit("amsgrad", self.amsgrad);
    visit("maximize", self.maximize);
  }
};
using AdamOptions = AdamOptionsOf<false>;
using AdamWOptions = AdamOptionsOf<true>;

}  // namespace lockstep::optim
