// A recipe of one's own, which a program trains as lockstep trains its: the same options, files, resuming and bits.
// Points on two spirals, told apart by a small network; --turns is the recipe's own option.
//
//   example_own_recipe train spiral --turns 3 --nproc 2 --out runs/spiral-1
//   example_own_recipe eval spiral --load runs/spiral-1/checkpoints/best.pt
#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lockstep/cli/main.h"

namespace {

// Sample i lies on the spiral i % 2, `turns` times around; every sample is a function of its number.
class Spirals final : public lockstep::data::Dataset {
 public:
  Spirals(int64_t size, double turns) : size_(size), turns_(turns) {}

  int64_t size() const override { return size_; }
  int64_t classes() const override { return 2; }
  std::string description() const override { return "two spirals, " + std::to_string(size_) + " points"; }

  std::string fingerprint() const override { return description() + " " + std::to_string(turns_); }

  std::vector<lockstep::data::Field> fields() const override {
    return {{.name = "data", .dtype = at::kFloat, .shape = {2}}, {.name = "target", .dtype = at::kLong, .shape = {}}};
  }

  void read(int64_t index, const lockstep::Draw& /*draw*/, std::span<const at::Tensor> rows,
            lockstep::data::ReadStats& /*stats*/) const override {
    const int64_t spiral = index % 2;
    const double radius = static_cast<double>(index + 1) / static_cast<double>(size_);
    const double angle = 2 * M_PI * turns_ * radius + M_PI * static_cast<double>(spiral);
    rows[0][0] = radius * std::cos(angle);
    rows[0][1] = radius * std::sin(angle);
    rows[1].fill_(spiral);
  }

 private:
  int64_t size_;
  double turns_;
};

struct Net final : torch::nn::Module {
  torch::nn::Linear first = register_module("first", torch::nn::Linear(2, 32));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(32, 2));
};

class Spiral final : public lockstep::train::Recipe {
 public:
  std::string name() const override { return "spiral"; }

  void declare(lockstep::config::OptionSet& options) override {
    options.number("turns", "X", "how often the spirals go around", &turns_, 0.1, 10,
                   lockstep::config::Effect::kIdentity);
  }

  lockstep::train::Defaults defaults() const override {
    return {.batch_size = 16, .epochs = 4, .lr = 0.01, .optimizer = "adamw", .schedule = "cosine"};
  }

  lockstep::data::Splits open_data(const lockstep::train::DataRequest& /*request*/) const override {
    return {std::make_shared<Spirals>(400, turns_), std::make_shared<Spirals>(90, turns_), nullptr};
  }

  lockstep::train::Model make_model(uint64_t seed, const lockstep::data::Dataset& /*data*/) const override {
    at::manual_seed(seed);
    const auto net = std::make_shared<Net>();
    return {.module = net, .forward = [net](const lockstep::data::Batch& batch) {
              return net->last(at::tanh(net->first(batch.data())));
            }};
  }

  at::Tensor loss(const at::Tensor& output, const lockstep::data::Batch& batch) const override {
    return at::cross_entropy_loss(output.to(at::kFloat), batch.target());
  }

  std::vector<double> measure(const at::Tensor& output, const lockstep::data::Batch& batch) const override {
    return {output.argmax(1).eq(batch.target()).sum().item<double>()};
  }

  nlohmann::ordered_json metrics(const std::vector<double>& sums, int64_t samples) const override {
    return {{"accuracy", sums[0] / static_cast<double>(samples)}};
  }

  std::string best_by() const override { return "accuracy"; }

 private:
  double turns_ = 1;
};

}  // namespace

int main(int argc, char** argv) { lockstep::cli::main(argc, argv, {std::make_shared<Spiral>()}); }
