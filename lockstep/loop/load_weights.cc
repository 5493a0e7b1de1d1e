#include "lockstep/loop/load_weights.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/paddle_reader.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/value_view.h"
#include "lockstep/checkpoint/load_model.h"
#include "lockstep/optim/master_weights.h"

namespace lockstep::loop {
namespace {

bool has_mixed_masters(const torch::nn::Module& network) {
  const auto parameters = network.parameters();
  return std::any_of(parameters.begin(), parameters.end(), [](const at::Tensor& parameter) {
    const auto* mixed = amp::MixedPrecision::find_for(parameter);
    return mixed != nullptr && mixed->policy().master_weights;
  });
}

// The file's values of the network's 16-bit weights.
amp::MastersByWeight exact_values(const torch::nn::Module& network, const checkpoint::Value& state,
                                  const std::string& file) {
  amp::MastersByWeight values;
  const checkpoint::ValueView view(state, file);
  for (const auto& item : network.named_parameters()) {
    if (!optim::is_narrow(item.value())) continue;
    const auto value = view.find(item.key());
    if (value) values.emplace(item.value().unsafeGetTensorImpl(), value->tensor());
  }
  return values;
}

// Masters that optimizers keep without MixedPrecision.
void load_kept_masters(const torch::nn::Module& network, const amp::MastersByWeight& values) {
  for (const at::Tensor& weight : network.parameters()) {
    const auto value = values.find(weight.unsafeGetTensorImpl());
    if (value == values.end()) continue;
    for (const at::Tensor& master : optim::MasterWeights::kept_of({&weight, 1})) master.copy_(value->second);
  }
}

}  // namespace

checkpoint::LoadReport load_weights(torch::nn::Module& network, const std::string& file,
                                    const LoadWeightsOptions& options) {
  if (options.mixed == nullptr && has_mixed_masters(network)) {
    throw ConfigError(file, ": the network has fp32 masters by now, which would be rounded: load it with ",
                      "{.mixed = &mixed}, its MixedPrecision");
  }
  const checkpoint::Value root = checkpoint::open_checkpoint(file, {.ignore_unknown = options.ignore_unknown});
  auto loaded =
      checkpoint::load_model(network, root,
                             {.file = file,
                              .strip_prefix = options.strip_prefix,
                              .average = options.average ? checkpoint::Average::kOn : checkpoint::Average::kOff,
                              .paddle = checkpoint::is_paddle_file(file),
                              .strict = options.strict,
                              .partly = options.partly});
  const at::NoGradGuard no_grad;
  const auto values = exact_values(network, std::move(loaded.state), file);
  if (options.mixed != nullptr) {
    options.mixed->load_masters_by_weight(values);
  } else {
    load_kept_masters(network, values);
  }
  return std::move(loaded.report);
}

}  // namespace lockstep::loop
