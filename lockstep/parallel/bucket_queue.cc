#include "lockstep/parallel/bucket_queue.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/comm/square_sums.h"
#include "lockstep/parallel/numbers_on_their_way.h"

namespace lockstep::parallel {
namespace {

std::string label_of(const std::string& first_parameter, size_t members, size_t index, size_t planned) {
  return lockstep::cat("bucket ", index + 1, "/", planned, " (", first_parameter, members > 1 ? " …)" : ")");
}

double sum_in_order(const at::Tensor& numbers) {
  const auto* number = numbers.const_data_ptr<double>();
  double total = 0;
  for (int64_t i = 0; i < numbers.numel(); ++i) total += number[i];
  return total;
}

// The device on which a parameter's gradient is reduced.
at::Device place_of(const at::Tensor& parameter, const comm::Communicator& comm) {
  return comm.shares(parameter) ? parameter.device() : at::Device(at::kCPU);
}

Reduction reduction_of(const at::Tensor& parameter, comm::Communicator& comm, const DdpOptions& options) {
  const bool on_cpu = parameter.is_cpu();
  return {.flat = on_cpu ? !comm.shares(at::empty({1})) : comm.size() > 1,
          .always_fp32 = options.allreduce_always_fp32,
          .through_cpu = !on_cpu && !comm.shares(parameter),
          .wire = parameter.scalar_type() == at::kFloat ? options.wire() : std::nullopt,
          .hook = options.comm_hook};
}

}  // namespace

BucketQueue::BucketQueue(const std::vector<NamedParameter>& parameters, comm::Communicator& comm,
                         const DdpOptions& options)
    : comm_(comm), positions_(parameters.size()) {
  std::vector<ParameterSize> sizes;
  std::vector<Member> dense;
  int64_t count = 0;
  std::optional<at::Device> device;  // of all gradients' reductions; the CPU's where they have several
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].sparse) continue;
    const at::Tensor& tensor = parameters[i].tensor;
    const at::Device place = place_of(tensor, comm);
    device = !device || *device == place ? place : at::Device(at::kCPU);
    sizes.push_back({.bytes = static_cast<int64_t>(tensor.nbytes()),
                     .dtype = tensor.scalar_type(),
                     .device = tensor.device(),
                     .closes = options.closes_bucket(tensor)});
    dense.push_back({.parameter = i, .square_sums = comm::square_sum_count(tensor.numel(), place)});
    count += dense.back().square_sums;
  }
  square_sums_ = at::zeros({count}, at::TensorOptions(at::kDouble).device(device.value_or(at::kCPU)));
  const auto plan = plan_buckets(sizes, options.buckets);
  int64_t first = 0;
  for (const auto& numbers : plan) {
    std::vector<Member> members;
    int64_t own = 0;
    for (const size_t number : numbers) {
      members.push_back(dense[number]);
      own += dense[number].square_sums;
    }
    add_bucket(parameters, std::move(members), plan.size(), square_sums_.narrow(0, first, own), options);
    first += own;
  }
}

void BucketQueue::add_bucket(const std::vector<NamedParameter>& parameters, std::vector<Member> members, size_t planned,
                             const at::Tensor& square_sums, const DdpOptions& options) {
  const size_t index = buckets_.size();
  std::vector<at::Tensor> tensors;
  for (const Member& member : members) {
    positions_[member.parameter] = {.bucket = index, .member = tensors.size()};
    tensors.push_back(parameters[member.parameter].tensor);
  }
  const Reduction reduction = reduction_of(tensors[0], comm_, options);
  buckets_.emplace_back(index, label_of(parameters[members[0].parameter].name, members.size(), index, planned),
                        std::move(tensors), square_sums, reduction);
  members_.push_back(std::move(members));
}

void BucketQueue::begin_step(double loss_scale, double multiply) {
  const uint64_t unfinished = begun_++ - finished_;
  launched_ = 0;
  for (auto& bucket : buckets_) bucket.begin(loss_scale, multiply, (unfinished << 32) + begun_);
}

void BucketQueue::put(size_t parameter, at::Tensor gradient) {
  bucket_of(parameter).put(positions_[parameter].member, std::move(gradient));
}

void BucketQueue::put_low_precision(size_t parameter, at::Tensor gradient) {
  bucket_of(parameter).put_low_precision(positions_[parameter].member, std::move(gradient));
}

void BucketQueue::launch_full() {
  for (; launched_ < buckets_.size() && buckets_[launched_].full(); ++launched_) buckets_[launched_].launch(comm_);
}

std::vector<at::Tensor> BucketQueue::finish() {
  std::vector<at::Tensor> sums(positions_.size());
  for (size_t b = 0; b < buckets_.size(); ++b) {
    std::vector<at::Tensor> reduced = buckets_[b].finish();
    for (size_t k = 0; k < reduced.size(); ++k) sums[members_[b][k].parameter] = std::move(reduced[k]);
  }
  ++finished_;
  return sums;
}

void BucketQueue::drop() noexcept {
  for (auto& bucket : buckets_) bucket.drop();
}

LateNumber BucketQueue::square_sum() const {
  if (square_sums_.is_cpu()) return sum_in_order(square_sums_);
  const NumbersOnTheirWay sums(square_sums_);
  return LateNumber([sums, &comm = comm_] {
    const double total = sum_in_order(sums.read());
    comm.progress();
    return total;
  });
}

at::Tensor BucketQueue::overflow() const {
  if (square_sums_.is_cpu()) return {};
  return square_sums_.sum().isfinite().logical_not().to(at::kFloat).view({1});
}

void BucketQueue::take_square_sums(const std::vector<at::Tensor>& gradients) {
  for (size_t b = 0; b < buckets_.size(); ++b) {
    std::vector<at::Tensor> own;
    for (const Member& member : members_[b]) own.push_back(gradients[member.parameter]);
    buckets_[b].take_square_sums(std::move(own));
  }
}

std::optional<size_t> BucketQueue::first_not_finite() const {
  const at::Tensor on_host = square_sums_.cpu();
  const auto* sum = on_host.const_data_ptr<double>();
  for (const auto& members : members_) {
    for (const auto& [parameter, count] : members) {
      if (!std::all_of(sum, sum + count, [](double value) { return std::isfinite(value); })) return parameter;
      sum += count;
    }
  }
  return std::nullopt;
}

}  // namespace lockstep::parallel
