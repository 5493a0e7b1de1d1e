#include "lockstep/models/igcv3.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/models/testing/networks.h"

namespace lockstep::models {
namespace {

using testing::PlainLayers;

TEST(Igcv3, HasTheAuthorsParameters) {
  Igcv3 net(Igcv3Options{}, 1);
  const auto parameters = net->named_parameters();
  EXPECT_EQ(testing::layout_of(parameters).elements, 3491688);
  EXPECT_EQ(parameters.size(), 3 * (1 + 3 * 32 + 1) + 2u);
  EXPECT_EQ(parameters["features.1.conv.0.0.weight"].sizes(), at::IntArrayRef({32, 16, 1, 1}));
  EXPECT_EQ(parameters["features.32.conv.2.0.weight"].sizes(), at::IntArrayRef({320, 480, 1, 1}));
  EXPECT_EQ(parameters["features.33.0.weight"].sizes(), at::IntArrayRef({1280, 320, 1, 1}));
  EXPECT_EQ(parameters["classifier.weight"].sizes(), at::IntArrayRef({1000, 1280}));
}

TEST(Igcv3, WeightsAreAPureFunctionOfTheSeed) {
  testing::expect_pure([](uint64_t seed) { return Igcv3(Igcv3Options{.classes = 10}, seed); });
  const auto parameters = Igcv3(Igcv3Options{}, 1)->named_parameters();
  EXPECT_NEAR(parameters["features.33.0.weight"].std().item<double>(), std::sqrt(2.0 / 320), 0.001);
  EXPECT_NEAR(parameters["classifier.weight"].std().item<double>(), std::sqrt(2.0 / 1280), 0.001);
}

at::Tensor conv_norm(const PlainLayers& plain, const std::string& name, const at::Tensor& x, int64_t stride = 1,
                     int64_t groups = 1) {
  return plain.norm(name + ".1", plain.conv(name + ".0", x, stride, groups));
}

// As the authors' function of this name has it.
at::Tensor permutation(const at::Tensor& x, int64_t groups) {
  return x.reshape({x.size(0), groups, x.size(1) / groups, x.size(2), x.size(3)})
      .transpose(1, 2)
      .reshape({x.size(0), x.size(1), x.size(2), x.size(3)});
}

at::Tensor definition(const PlainLayers& plain, const at::Tensor& images) {
  at::Tensor x = at::relu6(conv_norm(plain, "features.0", images, 2));
  int number = 1;
  for (const auto& [channels, blocks, stride] :
       {std::array{16, 1, 1}, {24, 4, 2}, {32, 6, 2}, {64, 8, 2}, {96, 6, 1}, {160, 6, 2}, {320, 1, 1}}) {
    for (int block = 0; block < blocks; ++block) {
      const std::string name = cat("features.", number++, ".conv.");
      at::Tensor y = permutation(conv_norm(plain, name + "0", x, 1, 2), 2);
      y = at::relu6(conv_norm(plain, name + "1", y, block == 0 ? stride : 1, y.size(1)));
      y = permutation(conv_norm(plain, name + "2", y, 1, 2), channels / 2);
      x = block == 0 ? y : x + y;
    }
  }
  x = at::relu6(conv_norm(plain, "features.33", x));
  return at::linear(x.mean({2, 3}), plain.weight("classifier"), plain.bias("classifier"));
}

TEST(Igcv3, ComputesItsDefinition) {
  at::manual_seed(1);
  Igcv3 net(Igcv3Options{.classes = 10}, 1);
  testing::expect_definition(net, at::randn({4, 3, 96, 96}), definition);
}

// tests/fixtures/record_igcv3.py has the same function.
at::Tensor uniform(uint32_t number, at::IntArrayRef sizes) {
  const at::Tensor values = at::empty(sizes, at::kDouble);
  auto* const at = values.mutable_data_ptr<double>();
  for (int64_t k = 0; k < values.numel(); ++k) {
    uint32_t x = static_cast<uint32_t>(k) * 2654435761u + number * 40503u;
    x = (x ^ (x >> 16)) * 0x45d9f3bu;
    at[k] = (x ^ (x >> 16)) / 4294967296.0;
  }
  return values;
}

void fill_as_recorded(Igcv3Impl& net) {
  constexpr uint32_t kStatistics = 1000;
  const at::NoGradGuard no_grad;
  uint32_t number = 0;
  for (const auto& each : net.named_parameters()) {
    at::Tensor to = each.value();
    const at::Tensor values = uniform(number++, to.sizes());
    const bool scales = to.dim() == 1 && each.key().ends_with(".weight");
    to.copy_(to.dim() > 1 ? (2 * values - 1) * std::sqrt(6.0 * to.size(0) / to.numel())
                          : values + (scales ? 0.5 : -0.5));
  }
  number = kStatistics;
  for (const auto& each : net.named_buffers()) {
    if (each.value().numel() == 1) continue;  // num_batches_tracked
    each.value().copy_(uniform(number++, each.value().sizes()) + (each.key().ends_with("var") ? 0.5 : -0.5));
  }
}

TEST(Igcv3, ComputesWhatTheAuthorsDefinitionDoes) {
  constexpr uint32_t kInput = 5000;
  std::ifstream file(LOCKSTEP_SOURCE_DIR "/tests/fixtures/igcv3.json");
  const auto recorded = nlohmann::json::parse(file);
  Igcv3 net(Igcv3Options{.classes = recorded["classes"]}, 1);
  EXPECT_EQ(testing::layout_of(net->named_parameters()).elements, recorded["parameters"].get<int64_t>());
  net->to(at::kDouble);
  fill_as_recorded(*net);
  const at::Tensor images = 2 * uniform(kInput, {4, 3, 64, 64}) - 1;
  for (const bool trains : {false, true}) {
    net->train(trains);
    const at::Tensor logits = net->forward(images);
    const auto rows = recorded[trains ? "training" : "evaluation"].get<std::vector<std::vector<double>>>();
    for (size_t row = 0; row < rows.size(); ++row) {
      const at::Tensor expected = at::tensor(rows[row], at::kDouble);
      EXPECT_LT((logits[static_cast<int64_t>(row)] - expected).abs().max().item<double>(), 1e-9)
          << "training: " << trains;
    }
  }
}

TEST(Igcv3, TakesOtherSizes) {
  Igcv3 net(Igcv3Options{.classes = 3}, 1);
  EXPECT_EQ(net->forward(at::rand({2, 3, 37, 50})).sizes(), at::IntArrayRef({2, 3}));
}

TEST(Igcv3, RefusesWhatCannotBe) {
  EXPECT_THROW(Igcv3(Igcv3Options{.classes = 0}, 1), ConfigError);
  Igcv3 net(Igcv3Options{}, 1);
  EXPECT_THROW(net->forward(at::rand({1, 1, 32, 32})), DataError);
}

}  // namespace
}  // namespace lockstep::models
