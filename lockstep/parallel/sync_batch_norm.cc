#include "lockstep/parallel/sync_batch_norm.h"

#include <ATen/ops/batch_norm_native.h>
#include <torch/library.h>
#include <torch/nn/modules/batchnorm.h>

#include <functional>
#include <mutex>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "lockstep/base/error.h"
#include "lockstep/nn/batch_norm.h"
#include "lockstep/nn/checkpoint.h"

namespace lockstep::parallel {
namespace {

// The statistics of a BatchNorm of libtorch's.
struct Statistics {
  at::Tensor mean;   // the running mean, by which the layer is recognised; undefined where it keeps none
  at::Tensor count;  // of the batches
};

// libtorch's BatchNorms can't be replaced by another class: their owners hold them by type, and their forward is not
// virtual. But their forward calls at::batch_norm, which goes through the dispatcher. Once a plain BatchNorm is
// converted, that operator looks here whether the statistics or the weight that it was given are a converted layer's.
class ConvertedLayers {
 public:
  // Never destroyed: at the end of a process its groups' communicators would outlive the world.
  static ConvertedLayers& all() {
    static auto& layers = *new ConvertedLayers;
    return layers;
  }

  // A converted layer: its exchange, null for a layer that was not converted, and its count of batches.
  struct Layer {
    std::shared_ptr<nn::StatisticsExchange> exchange;
    at::Tensor count;
  };

  void add(const Statistics& statistics, std::shared_ptr<nn::StatisticsExchange> exchange) {
    const std::lock_guard lock(mutex_);
    if (!installed_) install();
    std::erase_if(layers_, [](const auto& entry) { return entry.second.mark.expired(); });
    layers_.insert_or_assign(
        statistics.mean.unsafeGetTensorImpl(),
        Entry{Mark(statistics.mean.getIntrusivePtr()), Mark(statistics.count.getIntrusivePtr()), std::move(exchange)});
  }

  Layer find(const at::Tensor& mean) const {
    if (!mean.defined()) return {};
    const std::lock_guard lock(mutex_);
    const auto found = layers_.find(mean.unsafeGetTensorImpl());
    if (found == layers_.end() || found->second.mark.expired()) return {};
    return {.exchange = found->second.exchange, .count = at::Tensor(found->second.count.lock())};
  }

 private:
  using Mark = c10::weak_intrusive_ptr<c10::TensorImpl, at::UndefinedTensorImpl>;
  struct Entry {
    Mark mark;  // the running mean: an address may be used again
    Mark count;
    std::shared_ptr<nn::StatisticsExchange> exchange;
  };

  void install();

  mutable std::mutex mutex_;
  std::unordered_map<const c10::TensorImpl*, Entry> layers_;
  std::vector<std::unique_ptr<torch::Library>> installed_at_;
  bool installed_ = false;
};

at::Tensor dispatched(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                      const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& running_mean,
                      const std::optional<at::Tensor>& running_var, bool training, double momentum, double eps,
                      bool cudnn_enabled) {
  const auto given = [](const std::optional<at::Tensor>& tensor) { return tensor.value_or(at::Tensor()); };
  const auto [exchange, count] = training ? ConvertedLayers::all().find(given(running_mean)) : ConvertedLayers::Layer();
  if (exchange == nullptr) {
    return at::native::batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps,
                                  cudnn_enabled);
  }
  if (count.defined()) nn::keep_in_recomputation(count);  // the layer's forward has counted this batch
  return nn::batch_norm(input,
                        {.weight = given(weight),
                         .bias = given(bias),
                         .running_mean = given(running_mean),
                         .running_var = given(running_var),
                         .training = true,
                         .momentum = momentum,
                         .eps = eps},
                        nn::Activation::kNone, {}, exchange);
}

void ConvertedLayers::install() {
  for (const auto key : {c10::DispatchKey::AutogradCPU, c10::DispatchKey::AutogradCUDA}) {
    auto library = std::make_unique<torch::Library>(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
    library->impl("batch_norm", dispatched);
    installed_at_.push_back(std::move(library));
  }
  installed_ = true;
}

// Nothing for modules that are no BatchNorm of libtorch's. Where one keeps no statistics, its forward does not say
// whether it trains.
std::optional<Statistics> statistics_of(const torch::nn::Module& part) {
  const auto of = [](const auto* norm) {
    return norm == nullptr ? std::nullopt : std::optional(Statistics{norm->running_mean, norm->num_batches_tracked});
  };
  if (const auto found = of(part.as<torch::nn::BatchNorm1d>())) return found;
  if (const auto found = of(part.as<torch::nn::BatchNorm2d>())) return found;
  return of(part.as<torch::nn::BatchNorm3d>());
}

// Calls visit(name, part) for the module and everything in it.
void for_each_part(torch::nn::Module& module,
                   const std::function<void(const std::string&, torch::nn::Module&)>& visit) {
  visit(module.name(), module);
  for (const auto& part : module.named_modules("", /*include_self=*/false)) visit(part.key(), *part.value());
}

bool convert(const std::string& name, torch::nn::Module& part,
             const std::shared_ptr<nn::StatisticsExchange>& exchange) {
  if (auto* norm = part.as<nn::BatchNorm2d>()) {
    norm->set_exchange(exchange);
    return true;
  }
  const auto statistics = statistics_of(part);
  if (!statistics) return false;
  if (!statistics->mean.defined()) {
    throw ConfigError("SyncBatchNorm: ", name,
                      " keeps no running statistics, by which it could be told from others; make it with "
                      "track_running_stats(true), or use this project's nn::BatchNorm2d");
  }
  ConvertedLayers::all().add(*statistics, exchange);
  return true;
}

std::shared_ptr<SyncGroup> group_of(const torch::nn::Module& part) {
  if (const auto* norm = part.as<nn::BatchNorm2d>()) return std::dynamic_pointer_cast<SyncGroup>(norm->exchange());
  const auto statistics = statistics_of(part);
  if (!statistics) return nullptr;
  return std::dynamic_pointer_cast<SyncGroup>(ConvertedLayers::all().find(statistics->mean).exchange);
}

}  // namespace

void convert_sync_batchnorm(torch::nn::Module& module, comm::Communicator& comm, const std::vector<int>& group) {
  std::vector<int> ranks = group;
  if (ranks.empty()) {
    ranks.resize(static_cast<size_t>(comm.size()));
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  join_statistics(module, std::make_shared<SyncGroup>(comm.make_group(ranks)));
}

void join_statistics(torch::nn::Module& module, const std::shared_ptr<nn::StatisticsExchange>& exchange) {
  int converted = 0;
  for_each_part(module, [&](const std::string& name, torch::nn::Module& part) {
    converted += convert(name, part, exchange) ? 1 : 0;
  });
  if (converted == 0)
    throw ConfigError("SyncBatchNorm: ", module.name(), " has no BatchNorm that could be one; leave it out");
}

std::shared_ptr<SyncGroup> find_sync_group(const torch::nn::Module& module) {
  auto group = group_of(module);
  for (const auto& part : module.modules(/*include_self=*/false)) {
    const auto other = group_of(*part);
    if (group != nullptr && other != nullptr && group != other) {
      throw ConfigError("SyncBatchNorm: parts of ", module.name(),
                        " were converted one by one, and would not take turns "
                        "together; convert the whole module at once");
    }
    if (group == nullptr) group = other;
  }
  return group;
}

}  // namespace lockstep::parallel
