#include "lockstep/loop/evaluate.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/data/byte_tables.h"
#include "lockstep/data/tensor_dataset.h"
#include "lockstep/data/wrapped.h"
#include "lockstep/loop/testing/own_world.h"

namespace lockstep::loop {
namespace {

using ::lockstep::testing_support::refusal;
using ::testing::HasSubstr;

// Sample i is the number i, with a mask beside it.
struct Numbers final : data::Dataset {
  explicit Numbers(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  std::vector<data::Field> fields() const override {
    return {{.name = "data", .dtype = at::kFloat, .shape = {1}}, {.name = "even", .dtype = at::kBool, .shape = {1}}};
  }
  std::string fingerprint() const override { return "numbers"; }
  std::string description() const override { return "numbers"; }
  void read(int64_t index, const Draw&, std::span<const at::Tensor> rows, data::ReadStats&) const override {
    rows[0].fill_(index);
    rows[1].fill_(index % 2 == 0);
  }
  int64_t size_;
};

TEST(Evaluate, AddsOverEverySampleOnce) {
  const auto world = testing_support::own_world();
  const Numbers data(1000);
  const auto found = evaluate(*world, data, [](const data::Batch& batch) -> Sums {
    EXPECT_FALSE(c10::GradMode::is_enabled());
    return {{"sum", batch.data().sum().item<double>()}, {"even", batch["even"].sum().item<double>()}};
  });
  EXPECT_EQ(found.samples, 1000);
  EXPECT_EQ(found.sum("sum"), 999 * 500);
  EXPECT_EQ(found.mean("even"), 0.5);
  EXPECT_THAT(refusal([&] { found.mean("odd"); }), HasSubstr("no sum odd; it has even, sum"));
}

// Images of bytes, with a table that makes numbers of them.
class WithTable final : public data::Wrapped {
 public:
  WithTable(std::shared_ptr<const data::Dataset> base, at::Tensor table)
      : Wrapped(std::move(base)), table_(std::move(table)) {}
  std::vector<data::Field> fields() const override {
    auto fields = Wrapped::fields();
    fields[0].table = table_;
    return fields;
  }

 private:
  std::shared_ptr<const data::Dataset> around(std::shared_ptr<const data::Dataset> base) const override {
    return std::make_shared<WithTable>(std::move(base), table_);
  }
  at::Tensor table_;
};

TEST(Evaluate, ImagesThatComeAsBytesAreNormalised) {
  const auto world = testing_support::own_world();
  const at::Tensor images = at::arange(20 * 3 * 4 * 4).remainder(251).to(at::kByte).view({20, 3, 4, 4});
  const at::Tensor table = at::arange(3 * 256).view({3, 256}).div(255).sub(0.45).to(at::kFloat);
  const at::Tensor targets = at::arange(20) % 4;
  const WithTable bytes(std::make_shared<data::TensorDataset>(images, targets), table);
  const data::TensorDataset numbers(data::look_up(images, table), targets);
  const auto sum_of = [&](const data::Dataset& data) {
    const auto sums = [](const data::Batch& batch) -> Sums { return {{"sum", batch.data().sum().item<double>()}}; };
    return evaluate(*world, data, sums, {.chunk = 8}).sum("sum");
  };
  EXPECT_EQ(sum_of(bytes), sum_of(numbers));
}

TEST(Evaluate, PutsTheWrappedNetworkIntoEvalMode) {
  const auto world = testing_support::own_world();
  torch::nn::Linear net(1, 1);
  parallel::DistributedDataParallel ddp(net.ptr(), world);
  evaluate(ddp, Numbers(10), [&](const data::Batch&) -> Sums {
    EXPECT_FALSE(net->is_training());
    return {};
  });
  EXPECT_TRUE(net->is_training());
}

// Numbers that note the threads that read them.
struct Noting final : data::Dataset {
  int64_t size() const override { return numbers.size(); }
  std::vector<data::Field> fields() const override { return numbers.fields(); }
  std::string fingerprint() const override { return numbers.fingerprint(); }
  std::string description() const override { return numbers.description(); }
  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, data::ReadStats& stats) const override {
    numbers.read(index, draw, rows, stats);
    const std::lock_guard lock(mutex);
    readers.insert(std::this_thread::get_id());
  }
  const Numbers numbers{1000};
  mutable std::mutex mutex;
  mutable std::set<std::thread::id> readers;
};

TEST(Evaluate, ReadsAWrappedNetworksDataAhead) {
  const auto world = testing_support::own_world();
  torch::nn::Linear net(1, 1);
  parallel::DistributedDataParallel ddp(net.ptr(), world);
  const auto data = std::make_shared<Noting>();
  const auto sums = [](const data::Batch& batch) -> Sums { return {{"sum", batch.data().sum().item<double>()}}; };
  EXPECT_EQ(evaluate(ddp, *data, sums, {.chunk = 100, .workers = 2}).sum("sum"), 999 * 500);
  EXPECT_FALSE(data->readers.contains(std::this_thread::get_id()));
}

TEST(Evaluate, ANetworkThatTrainsMeanwhileIsRefused) {
  const auto world = testing_support::own_world();
  torch::nn::BatchNorm1d norm(1);
  const auto measured = [&] {
    return evaluate(*world, Numbers(10), [&](const data::Batch& batch) -> Sums {
      return {{"sum", norm->forward(batch.data()).sum().item<double>()}};
    });
  };
  measured();  // nobody knows of it
  parallel::DistributedDataParallel ddp(norm.ptr(), world);
  EXPECT_THAT(refusal(measured), HasSubstr("an evaluation has changed the buffers of a network in training mode"));
  norm->eval();
  EXPECT_EQ(measured().samples, 10);
  norm->train();
  const auto in_eval_mode = [&](const data::Batch& batch) -> Sums {
    norm->eval();
    return {{"sum", norm->forward(batch.data()).sum().item<double>()}};
  };
  EXPECT_EQ(evaluate(*world, Numbers(10), in_eval_mode).samples, 10) << "the function sets the mode";
  norm->train();
  const auto sums = [&](const data::Batch& batch) -> Sums {
    return {{"sum", norm->forward(batch.data()).sum().item<double>()}};
  };
  EXPECT_EQ(evaluate(*world, Numbers(10), sums, {.in_training_mode = true}).samples, 10);
}

TEST(Evaluate, RefusesWhatHasNoMean) {
  const auto world = testing_support::own_world();
  EXPECT_THAT(refusal([&] { evaluate(*world, Numbers(0), [](const data::Batch&) { return Sums(); }); }),
              HasSubstr("the data set has no samples: numbers"));
  const auto changing = [](const data::Batch& batch) -> Sums {
    return batch.data()[0].item<double>() == 0 ? Sums{{"a", 1}} : Sums{{"b", 1}};
  };
  EXPECT_THAT(refusal([&] { evaluate(*world, Numbers(1000), changing); }),
              HasSubstr("the sums a for one batch and b for another"));
  const auto asks = [](const data::Batch& batch) -> Sums { return {{"x", batch["mask"].sum().item<double>()}}; };
  EXPECT_THAT(refusal([&] { evaluate(*world, Numbers(10), asks); }),
              HasSubstr("the batch has no tensor mask; it has data, even"));
}

}  // namespace
}  // namespace lockstep::loop
