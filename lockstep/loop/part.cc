#include "lockstep/loop/part.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lockstep/amp/loss_scaler.h"
#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/stored_tensor.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/loop/optimizer_values.h"
#include "lockstep/loop/scaler_values.h"
#include "lockstep/loop/schedule_values.h"
#include "lockstep/loop/weights_check.h"
#include "lockstep/optim/master_weights.h"
#include "lockstep/optim/rules/libtorch_state.h"
#include "lockstep/optim/weight_averages.h"

namespace lockstep::loop {
namespace {

using checkpoint::Dict;
using checkpoint::Value;
using checkpoint::ValueView;

class NetworkPart final : public Part {
 public:
  NetworkPart(torch::nn::Module& network, parallel::DistributedDataParallel* wrapper)
      : network_(network), wrapper_(wrapper) {}
  std::string kind() const override { return "a network"; }

  Value save(const ByParameter& masters) override {
    if (wrapper_ != nullptr && wrapper_->has_divided_weights()) {
      throw ConfigError(
          "loop state: a network whose layers are divided among ranks, of which the file would have rank ",
          "0's parts; save each rank's state_dict by itself");
    }
    if (wrapper_ != nullptr) wrapper_->sync_buffers();
    std::unordered_map<std::string, at::Tensor> by_name;
    for (const auto& item : network_.named_parameters()) {
      const auto found = masters.find(item.value().unsafeGetTensorImpl());
      if (found != masters.end()) by_name.emplace(item.key(), found->second);
    }
    Dict state;
    for (const auto& [name, tensor] : checkpoint::named_state(network_)) {
      const auto master = by_name.find(name);
      state.set(name, master == by_name.end() ? tensor : master->second);
    }
    return state;
  }

  void check(const ValueView& saved) override {
    checkpoint::check_state_dict(network_, saved.dict(), {.file = saved.where(), .convert_dtypes = true});
  }

  void load(const ValueView& saved) override {
    const auto report =
        checkpoint::load_state_dict(network_, saved.dict(), {.file = saved.where(), .convert_dtypes = true});
    for (const auto& item : network_.named_parameters()) {
      if (!optim::is_narrow(item.value())) continue;
      loaded_.emplace(item.value().unsafeGetTensorImpl(), saved[report.prefix + item.key()].tensor());
    }
  }

  ByParameter loaded() override { return std::exchange(loaded_, {}); }
  const torch::nn::Module* network() const override { return &network_; }
  std::string weights_hash() const override {
    return wrapper_ == nullptr || wrapper_->has_equal_weights() ? hash_of_weights(network_) : "";
  }

 private:
  torch::nn::Module& network_;
  parallel::DistributedDataParallel* wrapper_;
  ByParameter loaded_;
};

class OptimizerPart final : public Part {
 public:
  OptimizerPart(torch::optim::Optimizer* libtorchs, optim::AnyOptimizer* ours) : libtorchs_(libtorchs), ours_(ours) {
    if (ours_ == nullptr) optim::check_listed_once(*libtorchs_);
    if (ours_ == nullptr && optim::libtorch_name(*libtorchs_).empty()) optim::libtorch_state(*libtorchs_);  // says why
  }
  std::string kind() const override {
    return cat("an optimizer (", ours_ != nullptr ? ours_->name() : optim::libtorch_name(*libtorchs_), ')');
  }

  Value save(const ByParameter&) override {
    if (ours_ != nullptr) optim::check_own_weights(*ours_, "a checkpoint");
    const auto state = ours_ != nullptr ? ours_->state_dict() : optim::libtorch_state(*libtorchs_);
    Dict dict = checkpoint::optimizer_to_dict(to_values(state));
    if (ours_ != nullptr) add_averages(ours_->averages(), dict);
    return dict;
  }

  void check(const ValueView& saved) override {
    from_values(checkpoint::optimizer_from_dict(saved), saved.where());
    if (ours_ != nullptr) optim::check_own_weights(*ours_, "loading");
    averages_in(saved);
  }

  void load(const ValueView& saved) override {
    const auto state = from_values(checkpoint::optimizer_from_dict(saved), saved.where());
    if (ours_ == nullptr) return load_libtorchs(state);
    const std::vector<at::Tensor> averages = averages_in(saved);
    ours_->load_state_dict(state);
    if (!averages.empty()) ours_->load_averages(averages);
  }

  bool is(const optim::OptimizerRef& optimizer) const override {
    return ours_ != nullptr ? optimizer.ours() == ours_ : optimizer.libtorchs() == libtorchs_;
  }

  ByParameter masters() override {
    ByParameter found;
    if (!has_masters_to_itself()) return found;
    const auto weights = ours_->all_parameters(), masters = ours_->masters();
    for (size_t i = 0; i < masters.size(); ++i) {
      if (masters[i].defined()) found.emplace(weights[i].unsafeGetTensorImpl(), masters[i]);
    }
    return found;
  }

