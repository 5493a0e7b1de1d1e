#include "lockstep/compat/apex/fp16_optimizer.h"

#include <c10/core/GradMode.h>

#include "lockstep/base/error.h"
#include "lockstep/compat/apex/fp16_utils.h"
#include "lockstep/optim/optimizer_ref.h"

namespace lockstep::apex::fp16_utils {
namespace {

LossScaler make_scaler(const FP16OptimizerOptions& options) {
  if (options.dynamic_loss_scale) return DynamicLossScaler(options.dynamic_loss_args);
  return LossScaler(options.static_loss_scale);
}

}  // namespace

FP16_Optimizer::FP16_Optimizer(torch::optim::Optimizer& init_optimizer, const FP16OptimizerOptions& options)
    : optimizer_(init_optimizer),
      dynamic_(options.dynamic_loss_scale),
      scaler_(make_scaler(options)),
      masters_(init_optimizer) {}

void FP16_Optimizer::check_not_taken() const {
  if (!taken_) return;
  throw ConfigError(
      "FP16_Optimizer: the masters have their gradients already; call zero_grad() after a step, and pass "
      "update_master_grads = false to all backward calls before it but the last");
}

void FP16_Optimizer::backward(const at::Tensor& loss, bool update_master_grads) {
  check_not_taken();
  scaler_.backward(loss);
  if (update_master_grads) this->update_master_grads();
}

void FP16_Optimizer::update_master_grads() {
  check_not_taken();
  taken_ = true;
  overflow_ = !masters_.take_gradients(1 / loss_scale());
}

double FP16_Optimizer::clip_master_grads(double max_norm, double norm_type) {
  return overflow_ ? -1 : clip_grad_norm(optim::parameters_of(optimizer_), max_norm, norm_type);
}

bool FP16_Optimizer::step() {
  if (!taken_) throw ConfigError("FP16_Optimizer: step() before backward(), or without update_master_grads()");
  if (scaler_.update_scale(overflow_)) return false;
  masters_.step();
  return true;
}

void FP16_Optimizer::zero_grad() {
  masters_.zero_grad();
  masters_.drop_model_gradients();
  taken_ = overflow_ = false;
}

void FP16_Optimizer::set_loss_scale(double scale) {
  if (!(scale > 0)) throw ConfigError("FP16_Optimizer: a loss scale of ", scale, "; it is above 0");
  auto state = scaler_.scaler().state();
  state.scale = scale;
  scaler_.scaler().load(state);
}

std::vector<at::Tensor> FP16_Optimizer::inspect_master_grad_data() const {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& stepped : optim::parameters_of(optimizer_)) gradients.push_back(stepped.grad());
  return gradients;
}

FP16OptimizerState FP16_Optimizer::state_dict() const {
  FP16OptimizerState state{.loss_scaler = full_state(scaler_.scaler()),
                           .dynamic_loss_scale = dynamic_,
                           .overflow = overflow_,
                           .fp32_from_fp16 = {}};
  for (const at::Tensor& master : masters_.masters()) state.fp32_from_fp16.push_back(master.detach().clone());
  return state;
}

void FP16_Optimizer::load_state_dict(const FP16OptimizerState& state) {
  const auto masters = masters_.masters();
  const auto& loaded = state.fp32_from_fp16;
  if (state.dynamic_loss_scale != dynamic_) {
    throw ConfigError("FP16_Optimizer: a state of a ", state.dynamic_loss_scale ? "dynamic" : "static",
                      " loss scale; this one has the other");
  }
  for (size_t i = 0; i < masters.size() || i < loaded.size(); ++i) {
    if (i < masters.size() && i < loaded.size() && masters[i].sizes() == loaded[i].sizes()) continue;
    throw ConfigError("FP16_Optimizer: a state of ", loaded.size(), " masters, which differ from these ",
                      masters.size(), " from number ", i, " on");
  }
  lockstep::amp::LossScaler scaler = scaler_.scaler();
  load_state(scaler, state.loss_scaler);
  scaler_.scaler() = scaler;
  overflow_ = state.overflow;
  const c10::AutoGradMode no_grad(false);
  for (size_t i = 0; i < masters.size(); ++i) masters[i].detach().copy_(loaded[i]);
  masters_.write_weights();
}

}  // namespace lockstep::apex::fp16_utils
