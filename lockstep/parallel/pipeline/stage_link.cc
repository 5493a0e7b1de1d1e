#include "lockstep/parallel/pipeline/stage_link.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"

namespace lockstep::parallel {
namespace {

constexpr int64_t kStep = 0, kMicroBatch = 1, kMicroBatches = 2, kTensors = 3, kFirst = 4;  // places in a header
constexpr int64_t kOfTensor = 4 + StageLink::kMostDims;  // dtype, whether it needs a gradient, layout, dims, sizes
constexpr int64_t kHeader = kFirst + StageLink::kMostTensors * kOfTensor;

// Messages of one micro-batch have tags of their own.
int header_tag(int micro_batch) { return 3 * micro_batch; }
int outputs_tag(int micro_batch) { return 3 * micro_batch + 1; }
int gradients_tag(int micro_batch) { return 3 * micro_batch + 2; }

}  // namespace

void StageLink::begin(int64_t step, int micro_batches) {
  step_ = step;
  micro_batches_ = micro_batches;
  sent_bytes_ = waited_ns_ = 0;
}

void StageLink::finish() {
  const int64_t began = monotonic_ns();
  for (const Sent& each : std::exchange(sent_, {})) each.work->wait();
  waited_ns_ += monotonic_ns() - began;
}

void StageLink::send(const at::Tensor& tensor, int to, int tag) {
  std::erase_if(sent_, [](const Sent& each) { return each.work->done(); });  // its memory is free again
  sent_.push_back({tensor, comm_.isend(tensor, to, tag)});
  sent_bytes_ += static_cast<int64_t>(tensor.nbytes());
}

void StageLink::receive(const at::Tensor& tensor, int from, int tag) {
  const int64_t began = monotonic_ns();
  comm_.receive(tensor, from, tag);
  waited_ns_ += monotonic_ns() - began;
}

void StageLink::send_outputs(int micro_batch, const Tensors& outputs) {
  const at::Tensor header = at::zeros({kHeader}, at::kLong);
  auto* const words = header.mutable_data_ptr<int64_t>();
  if (outputs.empty() || outputs.size() > kMostTensors) {
    throw ConfigError("pipeline: stage ", comm_.rank(), " returns ", outputs.size(), " tensors; expected 1 to ",
                      kMostTensors);
  }
  words[kStep] = step_;
  words[kMicroBatch] = micro_batch;
  words[kMicroBatches] = micro_batches_;
  words[kTensors] = std::ssize(outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const at::Tensor& output = outputs[i];
    if (!output.defined() || output.layout() != at::kStrided || output.dim() > static_cast<int64_t>(kMostDims)) {
      throw ConfigError("pipeline: output ", i, " of stage ", comm_.rank(), " is no dense tensor of at most ",
                        kMostDims, " dimensions");
    }
    int64_t* const about = words + kFirst + static_cast<int64_t>(i) * kOfTensor;
    about[0] = static_cast<int64_t>(output.scalar_type());
    about[1] = output.requires_grad() ? 1 : 0;
    about[2] = static_cast<int64_t>(output.suggest_memory_format());
    about[3] = output.dim();
    for (int64_t d = 0; d < output.dim(); ++d) about[4 + d] = output.size(d);
  }
  const int to = comm_.rank() + 1;
  send(header, to, header_tag(micro_batch));
  for (const at::Tensor& output : outputs) {
    send(output.detach().contiguous(output.suggest_memory_format()), to, outputs_tag(micro_batch));
  }
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
  Tensors inputs;
  for (int64_t i = 0; i < words[kTensors]; ++i) {
    const int64_t* const about = words + kFirst + i * kOfTensor;
    const at::Tensor input =
        at::empty(at::IntArrayRef(about + 4, static_cast<size_t>(about[3])), static_cast<at::ScalarType>(about[0]),
                  /*layout=*/{}, /*device=*/{}, /*pin_memory=*/{}, static_cast<at::MemoryFormat>(about[2]));
    receive(input, from, outputs_tag(micro_batch));
    inputs.push_back(input.requires_grad_(about[1] != 0));
  }
  return inputs;
}

void StageLink::send_gradients(int micro_batch, const Tensors& inputs) {
  for (const at::Tensor& input : inputs) {
    if (!input.requires_grad()) continue;
    const at::Tensor& gradient = input.grad();
    send(gradient.defined() ? gradient.detach().contiguous(input.suggest_memory_format())
                            : at::zeros_like(input.detach()),
         comm_.rank() - 1, gradients_tag(micro_batch));
  }
}

StageLink::Tensors StageLink::receive_gradients(int micro_batch, const Tensors& outputs) {
  Tensors gradients;
  for (const at::Tensor& output : outputs) {
    if (!output.requires_grad()) continue;
    const at::Tensor gradient =
        at::empty(output.sizes(), output.options().requires_grad(false), output.suggest_memory_format());
    receive(gradient, comm_.rank() + 1, gradients_tag(micro_batch));
    gradients.push_back(gradient);
  }
  return gradients;
}

}  // namespace lockstep::parallel
