// A part of a loop's state that a checkpoint holds: a network, an optimizer, a number …
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/checkpoint/formats/value_view.h"
#include "lockstep/data/loader.h"
#include "lockstep/optim/any_optimizer.h"
#include "lockstep/optim/fused_optimizer.h"
#include "lockstep/optim/optimizer_ref.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/schedule/schedule.h"

namespace lockstep::loop {

// Values in place of parameters: the fp32 masters of 16-bit weights.
using ByParameter = amp::MastersByWeight;

class Part {
 public:
  virtual ~Part() = default;
  // "a network", "an optimizer (adamw)": another kind's state is refused.
  virtual std::string kind() const = 0;
  // The part's value; tensors share its memory. May be a collective; then the value is whole on rank 0 alone.
  virtual checkpoint::Value save(const ByParameter& masters) = 0;
  // Refuses what load() would, as far as that can be told without changing anything: all parts of a loop are checked
  // as they are before the first is loaded. No collective, so that one rank alone may refuse. Throws ConfigError for
  // what does not fit, DataError.
  virtual void check(const checkpoint::ValueView& /*saved*/) {}
  // Takes over a value that was checked. No collective. Throws as check() does.
  virtual void load(const checkpoint::ValueView& saved) = 0;
  // The fp32 masters that this part steps, by weight.
  virtual ByParameter masters() { return {}; }
  // Takes over the masters among these values, which a network's state had for its parameters.
  virtual void load_masters(const ByParameter&) {}
  // The values that the last load() found for 16-bit parameters.
  virtual ByParameter loaded() { return {}; }
  // The network or the mixed precision that the part is; nullptr for others.
  virtual const torch::nn::Module* network() const { return nullptr; }
  virtual const amp::MixedPrecision* mixed() const { return nullptr; }
  // Tells weights that all ranks are to have alike from others; "" where none are.
  virtual std::string weights_hash() const { return ""; }
  // Whether the part is this optimizer.
  virtual bool is(const optim::OptimizerRef&) const { return false; }
};

// What can be a part besides those below: anything with a state of its own.
template <typename T>
concept HasState = requires(T& part, const T& constant, const checkpoint::ValueView& saved) {
  { constant.state_dict() } -> std::convertible_to<checkpoint::Value>;
  part.load_state_dict(saved);
};
// Where it can refuse a state without changing anything, it does so in a member of this name.
template <typename T>
concept ChecksState = requires(const T& constant, const checkpoint::ValueView& saved) {
  constant.check_state_dict(saved);
};

// All of them keep a reference.
std::unique_ptr<Part> make_part(parallel::DistributedDataParallel& network);
std::unique_ptr<Part> make_part(torch::nn::Module& network);  // equal on all ranks, such as an average of weights
// Libtorch's or Lockstep's. With an average of the weights (keep_average()) and masters that MixedPrecision has not
// given it. Between two exchange_averages() saving and loading are a ConfigError: the file has the weights and the
// averages.
std::unique_ptr<Part> make_part(torch::optim::Optimizer& optimizer);
std::unique_ptr<Part> make_part(optim::FusedOptimizer& optimizer);
std::unique_ptr<Part> make_part(optim::AnyOptimizer& optimizer);
std::unique_ptr<Part> make_part(amp::MixedPrecision& mixed);
std::unique_ptr<Part> make_part(parallel::CommHook& hook);  // PowerSGD's matrices and errors
// The place in the data; another seed, batch size, mixing or other transforms are refused (loader_part.cc).
std::unique_ptr<Part> make_part(data::Loader& loader);
std::unique_ptr<Part> make_part(const schedule::ScheduleOptions& schedule);  // another schedule is refused
std::unique_ptr<Part> make_part(int64_t& number);
std::unique_ptr<Part> make_part(double& number);
std::unique_ptr<Part> make_part(bool& flag);
std::unique_ptr<Part> make_part(std::string& text);
std::unique_ptr<Part> make_part(at::Tensor& tensor);  // shape and dtype stay

template <HasState T>
class StatefulPart final : public Part {
 public:
  explicit StatefulPart(T& part) : part_(part) {}
  std::string kind() const override { return "a state of its own"; }
  checkpoint::Value save(const ByParameter&) override { return part_.state_dict(); }
  void check(const checkpoint::ValueView& saved) override {
    if constexpr (ChecksState<T>) part_.check_state_dict(saved);
  }
  void load(const checkpoint::ValueView& saved) override { part_.load_state_dict(saved); }

 private:
  T& part_;
};
template <HasState T>
std::unique_ptr<Part> make_part(T& part) {
  return std::make_unique<StatefulPart<T>>(part);
}

}  // namespace lockstep::loop
