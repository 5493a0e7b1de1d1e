#include "lockstep/nn/batch_norm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/nn/device_passes.h"
#include "lockstep/nn/testing/lane_exchange.h"

namespace lockstep::nn {
namespace {

using Sizes = std::vector<int64_t>;
using testing_support::LaneExchange;
using testing_support::Meeting;

constexpr Activation kAll[] = {Activation::kNone, Activation::kRelu, Activation::kRelu6};

// A layer, its input and what comes of it: x, r, weight, bias and their gradients; y; running statistics.
struct Trial {
  at::Tensor x, residual, y, dx, dweight, dbias, dresidual, mean, var;
};

struct Layer {
  at::Tensor weight, bias, mean, var;
  static Layer random(int64_t channels, at::ScalarType dtype) {
    return {(at::rand({channels}) + 0.5).to(dtype), at::randn({channels}).to(dtype), at::randn({channels}).to(dtype),
            (at::rand({channels}) + 0.5).to(dtype)};
  }
  Layer to(at::ScalarType dtype) const {
    return {weight.detach().to(dtype, false, true), bias.detach().to(dtype, false, true), mean.to(dtype, false, true),
            var.to(dtype, false, true)};
  }
  BatchNormArguments arguments(bool training) const {
    return {.weight = weight, .bias = bias, .running_mean = mean, .running_var = var, .training = training};
  }
};

at::Tensor libtorchs(const at::Tensor& x, const BatchNormArguments& a, Activation activation,
                     const at::Tensor& residual) {
  at::Tensor y =
      at::batch_norm(x, a.weight, a.bias, a.running_mean, a.running_var, a.training, a.momentum, a.eps, false);
  if (residual.defined()) y = y + residual;
  if (activation == Activation::kRelu) y = at::relu(y);
  return activation == Activation::kRelu6 ? at::hardtanh(y, 0, 6) : y;
}

at::Tensor ours(const at::Tensor& x, const BatchNormArguments& a, Activation activation, const at::Tensor& residual) {
  return batch_norm(x, a, activation, residual);
}

template <typename Norm>
Trial run(Norm norm, const at::Tensor& x, const at::Tensor& residual, Layer layer, Activation activation,
          const at::Tensor& dy, bool training = true) {
  Trial r{.x = x.detach().requires_grad_()};
  if (residual.defined()) r.residual = residual.detach().requires_grad_();
  layer.weight.requires_grad_();
  layer.bias.requires_grad_();
  r.y = norm(r.x, layer.arguments(training), activation, r.residual);
  r.y.backward(dy);
  r.dx = r.x.grad();
  r.dweight = layer.weight.grad();
  r.dbias = layer.bias.grad();
  if (residual.defined()) r.dresidual = r.residual.grad();
  r.mean = layer.mean;
  r.var = layer.var;
  return r;
}

void expect_close(const at::Tensor& a, const at::Tensor& b, double tolerance, const char* what) {
  ASSERT_EQ(a.defined(), b.defined()) << what;
  if (!a.defined()) return;
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  if (a.numel() == 0) return;
  const double scale = std::max(1.0, b.abs().max().item().toDouble());
  EXPECT_LE((a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item().toDouble(), tolerance * scale) << what;
}

void expect_same(const Trial& a, const Trial& b, double forward, double backward) {
  expect_close(a.y, b.y, forward, "y");
  expect_close(a.mean, b.mean, std::min(forward, 1e-6), "running mean");
  expect_close(a.var, b.var, std::min(forward, 1e-6), "running variance");
  expect_close(a.dx, b.dx, backward, "dx");
  expect_close(a.dweight, b.dweight, backward, "dweight");
  expect_close(a.dbias, b.dbias, backward, "dbias");
  expect_close(a.dresidual, b.dresidual, backward, "dresidual");
}

struct Tolerance {
  at::ScalarType dtype;
  double forward, backward;
};

// Against libtorch's layers in fp64, on the same (rounded) numbers.
void expect_definition(const Sizes& sizes, const Tolerance& type, at::MemoryFormat format, Activation activation,
                       bool with_residual, bool training) {
  const auto draw = [&] { return at::randn(sizes).to(type.dtype).contiguous(format); };
  const at::Tensor x = draw() * 2 + 3, residual = with_residual ? draw() : at::Tensor(), dy = draw();
  const Layer layer = Layer::random(sizes[1], at::kFloat);
  const auto own = type.dtype == at::kDouble ? at::kDouble : at::kFloat;
  const Trial a = run(ours, x, residual, layer.to(own), activation, dy, training);
  const auto wide = [](const at::Tensor& t) { return t.defined() ? t.to(at::kDouble) : t; };
  const Trial b = run(libtorchs, wide(x), wide(residual), layer.to(at::kDouble), activation, wide(dy), training);
  SCOPED_TRACE(testing::Message() << x.sizes() << " " << type.dtype << " " << format << " activation "
                                  << static_cast<int>(activation) << " residual " << with_residual << " training "
                                  << training);
  EXPECT_EQ(a.y.scalar_type(), type.dtype);
  EXPECT_EQ(a.y.strides(), x.strides());
  EXPECT_EQ(a.dx.scalar_type(), type.dtype);
  expect_same(a, b, type.forward, type.backward);
}

TEST(BatchNorm, IsItsDefinition) {
  at::manual_seed(1);
  for (const Tolerance& type : {Tolerance{at::kFloat, 1e-6, 1e-5}, {at::kDouble, 1e-12, 1e-12}}) {
    for (const Sizes& sizes : {Sizes{4, 3, 5, 7}, {2, 64, 9, 8}, {8, 24, 4, 4}, {1, 33, 3, 3}, {3, 200, 2, 1}}) {
      for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
        for (const Activation activation : kAll) {
          for (const int which : {0, 1, 2, 3}) expect_definition(sizes, type, format, activation, which & 1, which & 2);
        }
      }
    }
  }
}

// Where all has 16 bits, as at O3, libtorch's layers on a device compute with fp32 copies of the parameters.
TEST(BatchNorm, ParametersOfSixteenBitsOnADevice) {
  at::manual_seed(4);
  const at::Tensor x = at::randn({4, 24, 5, 3}).to(at::kBFloat16), dy = at::randn_like(x);
  for (const bool training : {false, true}) {
    const Layer layer = Layer::random(24, at::kBFloat16);
    const Trial here = run(ours, x, {}, layer.to(at::kBFloat16), Activation::kRelu, dy, training);
    const device::TakesAll takes_all;
    const Trial there = run(ours, x, {}, layer.to(at::kBFloat16), Activation::kRelu, dy, training);
    EXPECT_EQ(there.y.scalar_type(), at::kBFloat16);
    EXPECT_EQ(there.dweight.scalar_type(), at::kBFloat16);
    for (const auto field : {&Trial::y, &Trial::mean, &Trial::var, &Trial::dx, &Trial::dweight, &Trial::dbias}) {
      expect_close(there.*field, here.*field, 2e-2, "on a device");
    }
    EXPECT_EQ(at::equal(there.mean, layer.mean), !training);
  }
}

// Rounded: y once, and gradients once; where y was rounded to 0 or 6 the mask of a residual's sum may differ.
TEST(BatchNorm, IsItsDefinitionInSixteenBits) {
  at::manual_seed(2);
  for (const Tolerance& type : {Tolerance{at::kBFloat16, 4e-3, 1e-2}, {at::kHalf, 5e-4, 2e-3}}) {
    for (const Sizes& sizes : {Sizes{4, 3, 5, 7}, {2, 64, 9, 8}, {8, 24, 4, 4}, {1, 33, 3, 3}}) {
      for (const Activation activation : {Activation::kNone, Activation::kRelu}) {
        for (const int which : {0, 1, 2, 3}) {
          expect_definition(sizes, type, at::MemoryFormat::ChannelsLast, activation, which & 1, which & 2);
        }
      }
    }
  }
}

TEST(BatchNorm, TakesOtherDimensions) {
  at::manual_seed(3);
  const Tolerance type{at::kFloat, 1e-6, 1e-5};
  for (const Sizes& sizes : {Sizes{6, 20}, {6, 20, 5}, {2, 5, 3, 4, 3}}) {
    expect_definition(sizes, type, at::MemoryFormat::Contiguous, Activation::kRelu, true, true);
  }
  expect_definition({2, 24, 3, 4, 3}, type, at::MemoryFormat::ChannelsLast3d, Activation::kRelu6, true, true);
}

// What a large mean leaves of squares must be right, wherever the first rows lie.
TEST(BatchNorm, LosesNothingToALargeMean) {
  at::manual_seed(4);
  at::Tensor x = at::randn({16, 64, 28, 28}).contiguous(at::MemoryFormat::ChannelsLast) + 1000;
  x[0].select(1, 0).fill_(980);  // 20 deviations off
  Layer layer = Layer::random(64, at::kFloat);
  BatchNormArguments arguments = layer.arguments(true);
  arguments.momentum = 1;
  batch_norm(x, arguments);
  const at::Tensor wide = x.to(at::kDouble);
  EXPECT_LE((layer.mean / wide.mean({0, 2, 3}) - 1).abs().max().item().toDouble(), 1e-6);
  EXPECT_LE((layer.var / wide.var({0, 2, 3}) - 1).abs().max().item().toDouble(), 1e-6);
}

TEST(BatchNorm, ThreadsDontChangeBits) {
  at::manual_seed(5);
  const at::Tensor x = at::randn({8, 24, 40, 40}).contiguous(at::MemoryFormat::ChannelsLast), dy = at::randn_like(x);
  const Layer layer = Layer::random(24, at::kFloat);
  const int threads = at::get_num_threads();
  std::vector<Trial> runs;
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    runs.push_back(run(ours, x, x, layer.to(at::kFloat), Activation::kRelu, dy));
  }
  at::set_num_threads(threads);
  for (const Trial& r : runs) expect_same(r, runs[0], 0, 0);
}

TEST(BatchNorm, WorksWithoutWeightsAndStatistics) {
  at::manual_seed(6);
  const at::Tensor x = at::randn({4, 20, 6, 6}).contiguous(at::MemoryFormat::ChannelsLast);
  for (const bool training : {true, false}) {
    const at::Tensor y = batch_norm(x, {.training = training}, Activation::kRelu);
    expect_close(y, at::relu(at::batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5, false)), 1e-6, "y");
  }
}

