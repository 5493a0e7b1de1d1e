#include "lockstep/cli/network_sizes.h"

#include "lockstep/base/error.h"

namespace lockstep::cli {
namespace {

constexpr int64_t kLenetSide = 28;  // pixels; other networks take any

// What make_model() asks of a data set.
class NetworksData final : public data::Dataset {
 public:
  explicit NetworksData(const NetworkSizes& sizes) : sizes_(sizes) {}
  int64_t size() const override { return 0; }
  std::vector<data::Field> fields() const override {
    return {{.name = "data", .dtype = at::kFloat, .shape = {sizes_.channels, kLenetSide, kLenetSide}}};
  }
  void read(int64_t, const Draw&, std::span<const at::Tensor>, data::ReadStats&) const override {
    throw BugError("there are no samples");
  }
  std::string fingerprint() const override { return ""; }
  std::string description() const override { return ""; }
  int64_t classes() const override { return sizes_.classes; }

 private:
  NetworkSizes sizes_;
};

}  // namespace

NetworkSizes sizes_in(const checkpoint::Dict& state, const train::Recipe& recipe, const std::string& file) {
  const auto parameters = make_network(recipe, {.classes = 2}).module->named_parameters();
  const auto names = parameters.keys();
  if (parameters.is_empty() || parameters.front().value().dim() != 4 || parameters.back().value().dim() != 1) {
    throw ConfigError("the recipe ", recipe.name(), ": its network doesn't begin with a convolution and end with a ",
                      "layer that has a bias, so that weights alone don't tell how many channels and classes it has");
  }
  const auto find = [&](const std::string& name) {
    for (const auto& [key, value] : state) {
      const std::string text = checkpoint::key_text(key);
      const auto* tensor = value.get_if<at::Tensor>();
      if (tensor != nullptr && (text == name || text.ends_with('.' + name))) return *tensor;
    }
    throw ConfigError(file, ": it has no ", name, ", so its weights are not those of ", recipe.name(),
                      " with these options");
  };
  const at::Tensor first = find(names.front()), last = find(names.back());
  if (first.dim() != 4 || last.dim() != 1) {
    throw ConfigError(file, ": ", names.front(), " and ", names.back(), " have other shapes than those of ",
                      recipe.name());
  }
  return {first.size(1), last.size(0)};
}

train::Model make_network(const train::Recipe& recipe, const NetworkSizes& sizes) {
  return recipe.make_model(1, NetworksData(sizes));
}

}  // namespace lockstep::cli
