// A recipe for tests: which of three blobs a point belongs to.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/train/recipe.h"

namespace lockstep::train::testing_support {

class Blobs : public data::Dataset {
 public:
  explicit Blobs(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  std::vector<data::Field> fields() const override {
    return {{.name = "data", .dtype = at::kFloat, .shape = {2}}, {.name = "target", .dtype = at::kLong, .shape = {}}};
  }
  void read(int64_t index, const Draw&, std::span<const at::Tensor> rows, data::ReadStats&) const override {
    const int64_t label = index % 3;
    auto* point = rows[0].mutable_data_ptr<float>();
    point[0] = static_cast<float>(label) - 1 + 0.01f * static_cast<float>(index % 17);
    point[1] = static_cast<float>(label * label) + 0.01f * static_cast<float>(index % 13);
    *rows[1].mutable_data_ptr<int64_t>() = label;
  }
  std::string fingerprint() const override { return "blobs"; }
  int64_t classes() const override { return 3; }
  std::string description() const override { return "blobs"; }

 private:
  int64_t size_;
};

class TinyRecipe : public Recipe {
 public:
  std::string name() const override { return "tiny"; }
  Defaults defaults() const override { return {.batch_size = 8, .epochs = 3, .lr = 0.5, .momentum = 0.9}; }
  data::Splits open_data(const DataRequest&) const override {
    return {std::make_shared<Blobs>(100), std::make_shared<Blobs>(50), nullptr};
  }
  Model make_model(uint64_t seed, const data::Dataset&) const override {
    at::manual_seed(seed);
    torch::nn::Linear net(torch::nn::LinearOptions(2, 3));
    return {.module = net.ptr(),
            .forward = [net](const data::Batch& batch) mutable { return net->forward(batch.data()); }};
  }
  at::Tensor loss(const at::Tensor& output, const data::Batch& batch) const override {
    return at::cross_entropy_loss(output, batch.target());
  }
  std::vector<double> measure(const at::Tensor& output, const data::Batch& batch) const override {
    return {static_cast<double>(output.argmax(1).eq(batch.target()).sum().item<int64_t>())};
  }
  nlohmann::ordered_json metrics(const std::vector<double>& sums, int64_t samples) const override {
    return {{"accuracy", sums[0] / static_cast<double>(samples)}};
  }
  std::string best_by() const override { return "accuracy"; }
};

}  // namespace lockstep::train::testing_support