// The parts of sizes `split` of one batch, run in lockstep, are the whole batch.
void expect_joined(const std::vector<int64_t>& split, const at::Tensor& x, const at::Tensor& residual,
                   Activation activation, bool on_devices = false) {
  const at::Tensor dy = at::randn_like(x);
  const Layer layer = Layer::random(x.size(1), x.scalar_type());
  const Trial whole = run(ours, x, residual, layer.to(x.scalar_type()), activation, dy);
  std::optional<device::TakesAll> takes_all;
  if (on_devices) takes_all.emplace();
  Meeting meeting(static_cast<int>(split.size()));
  const auto xs = x.split_with_sizes(split), dys = dy.split_with_sizes(split);
  const auto residuals = residual.defined() ? residual.split_with_sizes(split) : std::vector<at::Tensor>(split.size());
  std::vector<Trial> parts(split.size());
  std::vector<std::thread> lanes;
  for (size_t lane = 0; lane < split.size(); ++lane) {
    lanes.emplace_back([&, lane] {
      const auto norm = [&](const auto& a, const auto& b, Activation c, const auto& d) {
        return batch_norm(a, b, c, d, std::make_shared<LaneExchange>(meeting, lane));
      };
      parts[lane] = run(norm, xs[lane], residuals[lane], layer.to(x.scalar_type()), activation, dys[lane]);
    });
  }
  for (std::thread& lane : lanes) lane.join();
  Trial all = parts[0];
  const auto cat = [&](at::Tensor Trial::*field) {
    std::vector<at::Tensor> tensors;
    for (const Trial& part : parts) tensors.push_back((part.*field).detach());
    return at::cat(tensors);
  };
  all.y = cat(&Trial::y);
  all.dx = cat(&Trial::dx);
  if (residual.defined()) all.dresidual = cat(&Trial::dresidual);
  for (size_t i = 1; i < parts.size(); ++i) {
    all.dweight = all.dweight + parts[i].dweight;
    all.dbias = all.dbias + parts[i].dbias;
    EXPECT_TRUE(at::equal(parts[i].mean, layer.mean)) << "another lane's running statistics changed";
  }
  expect_same(all, whole, 1e-6, 1e-5);
}