  void load_masters(const ByParameter& values) override {
    if (!has_masters_to_itself()) return;
    const auto weights = ours_->all_parameters();
    std::vector<at::Tensor> masters(weights.size());
    for (size_t i = 0; i < weights.size(); ++i) {
      const auto found = values.find(weights[i].unsafeGetTensorImpl());
      if (found != values.end() && optim::is_narrow(weights[i])) masters[i] = found->second;
    }
    ours_->load_masters(masters);
  }

 private:
  void load_libtorchs(const optim::OptimizerState& state) {
    for (const auto& parameter : state.parameters) {
      for (const auto& named : parameter.tensors) {
        if (named.value.defined()) checkpoint::bring_into_memory(named.value);
      }
    }
    optim::load_libtorch_state(*libtorchs_, state);
  }

  // Those that MixedPrecision gave to an optimizer are its part. An optimizer may keep masters where it gives none.
  bool has_masters_to_itself() const {
    if (ours_ == nullptr) return false;
    const auto* mixed = amp::MixedPrecision::find_for(ours_->all_parameters().front());
    if (mixed != nullptr && mixed->keeps_masters_of(*ours_)) return false;
    return !ours_->masters().empty();
  }

  static void add_averages(const std::vector<at::Tensor>& averages, Dict& dict) {
    const auto defined = [](const at::Tensor& average) { return average.defined(); };
    if (std::none_of(averages.begin(), averages.end(), defined)) return;
    checkpoint::List list;
    for (const at::Tensor& average : averages) list.push_back(average.defined() ? Value(average) : Value());
    dict.set("averages", std::move(list));
  }

  // As many as this optimizer keeps, all undefined where the file is older than the first average.
  std::vector<at::Tensor> averages_in(const ValueView& saved) const {
    const bool keeps = ours_ != nullptr && ours_->keeps_average();
    std::vector<at::Tensor> averages(keeps ? ours_->all_parameters().size() : 0);
    const auto list = saved.find("averages");
    if (!list) return averages;
    if (!keeps) {
      throw ConfigError(
          saved.where(), ": the checkpoint has an average of the weights, and this loop keeps none; call ",
          ours_ != nullptr ? "keep_average() before" : "keep_average() of an optimizer of lockstep::optim");
    }
    averages.clear();
    for (const ValueView& item : list->items()) {
      averages.push_back(item.value().is_none() ? at::Tensor() : item.tensor());
    }
    return averages;
  }

  torch::optim::Optimizer* libtorchs_;  // this, if ours_ is null
  optim::AnyOptimizer* ours_;
};

class MixedPrecisionPart final : public Part {
 public:
  explicit MixedPrecisionPart(amp::MixedPrecision& mixed) : mixed_(mixed) {}
  std::string kind() const override { return "mixed precision"; }

  Value save(const ByParameter&) override {
    Dict state{{"opt_level", amp::name_of(mixed_.policy().level)}};
    if (mixed_.policy().casts()) state.set("dtype", dtype());
    for (int i = 0; i < mixed_.num_losses(); ++i) state.set(cat("loss_scaler", i), scaler_to_dict(mixed_.scaler(i)));
    return state;
  }

  void check(const ValueView& saved) override {
    const std::string level = amp::name_of(mixed_.policy().level), &was = saved["opt_level"].text();
    if (was != level) {
      throw ConfigError(saved.where(), ": the checkpoint is of opt level ", was, ", this loop of ", level, "; use ",
                        was, ", or load its networks alone");
    }
    if (const auto half = saved.find("dtype"); half && half->text() != dtype()) {
      throw ConfigError(saved.where(), ": the checkpoint is of ", half->text(), ", this loop of ", dtype(),
                        "; use the same, or load its networks alone");
    }
    int losses = 0;
    while (saved.find(cat("loss_scaler", losses))) ++losses;
    if (losses != mixed_.num_losses()) {
      throw ConfigError(saved.where(), ": the checkpoint is of ", losses, " losses, this loop has num_losses ",
                        mixed_.num_losses());
    }
  }

  void load(const ValueView& saved) override {
    for (int i = 0; i < mixed_.num_losses(); ++i) scaler_from_dict(saved[cat("loss_scaler", i)], mixed_.scaler(i));
  }

  ByParameter masters() override { return mixed_.masters_by_weight(); }
  void load_masters(const ByParameter& values) override { mixed_.load_masters_by_weight(values); }
  const amp::MixedPrecision* mixed() const override { return &mixed_; }

 private:
  const char* dtype() const { return mixed_.policy().dtype == at::kHalf ? "fp16" : "bf16"; }

