#include "lockstep/optim/rules/make_optimizer.h"

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/optim/rules/adagrad.h"
#include "lockstep/optim/rules/adam.h"
#include "lockstep/optim/rules/lamb.h"
#include "lockstep/optim/rules/lars.h"
#include "lockstep/optim/rules/nadam.h"
#include "lockstep/optim/rules/novograd.h"
#include "lockstep/optim/rules/rmsprop.h"
#include "lockstep/optim/rules/sgd.h"

namespace lockstep::optim {
namespace {

using Maker = std::unique_ptr<FusedOptimizer> (*)(const std::vector<ParameterGroup>&, const NamedOptions&);
struct Entry {
  const char* name;
  Maker make;
};

template <typename Optimizer, typename Options>
std::unique_ptr<FusedOptimizer> make(const std::vector<ParameterGroup>& groups, const NamedOptions& named) {
  Options defaults;
  read_options(named, defaults);
  return std::make_unique<Optimizer>(param_groups(groups, defaults), defaults);
}

template <typename Optimizer, typename Options>
constexpr Entry entry() {
  return {Options::kName, make<Optimizer, Options>};
}

// A new optimizer is one more line here, its include and its name in options/optimizer_options.h.
constexpr Entry kOptimizers[] = {
    entry<Adagrad, AdagradOptions>(),   entry<Adam, AdamOptions>(),       entry<AdamW, AdamWOptions>(),
    entry<Lamb, LambOptions>(),         entry<Lars, LarsOptions>(),       entry<NAdam, NAdamOptions>(),
    entry<NovoGrad, NovoGradOptions>(), entry<RMSprop, RmspropOptions>(), entry<SGD, SgdOptions>(),
};

}  // namespace

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const Entry& known : kOptimizers) names.emplace_back(known.name);
  return names;
}

std::unique_ptr<FusedOptimizer> make_optimizer(std::string_view name, std::vector<at::Tensor> parameters,
                                               const NamedOptions& options) {
  return make_optimizer(name, std::vector<ParameterGroup>{{.parameters = std::move(parameters)}}, options);
}

std::unique_ptr<FusedOptimizer> make_optimizer(std::string_view name, const std::vector<ParameterGroup>& groups,
                                               const NamedOptions& options) {
  std::string known;
  for (const Entry& optimizer : kOptimizers) {
    if (name == optimizer.name) return optimizer.make(groups, options);
    known += cat(known.empty() ? "" : ", ", optimizer.name);
  }
  const std::string guess = nearest(name, optimizer_names());
  throw ConfigError("no optimizer \"", name, "\"; ",
                    guess.empty() ? cat("there are ", known) : cat("did you mean ", guess, "?"));
}

}  // namespace lockstep::optim
