#include "lockstep/parallel/pipeline/stage_link.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <bit>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"

namespace lockstep::parallel {
namespace {

constexpr int64_t kStep = 0, kMicroBatch = 1, kMicroBatches = 2, kScale = 3, kTensors = 4, kFirst = 5;  // in a header
constexpr int64_t kOfTensor = 4 + StageLink::kMostDims;  // dtype, flags, layout, dims, sizes
constexpr int64_t kNeedsGradient = 1, kOnDevice = 2;     // flags
constexpr int64_t kMostStates = 2;                       // of random numbers, beside the tensors
constexpr int64_t kHeader = kFirst + (static_cast<int64_t>(StageLink::kMostTensors) + kMostStates) * kOfTensor;

// Messages of one micro-batch have tags of their own.
int header_tag(int micro_batch) { return 3 * micro_batch; }
int outputs_tag(int micro_batch) { return 3 * micro_batch + 1; }
int gradients_tag(int micro_batch) { return 3 * micro_batch + 2; }

// The values without their graph. Somebody may write to a tensor that was not computed just now while it is under way:
// an input that is passed on, a buffer.
at::Tensor values_of(const at::Tensor& output) {
  const bool is_new = output.grad_fn() != nullptr || (output.use_count() == 1 && output.storage().use_count() == 1);
  const at::MemoryFormat format = output.suggest_memory_format();
  const at::Tensor values = output.detach().resolve_conj().resolve_neg();
  return is_new ? values.contiguous(format) : values.clone(format);
}

}  // namespace

void StageLink::begin(int64_t step, int micro_batches, double loss_scale) {
  step_ = step;
  loss_scale_ = loss_scale;
  micro_batches_ = micro_batches;
  sent_bytes_ = waited_ns_ = 0;
}

void StageLink::finish() { wait_below(0); }

void StageLink::wait_below(size_t most) {
  const int64_t began = monotonic_ns();
  for (; sent_.size() > most; sent_.pop_front()) sent_.front().work->wait();
  waited_ns_ += monotonic_ns() - began;
}

void StageLink::send(const at::Tensor& tensor, int to, int tag) {
  std::erase_if(sent_, [](const Sent& each) { return each.work->done(); });  // its memory is free again
  const at::Tensor here = tensor.cpu();
  sent_.push_back({here, comm_.isend(here, to, tag)});
  sent_bytes_ += static_cast<int64_t>(tensor.nbytes());
}

void StageLink::receive(const at::Tensor& tensor, int from, int tag) {
  const int64_t began = monotonic_ns();
  comm_.receive(tensor, from, tag);
  waited_ns_ += monotonic_ns() - began;
}

// A tensor of that description, by way of the host where it is on a GPU.
at::Tensor StageLink::received(at::IntArrayRef sizes, const at::TensorOptions& options, at::MemoryFormat format,
                               int from, int tag) {
  const at::Device device = options.device();
  const at::Tensor here =
      at::empty(sizes, options.device(at::kCPU).pinned_memory(!device.is_cpu()).memory_format(format));
  receive(here, from, tag);
  return here.to(device, /*non_blocking=*/true);
}

void StageLink::send_outputs(int micro_batch, const Tensors& outputs) {
  const at::Tensor header = at::zeros({kHeader}, at::kLong);
  auto* const words = header.mutable_data_ptr<int64_t>();
  words[kStep] = step_;
  words[kMicroBatch] = micro_batch;
  words[kMicroBatches] = micro_batches_;
  words[kScale] = std::bit_cast<int64_t>(loss_scale_);
  words[kTensors] = std::ssize(outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const at::Tensor& output = outputs[i];
    if (!output.defined() || output.layout() != at::kStrided || output.dim() > static_cast<int64_t>(kMostDims)) {
      throw ConfigError("pipeline: output ", i, " of stage ", comm_.rank(), " is no dense tensor of at most ",
                        kMostDims, " dimensions");
    }
    int64_t* const about = words + kFirst + static_cast<int64_t>(i) * kOfTensor;
    about[0] = static_cast<int64_t>(output.scalar_type());
    about[1] = (output.requires_grad() ? kNeedsGradient : 0) | (output.device() == device_ ? kOnDevice : 0);
    about[2] = static_cast<int64_t>(output.suggest_memory_format());
    about[3] = output.dim();
    for (int64_t d = 0; d < output.dim(); ++d) about[4 + d] = output.size(d);
  }
  const int to = comm_.rank() + 1;
  send(header, to, header_tag(micro_batch));
  for (const at::Tensor& output : outputs) send(values_of(output), to, outputs_tag(micro_batch));
}

StageLink::Tensors StageLink::receive_inputs(int micro_batch) {
  const int from = comm_.rank() - 1;
  const at::Tensor header = at::zeros({kHeader}, at::kLong);
  receive(header, from, header_tag(micro_batch));
  const auto* const words = header.const_data_ptr<int64_t>();
  if (words[kStep] != step_ || words[kMicroBatches] != micro_batches_ || words[kMicroBatch] != micro_batch) {
    throw ConfigError("pipeline: stage ", from, " is at micro-batch ", words[kMicroBatch], " of ", words[kMicroBatches],
                      " of step ", words[kStep], ", and stage ", comm_.rank(), " at ", micro_batch, " of ",
                      micro_batches_, " of step ", step_, "; all ranks run the same steps");
  }
  if (const auto scale = std::bit_cast<double>(words[kScale]); scale != loss_scale_) {
    throw ConfigError("pipeline: step ", step_, ": stage ", from, " has a loss scale of ", scale, ", and stage ",
                      comm_.rank(), " of ", loss_scale_, "; all begin with one, and step by the same results");
  }
  Tensors inputs;
  for (int64_t i = 0; i < words[kTensors]; ++i) {
    const int64_t* const about = words + kFirst + i * kOfTensor;
    const auto options = at::TensorOptions(static_cast<at::ScalarType>(about[0]))
                             .device((about[1] & kOnDevice) != 0 ? device_ : at::Device(at::kCPU));
    const at::Tensor input = received({about + 4, static_cast<size_t>(about[3])}, options,
                                      static_cast<at::MemoryFormat>(about[2]), from, outputs_tag(micro_batch));
    inputs.push_back(input.requires_grad_((about[1] & kNeedsGradient) != 0));
  }
  return inputs;
}

void StageLink::send_gradients(int micro_batch, const Tensors& inputs) {
  const at::Tensor which = at::zeros({1}, at::kLong);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].grad().defined()) *which.mutable_data_ptr<int64_t>() |= int64_t{1} << i;
  }
  const int to = comm_.rank() - 1;
  send(which, to, gradients_tag(micro_batch));
  for (const at::Tensor& input : inputs) {
    if (input.grad().defined()) {
      send(input.grad().detach().contiguous(input.suggest_memory_format()), to, gradients_tag(micro_batch));
    }
  }
}

StageLink::Tensors StageLink::receive_gradients(int micro_batch, const Tensors& outputs) {
  const int from = comm_.rank() + 1;
  const at::Tensor which = at::zeros({1}, at::kLong);
  receive(which, from, gradients_tag(micro_batch));
  Tensors gradients(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if ((*which.const_data_ptr<int64_t>() >> i & 1) == 0) continue;
    const at::Tensor& output = outputs[i];
    gradients[i] = received(output.sizes(), output.options().requires_grad(false), output.suggest_memory_format(), from,
                            gradients_tag(micro_batch));
  }
  return gradients;
}

}  // namespace lockstep::parallel