TEST(BatchNormExchange, PartsAreTheWhole) {
  at::manual_seed(7);
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const at::Tensor x = at::randn({6, 20, 5, 7}).contiguous(format), residual = at::randn_like(x);
    for (const std::vector<int64_t>& split : {std::vector<int64_t>{3, 3}, {1, 5}, {6, 0}, {0, 6}, {2, 0, 4}}) {
      expect_joined(split, x, {}, Activation::kRelu);
      expect_joined(split, x, residual, Activation::kRelu6);
      expect_joined(split, x, residual, Activation::kNone);
    }
  }
  expect_joined({3, 3}, at::randn({6, 20, 5, 7}, at::kDouble), {}, Activation::kRelu);
  expect_joined({1, 1}, at::randn({2, 20}), {}, Activation::kRelu);  // one value a channel here, two together
}

// The same through the passes of devices, of both layouts.
TEST(BatchNormExchange, PartsAreTheWholeOnDevices) {
  at::manual_seed(9);
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const at::Tensor x = at::randn({6, 20, 5, 7}).contiguous(format), residual = at::randn_like(x);
    for (const bool on_devices : {false, true}) {
      for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kRelu6}) {
        expect_joined({2, 0, 4}, x, {}, activation, on_devices);
        expect_joined({2, 0, 4}, x, residual, activation, on_devices);
      }
    }
  }
}

