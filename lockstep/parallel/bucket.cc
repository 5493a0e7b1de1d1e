#include "lockstep/parallel/bucket.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "lockstep/comm/square_sums.h"

namespace lockstep::parallel {
namespace {

double seconds(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) * 1e-9; }

// Cuts the memory of one flat tensor up into gradients of these parameters.
std::vector<at::Tensor> parts_of_one(const std::vector<at::Tensor>& parameters) {
  int64_t elements = 0;
  for (const auto& parameter : parameters) elements += parameter.numel();
  const at::Tensor flat = at::empty({elements}, parameters[0].options().requires_grad(false));
  std::vector<at::Tensor> parts;
  int64_t first = 0;
  for (const auto& parameter : parameters) {
    parts.push_back(flat.as_strided(parameter.sizes(), parameter.strides(), first));
    first += parameter.numel();
  }
  return parts;
}

}  // namespace

Bucket::Bucket(size_t index, std::string label, std::vector<at::Tensor> parameters, at::Tensor square_sums,
               Reduction reduction)
    : in_{.index = index, .label = std::move(label), .parameters = std::move(parameters), .gradients = {}},
      square_sums_(std::move(square_sums)),
      reduction_(std::move(reduction)) {
  const c10::AutoGradMode no_grad(false);
  in_.gradients.resize(in_.parameters.size());
  reduction_.always_fp32 = reduction_.always_fp32 && in_.parameters[0].element_size() < 4;
  if (reduction_.flat) parts_ = parts_of_one(in_.parameters);
  log_.label = in_.label;
  for (const auto& parameter : in_.parameters) log_.bytes += static_cast<int64_t>(parameter.nbytes());
}

void Bucket::begin(double loss_scale, double multiply, uint64_t step) {
  drop();
  in_.loss_scale = loss_scale;
  in_.step = step;
  multiply_ = multiply;
  missing_ = in_.parameters.size();
}

void Bucket::put(size_t k, at::Tensor gradient) {
  if (reduction_.always_fp32) {
    travelling_.resize(in_.parameters.size());
    travelling_[k] = gradient.to(at::kFloat);
    gradient = gradient.to(in_.parameters[k].scalar_type());
  }
  if (reduction_.flat) {
    parts_[k].copy_(gradient);
    // No view, which zero_grad() can't detach, and with a version of its own; a hold of it ends with the step.
    gradient = parts_[k].variable_data();
  }
  --missing_;
  in_.gradients[k] = std::move(gradient);
}

void Bucket::put_low_precision(size_t k, at::Tensor gradient) {
  leaves_.resize(in_.parameters.size());
  leaves_[k] = std::move(gradient);
  --missing_;
  in_.gradients[k] = at::empty_like(in_.parameters[k]);
}

void Bucket::launch(comm::Communicator& comm) {
  const c10::AutoGradMode no_grad(false);
  if (reduction_.hook != nullptr) {
    work_ = reduction_.hook->begin(in_, comm);
    return;
  }
  if (reduction_.through_cpu) {
    if (travelling_.empty()) travelling_ = in_.gradients;
    for (auto& gradient : travelling_) gradient = gradient.cpu();
  }
  work_ = comm.fold(travelling_.empty() ? in_.gradients : travelling_, {.label = in_.label,
                                                                        .step = in_.step,
                                                                        .square_sums = square_sums_,
                                                                        .wire = reduction_.wire,
                                                                        .leaves = std::exchange(leaves_, {})});
}

std::vector<at::Tensor> Bucket::finish() {
  const c10::AutoGradMode no_grad(false);
  const Stopwatch watch;
  work_->wait();
  log_.waited = watch.seconds();
  log_.in_flight = seconds(work_->elapsed());
  if (work_->stream_waited()) on_gpu_ = work_;
  if (multiply_ != 1) {
    for (auto& gradient : travelling_.empty() ? in_.gradients : travelling_) gradient.mul_(multiply_);
  }
  for (size_t k = 0; k < travelling_.size(); ++k) in_.gradients[k].copy_(travelling_[k]);
  // A hook leaves no sums of squares, and the fold's are those before the factor and before rounding to 16 bits.
  if (reduction_.hook != nullptr || multiply_ != 1 || reduction_.always_fp32) take_square_sums(in_.gradients);
  std::vector<at::Tensor> reduced(in_.parameters.size());
  reduced.swap(in_.gradients);
  drop();
  return reduced;
}

BucketLog Bucket::log() const {
  BucketLog log = log_;
  if (on_gpu_) {
    log.in_flight = seconds(on_gpu_->elapsed());
    log.waited = seconds(on_gpu_->stream_waited().value_or(std::chrono::nanoseconds(0)));
  }
  return log;
}

void Bucket::take_square_sums(std::vector<at::Tensor> gradients) const {
  if (reduction_.through_cpu) {
    for (auto& gradient : gradients) gradient = gradient.cpu();
  }
  comm::take_square_sums(gradients, square_sums_);
}

void Bucket::drop() noexcept {
  work_.reset();
  travelling_.clear();
  leaves_.clear();
  for (auto& gradient : in_.gradients) gradient.reset();
}

}  // namespace lockstep::parallel