  amp::MixedPrecision& mixed_;
};

// A loop makes its schedule anew, perhaps of other arguments: what is saved is what the rates so far depended on.
class SchedulePart final : public Part {
 public:
  explicit SchedulePart(const schedule::ScheduleOptions& schedule) : schedule_(schedule) {}
  std::string kind() const override { return "a schedule"; }
  Value save(const ByParameter&) override {
    schedule_.check();
    return to_values(schedule_);
  }
  void check(const ValueView& saved) override {
    schedule_.check();
    const std::string differs = difference(saved.dict(), to_values(schedule_));
    if (differs.empty()) return;
    throw ConfigError(saved.where(), ": the checkpoint is of another schedule, whose ", differs,
                      " in this loop; give it the former one, or load the checkpoint's networks alone");
  }
  void load(const ValueView&) override {}

 private:
  const schedule::ScheduleOptions& schedule_;
};

class HookPart final : public Part {
 public:
  explicit HookPart(parallel::CommHook& hook) : hook_(hook) {}
  std::string kind() const override { return "a communication hook"; }
  Value save(const ByParameter&) override {
    Dict state;
    for (const auto& [name, tensor] : hook_.state_dict()) state.set(name, tensor);
    return state;
  }
  void load(const ValueView& saved) override {
    parallel::CommHook::State state;
    for (const auto& [key, value] : saved.dict()) {
      const std::string name = checkpoint::key_text(key);
      state.emplace(name, saved[name].tensor());
    }
    hook_.load_state_dict(state);
  }

 private:
  parallel::CommHook& hook_;
};

class TensorPart final : public Part {
 public:
  explicit TensorPart(at::Tensor& tensor) : tensor_(tensor) {}
  std::string kind() const override { return "a tensor"; }
  Value save(const ByParameter&) override { return tensor_.detach(); }
  void check(const ValueView& saved) override {
    const at::Tensor& value = saved.tensor();
    if (value.sizes() != tensor_.sizes() || value.scalar_type() != tensor_.scalar_type()) {
      throw ConfigError(saved.where(), ": the checkpoint has ", value.toString(), value.sizes(), ", this loop ",
                        tensor_.toString(), tensor_.sizes());
    }
  }
  void load(const ValueView& saved) override { tensor_.detach().copy_(saved.tensor()); }

 private:
  at::Tensor& tensor_;
};

// A number, a flag or a text. `read` takes it from a view.
template <typename T, typename Read>
class PlainPart final : public Part {
 public:
  PlainPart(T& value, const char* kind, Read read) : value_(value), kind_(kind), read_(read) {}
  std::string kind() const override { return kind_; }
  Value save(const ByParameter&) override { return value_; }
  void check(const ValueView& saved) override { read_(saved); }
  void load(const ValueView& saved) override { value_ = read_(saved); }

 private:
  T& value_;
  const char* kind_;
  Read read_;
};
template <typename T, typename Read>
std::unique_ptr<Part> plain_part(T& value, const char* kind, Read read) {
  return std::make_unique<PlainPart<T, Read>>(value, kind, read);
}

}  // namespace

std::unique_ptr<Part> make_part(parallel::DistributedDataParallel& network) {
  return std::make_unique<NetworkPart>(network.module(), &network);
}
std::unique_ptr<Part> make_part(torch::nn::Module& network) { return std::make_unique<NetworkPart>(network, nullptr); }
std::unique_ptr<Part> make_part(torch::optim::Optimizer& optimizer) {
  return std::make_unique<OptimizerPart>(&optimizer, dynamic_cast<optim::AnyOptimizer*>(&optimizer));
}
std::unique_ptr<Part> make_part(optim::FusedOptimizer& optimizer) {
  return std::make_unique<OptimizerPart>(nullptr, &optimizer);
}
std::unique_ptr<Part> make_part(optim::AnyOptimizer& optimizer) {
  return std::make_unique<OptimizerPart>(nullptr, &optimizer);
}
std::unique_ptr<Part> make_part(amp::MixedPrecision& mixed) { return std::make_unique<MixedPrecisionPart>(mixed); }
std::unique_ptr<Part> make_part(parallel::CommHook& hook) { return std::make_unique<HookPart>(hook); }
std::unique_ptr<Part> make_part(const schedule::ScheduleOptions& schedule) {
  return std::make_unique<SchedulePart>(schedule);
}
std::unique_ptr<Part> make_part(int64_t& number) {
  return plain_part(number, "a whole number", [](const ValueView& saved) { return saved.integer(); });
}
std::unique_ptr<Part> make_part(double& number) {
  return plain_part(number, "a number", [](const ValueView& saved) { return saved.number(); });
}
std::unique_ptr<Part> make_part(bool& flag) {
  return plain_part(flag, "a flag", [](const ValueView& saved) { return saved.boolean(); });
}
std::unique_ptr<Part> make_part(std::string& text) {
  return plain_part(text, "a text", [](const ValueView& saved) { return saved.text(); });
}
std::unique_ptr<Part> make_part(at::Tensor& tensor) { return std::make_unique<TensorPart>(tensor); }

}  // namespace lockstep::loop
