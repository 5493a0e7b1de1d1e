// The MNIST program of Paddle's dygraph guide, ported: paddle.batch, distributed_batch_reader and DataParallel.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include "lockstep/base/free_ports.h"
#include "lockstep/compat/paddle/paddle.h"
#include "lockstep/compat/paddle/reader.h"
#include "lockstep/datasets/drawn/synthetic_digits.h"
#include "lockstep/optim/rules/sgd.h"
#include "support/ranks.h"

namespace lockstep::paddle {
namespace {

constexpr int kGlobalBatch = 64, kPasses = 4;

struct MnistImpl : torch::nn::Module {
  MnistImpl() {
    register_module("first", first);
    register_module("second", second);
    register_module("fc", fc);
    to(at::kDouble);  // so that other orders of addition don't show
  }
  at::Tensor forward(const at::Tensor& images) {
    const at::Tensor x = at::max_pool2d(at::relu(first->forward(images)), {2, 2});
    return fc->forward(at::max_pool2d(at::relu(second->forward(x)), {2, 2}).flatten(1));
  }
  torch::nn::Conv2d first{torch::nn::Conv2dOptions(1, 8, 5)}, second{torch::nn::Conv2dOptions(8, 16, 5)};
  torch::nn::Linear fc{256, 10};
};
TORCH_MODULE(Mnist);

at::Tensor loss_of(Mnist& net, const data::Batch& batch) {
  return at::cross_entropy_loss(net->forward(batch.data().to(at::kDouble)), batch.target());
}

double accuracy_of(Mnist& net, const std::shared_ptr<const data::Dataset>& digits) {
  double right = 0;
  for (const auto& samples : batch(reader_of(digits), 100)()) {
    const data::Batch test = read(samples);
    right += net->forward(test.data().to(at::kDouble)).argmax(1).eq(test.target()).sum().item<double>();
  }
  return right / static_cast<double>(digits->size());
}

auto shuffled_batches(const data::Splits& digits, int64_t batch_size) {
  return batch(reader::shuffle(reader_of(digits.train), /*buf_size=*/500, /*seed=*/1), batch_size, /*drop_last=*/true);
}

// As a user writes it; all that differs from a program of one process are the four lines with `context`, `model`, and
// distributed_batch_reader.
Mnist train(const data::Splits& digits) {
  const auto context = prepare_context();
  at::manual_seed(1);
  Mnist net;
  DataParallel model(net.ptr(), context);
  optim::SGD optimizer(net->parameters(), {.lr = 0.05, .momentum = 0.9});
  const auto batches = distributed_batch_reader(shuffled_batches(digits, kGlobalBatch / context->size()));
  for (int pass = 0; pass < kPasses; ++pass) {
    for (const auto& samples : batches()) {
      const at::Tensor loss = model.scale_loss(loss_of(net, read(samples)));
      loss.backward();
      model.apply_collective_grads();
      optimizer.step();
      optimizer.zero_grad();
    }
  }
  return net;
}

Mnist train_alone(const data::Splits& digits) {
  at::manual_seed(1);
  Mnist net;
  optim::SGD optimizer(net->parameters(), {.lr = 0.05, .momentum = 0.9});
  const auto batches = shuffled_batches(digits, kGlobalBatch);
  for (int pass = 0; pass < kPasses; ++pass) {
    for (const auto& samples : batches()) {
      loss_of(net, read(samples)).backward();
      optimizer.step();
      optimizer.zero_grad();
    }
  }
  return net;
}

void set_variable(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

// The argument is the port of rank 0's endpoint.
RANK_PROGRAM(trains_mnist_as_paddle) {
  at::set_num_threads(1);
  // Paddle's launcher knows nothing of Lockstep's.
  unsetenv("LOCKSTEP_NODE_MEMORY");
  set_variable("PADDLE_TRAINERS_NUM", cat(context.size));
  set_variable("PADDLE_TRAINER_ID", cat(context.rank));
  std::string endpoints;
  for (int rank = 0; rank < context.size; ++rank) {
    endpoints += cat(rank == 0 ? "" : ",", "127.0.0.1:", std::stoi(context.argument) + rank);
  }
  set_variable("PADDLE_TRAINER_ENDPOINTS", endpoints);
  const data::Splits digits = datasets::synthetic_digits({.seed = 5, .train_size = 1010, .test_size = 300});
  Mnist net = train(digits);
  const double accuracy = accuracy_of(net, digits.test);
  EXPECT_GT(accuracy, 0.8);
  if (context.rank > 0 && context.rank < context.size - 1) return;  // the first and the last one are enough
  Mnist alone = train_alone(digits);
  for (size_t i = 0; i < net->parameters().size(); ++i) {
    EXPECT_TRUE(at::allclose(net->parameters()[i], alone->parameters()[i], 1e-6, 1e-9)) << i;
  }
}

// 1,010 digits are 15 whole batches of 64, and at four ranks 63 of 16, of which the last three are no round.
TEST(PaddlesMnist, IsTheProgramOfOneProcessAtAnyNumberOfRanks) {
  for (const int size : {1, 2, 4}) {
    testing_support::expect_ranks_pass("trains_mnist_as_paddle", size, cat(free_port()));
  }
}

}  // namespace
}  // namespace lockstep::paddle
