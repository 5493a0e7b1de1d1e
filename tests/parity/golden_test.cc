// Trains the networks of six recorded PyTorch runs from their initial weights and compares the loss of every step and
// the final weights.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "lockstep/checkpoint/formats/pt_reader.h"
#include "lockstep/checkpoint/found_state.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/data/read_batch.h"
#include "lockstep/datasets/mnist.h"
#include "lockstep/models/lenet.h"
#include "lockstep/optim/clip.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/schedule/schedule.h"

namespace lockstep {
namespace {

const std::string kRecords = LOCKSTEP_SOURCE_DIR "/tests/fixtures/golden";
const std::string kDigits = LOCKSTEP_SOURCE_DIR "/../shared/data/mnist";

struct Run {
  std::string name;
  std::string optimizer;
  optim::NamedOptions options;
};

std::vector<Run> runs() {
  return {{"lenet_sgd", "sgd", {{"lr", 0.05}}},
          {"lenet_momentum", "sgd", {{"lr", 0.02}, {"momentum", 0.9}, {"weight_decay", 1e-4}}},
          {"lenet_adagrad", "adagrad", {{"lr", 0.01}}},
          {"lenet_adam", "adam", {{"lr", 0.001}}},
          {"lenet_adamw_cosine", "adamw", {{"lr", 0.002}, {"weight_decay", 0.05}}},
          {"bn_sgd_nesterov_clip", "sgd", {{"lr", 0.05}, {"momentum", 0.9}, {"nesterov", true}}}};
}

// The second network of the recorded runs.
struct BatchNormNet : torch::nn::Module {
  BatchNormNet() {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 3).padding(1).bias(false)));
    bn = register_module("bn", torch::nn::BatchNorm2d(8));
    fc = register_module("fc", torch::nn::Linear(1568, 10));
  }
  at::Tensor forward(const at::Tensor& images) {
    return fc->forward(at::max_pool2d(at::relu(bn->forward(conv->forward(images))), {2, 2}).flatten(1));
  }
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d bn{nullptr};
  torch::nn::Linear fc{nullptr};
};

struct Network {
  std::shared_ptr<torch::nn::Module> module;
  std::function<at::Tensor(const at::Tensor&)> forward;
};

Network network_of(const std::string& run) {
  if (run.rfind("bn_", 0) == 0) {
    const auto net = std::make_shared<BatchNormNet>();
    return {net, [net](const at::Tensor& images) { return net->forward(images); }};
  }
  models::LeNet net(models::LeNetOptions{}, 1);
  return {net.ptr(), [net](const at::Tensor& images) mutable { return net->forward(images); }};
}

checkpoint::Dict state_in(const std::string& file) {
  return checkpoint::find_model_state(checkpoint::read_pt(file), file);
}

// The record was made on an Intel CPU with AVX-512; others round differently, and training spreads that. MKL chooses
// its kernels by the CPU's maker too: on an AMD EPYC with AVX-512 AdamW's loss differs by 1.1e-5 after 30 steps, and on
// one without AVX-512 a layer's weights by 0.6 %: Adam divides small gradients by their own size.
struct Tolerances {
  double loss, weights;
};
Tolerances tolerances() {
  if (!__builtin_cpu_supports("avx512f")) return {1e-3, 1e-2};
  return {__builtin_cpu_is("intel") ? 1e-5 : 3e-5, 2e-4};
}

class Golden : public testing::TestWithParam<Run> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kDigits)) GTEST_SKIP() << "no MNIST in " << kDigits;
    record_ = nlohmann::json::parse(std::ifstream(base() + ".json"));
    threads_ = at::get_num_threads();
    at::set_num_threads(1);
  }
  void TearDown() override {
    if (threads_ > 0) at::set_num_threads(threads_);
  }
  std::string base() const { return kRecords + "/" + GetParam().name; }

  nlohmann::json record_;
  int threads_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Runs, Golden, testing::ValuesIn(runs()), [](const auto& info) { return info.param.name; });

double clip(const nlohmann::json& record, const std::vector<at::Tensor>& parameters) {
  if (record["clip_grad_norm"].is_null()) return 1;
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& p : parameters) gradients.push_back(p.grad());
  const double norm = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients)), 2).item().toDouble();
  return optim::clip_factor(norm, record["clip_grad_norm"].get<double>());
}

void compare_weights(const torch::nn::Module& module, const std::string& file, double tolerance) {
  const checkpoint::Dict final = state_in(file);
  const auto ours = checkpoint::named_state(module);
  ASSERT_EQ(ours.size(), final.size());
  for (const auto& [name, tensor] : ours) {
    const checkpoint::Value* value = final.find(name);
    ASSERT_NE(value, nullptr) << name;
    const at::Tensor theirs = value->get_if<at::Tensor>()->to(at::kDouble);
    const double distance = (tensor.to(at::kDouble) - theirs).norm().item().toDouble();
    EXPECT_LE(distance, tolerance * theirs.norm().item().toDouble()) << name;
  }
}

TEST_P(Golden, IsMatched) {
  const int64_t batch_size = record_["batch_size"];
  const int64_t steps = record_["steps"];
  const std::vector<double> losses = record_["losses"];
  ASSERT_EQ(losses.size(), static_cast<size_t>(steps));
  const Tolerances tolerance = tolerances();

  const auto digits = datasets::open_mnist(kDigits).train;
  const Network net = network_of(GetParam().name);
  checkpoint::load_state_dict(*net.module, state_in(base() + ".init.pt"));
  const auto parameters = net.module->parameters();
  const auto optimizer = optim::make_optimizer(GetParam().optimizer, parameters, GetParam().options);
  const bool cosine = !record_["scheduler"].is_null();
  schedule::ScheduleOptions schedule{.base_lr = optimizer->lr()};
  if (cosine) schedule.shape = schedule::CosineLr{.t_max = steps};

  for (int64_t step = 0; step < steps; ++step) {
    std::vector<int64_t> indices(static_cast<size_t>(batch_size));
    std::iota(indices.begin(), indices.end(), step * batch_size);
    const data::Batch batch = data::read_batch(*digits, indices);
    const at::Tensor loss = at::cross_entropy_loss(net.forward(batch.data()), batch.target());
    const double expected = losses[static_cast<size_t>(step)];
    ASSERT_NEAR(loss.item().toDouble(), expected, tolerance.loss * expected) << "step " << step;
    optimizer->zero_grad();
    loss.backward();
    optimizer->set_lr(schedule::lr_at(schedule, step));
    optimizer->update({.grad_multiplier = clip(record_, parameters)});
  }
  compare_weights(*net.module, base() + ".final.pt", tolerance.weights);
}

}  // namespace
}  // namespace lockstep
