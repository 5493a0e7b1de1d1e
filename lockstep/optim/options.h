// The options of the optimizers, with PyTorch's names and defaults where it has them; plain structs for designated
// initialisers.
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

struct NAdamOptions {
  double lr = 2e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;
  bool maximize = false;

  static constexpr const char* kName = "nadam";
  void check() const;
  static NamedOptions fixed() { return {{"capturable", false}}; }
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit visit) {
    visit("lr", self.lr);
    visit("betas", self.betas);
    visit("eps", self.eps);
    visit("weight_decay", self.weight_decay);
    visit("momentum_decay", self.momentum_decay);
    visit("decoupled_weight_decay", self.decoupled_weight_decay);
    visit("maximize", self.maximize);
  }
};

struct RmspropOptions {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
  bool maximize = false;

  static constexpr const char* kName = "rmsprop";
  void check() const;
  static NamedOptions fixed() { return {{"capturable", false}}; }
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit visit) {
    visit("lr", self.lr);
    visit("alpha", self.alpha);
    visit("eps", self.eps);
    visit("weight_decay", self.weight_decay);
    visit("momentum", self.momentum);
    visit("centered", self.centered);
    visit("maximize", self.maximize);
  }
};

// With the names of Apex's FusedLAMB.
struct LambOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-6;
  double weight_decay = 1e-2;
  bool bias_correction = true;
  bool grad_averaging = true;  // the gradient's share of exp_avg is 1 - betas[0]; without: 1
  bool adam_w_mode = true;     // weight decay is added to the update; without: to the gradient
  double max_grad_norm = 1;    // of all gradients together, the first group's; 0: not clipped
  bool use_nvlamb = false;     // norms scale the step without weight decay too
  bool maximize = false;

  static constexpr const char* kName = "lamb";
  void check() const;
  static NamedOptions fixed() { return {}; }
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit visit) {
    visit("lr", self.lr);
    visit("betas", self.betas);
    visit("eps", self.eps);
    visit("weight_decay", self.weight_decay);
    visit("bias_correction", self.bias_correction);
    visit("grad_averaging", self.grad_averaging);
    visit("adam_w_mode", self.adam_w_mode);
    visit("max_grad_norm", self.max_grad_norm);
    visit("use_nvlamb", self.use_nvlamb);
    visit("maximize", self.maximize);
  }
};

// With the names of Apex's FusedNovoGrad.
struct NovoGradOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool bias_correction = true;
  bool reg_inside_moment = false;  // the norm and the weight decay act before exp_avg; without: on the update
  bool grad_averaging = true;      // the gradient's share of exp_avg is 1 - betas[0]; without: 1
  int64_t norm_type = 2;           // of each parameter's gradient: 2, or 0 for the largest element
  bool init_zero = false;          // the norm's average begins at 0; without: at the first norm
  bool maximize = false;

  static constexpr const char* kName = "novograd";
  void check() const;
  static NamedOptions fixed() { return {}; }
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit visit) {
    visit("lr", self.lr);
    visit("betas", self.betas);
    visit("eps", self.eps);
    visit("weight_decay", self.weight_decay);
    visit("bias_correction", self.bias_correction);
    visit("reg_inside_moment", self.reg_inside_moment);
    visit("grad_averaging", self.grad_averaging);
    visit("norm_type", self.norm_type);
    visit("init_zero", self.init_zero);
    visit("maximize", self.maximize);
  }
};

struct LarsOptions {
  double lr = 0.1;
  double momentum = 0.9;
  double weight_decay = 0;
  double trust_coefficient = 1e-3;
  double eps = 1e-8;
  bool nesterov = false;
  bool adapt = true;  // without: SGD, as is usual for biases and the parameters of norms
  bool maximize = false;

  static constexpr const char* kName = "lars";
  void check() const;
  static NamedOptions fixed() { return {}; }
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit visit) {
    visit("lr", self.lr);
    visit("momentum", self.momentum);
    visit("weight_decay", self.weight_decay);
    visit("trust_coefficient", self.trust_coefficient);
    visit("eps", self.eps);
    visit("nesterov", self.nesterov);
    visit("adapt", self.adapt);
    visit("maximize", self.maximize);
  }
};

}  // namespace lockstep::optim