TEST(BatchNormExchange, OneValueAltogetherIsAnError) {
  Meeting meeting(1);
  EXPECT_THROW(batch_norm(at::randn({1, 20}), {}, Activation::kNone, {}, std::make_shared<LaneExchange>(meeting, 0)),
               DataError);
}

TEST(BatchNormExchange, IsNotAskedInEvaluation) {
  const at::Tensor x = at::randn({1, 20, 2, 2});
  const Layer layer = Layer::random(20, at::kFloat);
  Meeting never(2);
  const at::Tensor y =
      batch_norm(x, layer.arguments(false), Activation::kNone, {}, std::make_shared<LaneExchange>(never, 0));
  EXPECT_TRUE(at::equal(y, batch_norm(x, layer.arguments(false))));
}

TEST(BatchNorm, RefusesWhatCannotBe) {
  EXPECT_THROW(batch_norm(at::randn({1, 20}), {}), DataError);
  EXPECT_THROW(batch_norm(at::randn({1, 20, 1, 1}), {}), DataError);
  EXPECT_THROW(batch_norm(at::randn({20}), {}), DataError);
  EXPECT_THROW(batch_norm(at::ones({2, 20}, at::kLong), {}), DataError);
  EXPECT_THROW(batch_norm(at::randn({2, 20}), {}, Activation::kNone, at::randn({2, 21})), DataError);
}

// Steps of the module and of libtorch's, in training and then in evaluation.
void expect_libtorchs_module(torch::nn::BatchNorm2dOptions options, at::MemoryFormat format) {
  BatchNorm2d a(options);
  torch::nn::BatchNorm2d b(options);
  for (int step = 0; step < 3; ++step) {
    const at::Tensor x = (at::randn({4, 20, 6, 6}) * (step + 1)).contiguous(format);
    expect_close(a->forward(x, Activation::kRelu), at::relu(b->forward(x)), 1e-6, "y");
  }
  a->eval();
  b->eval();
  const at::Tensor x = at::randn({2, 20, 2, 2}).contiguous(format);
  expect_close(a->forward(x), b->forward(x), 1e-6, "y in evaluation");
  ASSERT_EQ(a->buffers().size(), b->buffers().size());
  for (size_t i = 0; i < a->buffers().size(); ++i) expect_close(a->buffers()[i], b->buffers()[i], 1e-6, "buffer");
  const auto copy = std::dynamic_pointer_cast<BatchNorm2dImpl>(a->clone());
  ASSERT_TRUE(copy);
  EXPECT_TRUE(at::equal(copy->forward(x), a->forward(x)));
}

TEST(BatchNorm2d, IsLibtorchs) {
  at::manual_seed(8);
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    expect_libtorchs_module(torch::nn::BatchNorm2dOptions(20), format);
    expect_libtorchs_module(torch::nn::BatchNorm2dOptions(20).momentum(std::nullopt).affine(false), format);
    expect_libtorchs_module(torch::nn::BatchNorm2dOptions(20).track_running_stats(false).eps(1e-3), format);
  }
  EXPECT_THROW(BatchNorm2d(20)->forward(at::randn({2, 20, 3})), c10::Error);
}

// Autocast casts a convolution's output, and leaves weights and statistics in fp32.
TEST(BatchNorm2d, TakesSixteenBitsWithWideWeights) {
  BatchNorm2d norm(20);
  const at::Tensor x =
      at::randn({4, 20, 6, 6}).to(at::kBFloat16).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
  const at::Tensor y = norm->forward(x, Activation::kRelu6);
  EXPECT_EQ(y.scalar_type(), at::kBFloat16);
  y.sum().backward();
  EXPECT_EQ(x.grad().scalar_type(), at::kBFloat16);
  EXPECT_EQ(norm->weight.grad().scalar_type(), at::kFloat);
}

}  // namespace
}  // namespace lockstep::nn
