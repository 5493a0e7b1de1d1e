#include "lockstep/parallel/bucket.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "lockstep/comm/square_sums.h"

namespace lockstep::parallel {
namespace {

double seconds(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) * 1e-9; }

// One tensor's memory cut up into gradients of these parameters.
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

Bucket::Bucket(size_t index, std::string label, std::vector<at::Tensor> members, at::Tensor square_sums,
               Transport transport)
    : in_{.index = index, .label = std::move(label), .gradients = {}},
      square_sums_(std::move(square_sums)),
      transport_(std::move(transport)) {
  const c10::AutoGradMode no_grad(false);
  in_.gradients.resize(members.size());
  transport_.always_fp32 = transport_.always_fp32 && members[0].element_size() < 4;
  if (transport_.flat) parts_ = parts_of_one(members);
  for (const auto& member : members) types_.push_back(member.scalar_type());
  log_.label = in_.label;
  for (const auto& member : members) log_.bytes += static_cast<int64_t>(member.nbytes());
}

void Bucket::begin() { missing_ = in_.gradients.size(); }

at::Tensor Bucket::put(size_t k, at::Tensor gradient) {
  if (transport_.always_fp32) {
    travelling_.resize(in_.gradients.size());
    travelling_[k] = gradient.to(at::kFloat);
    gradient = gradient.to(types_[k]);
  }
  if (transport_.flat) {
    parts_[k].copy_(gradient);
    gradient = parts_[k];
  }
  --missing_;
  return in_.gradients[k] = std::move(gradient);
}

at::Tensor Bucket::put_leaf(size_t k, at::Tensor leaf, at::Tensor sum) {
  leaves_.resize(in_.gradients.size());
  leaves_[k] = std::move(leaf);
  --missing_;
  return in_.gradients[k] = std::move(sum);
}

void Bucket::launch(comm::Communicator& comm) {
  const c10::AutoGradMode no_grad(false);
  if (transport_.hook != nullptr) {
    work_ = transport_.hook->begin(in_, comm);
    return;
  }
  if (transport_.through_cpu) {
    if (travelling_.empty()) travelling_ = in_.gradients;
    for (auto& gradient : travelling_) gradient = gradient.cpu();
  }
  work_ = comm.fold(
      travelling_.empty() ? in_.gradients : travelling_,
      {.label = in_.label, .square_sums = square_sums_, .wire = transport_.wire, .leaves = std::exchange(leaves_, {})});
}

void Bucket::finish() {
  const c10::AutoGradMode no_grad(false);
  const Stopwatch watch;
  work_->wait();
  log_.waited = watch.seconds();
  log_.in_flight = seconds(work_->elapsed());
  if (transport_.multiply != 1) {
    for (auto& gradient : travelling_.empty() ? in_.gradients : travelling_) gradient.mul_(transport_.multiply);
  }
  for (size_t k = 0; k < travelling_.size(); ++k) in_.gradients[k].copy_(travelling_[k]);
  if (transport_.hook != nullptr || transport_.multiply != 1 || transport_.always_fp32) take_square_sums();
  drop();
}

// Of a hook's result, or where they are not the fold's.
void Bucket::take_square_sums() const {
  std::vector<at::Tensor> here;
  for (const auto& gradient : in_.gradients) here.push_back(gradient.cpu());
  comm::take_square_sums(here, square_sums_);
}

void Bucket::drop() noexcept {
  work_.reset();
  travelling_.clear();
  leaves_.clear();
  for (auto& gradient : in_.gradients) gradient.reset();
}

}  // namespace lockstep::parallel
