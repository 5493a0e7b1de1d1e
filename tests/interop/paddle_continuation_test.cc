// A training that Lockstep takes over from Paddle, and one that Paddle takes over from Lockstep: .pdparams and .pdopt.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <nlohmann/json.hpp>

#include "lockstep/base/env.h"
#include "lockstep/base/testing/command.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/value_view.h"
#include "lockstep/checkpoint/load_model.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/loop/optimizer_values.h"
#include "lockstep/optim/rules/make_optimizer.h"

namespace lockstep {
namespace {

using testing_support::CommandOutput;
using testing_support::run_command;

constexpr int kFirst = 5, kFurther = 20, kRows = 16;

struct Case {
  std::string paddle, ours;
  optim::NamedOptions options;
};

// What paddle_continuation.py trains.
struct Training {
  explicit Training(const Case& of) : optimizer(optim::make_optimizer(of.ours, net->parameters(), of.options)) {}

  std::vector<double> go_on(int first, int last) {
    std::vector<double> losses;
    for (int step = first; step < last; ++step) {
      const at::Tensor inputs = at::empty({kRows, 8}), labels = at::empty({kRows}, at::kLong);
      for (int row = 0; row < kRows; ++row) {
        const int i = step * kRows + row;
        for (int k = 0; k < 8; ++k) inputs[row][k] = static_cast<double>((31 * i + 7 * k) % 17) / 8 - 1;
        labels[row] = i * 5 % 4;
      }
      const at::Tensor loss = at::cross_entropy_loss(net->forward(inputs), labels);
      loss.backward();
      optimizer->update({});
      net->zero_grad();
      losses.push_back(loss.item<double>());
    }
    return losses;
  }

  torch::nn::Sequential net{torch::nn::Linear(8, 16), torch::nn::BatchNorm1d(16), torch::nn::ReLU(),
                            torch::nn::Linear(16, 4)};
  std::unique_ptr<optim::FusedOptimizer> optimizer;
};

class PaddleContinuation : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (run_command(python_ + " -c 'import paddle' 2>&1").status != 0) {
      GTEST_SKIP() << python_ << " has no paddle; name one that has in LOCKSTEP_PADDLE_PYTHON";
    }
  }

  std::vector<double> paddle(const std::string& what, const std::string& folder) const {
    const CommandOutput output =
        run_command(python_ + " -W ignore " LOCKSTEP_SOURCE_DIR "/tests/interop/paddle_continuation.py " + what + ' ' +
                    folder + ' ' + GetParam().paddle + " 2>/dev/null");
    EXPECT_EQ(output.status, 0) << output.text;
    return nlohmann::json::parse(output.text).get<std::vector<double>>();
  }

  static void convert(const std::string& arguments) {
    const CommandOutput output = run_command(LOCKSTEP_BIN_DIR "/lockstep convert " + arguments + " 2>&1");
    ASSERT_EQ(output.status, 0) << output.text;
  }

  static void expect_equal(const std::vector<double>& ours, const std::vector<double>& theirs) {
    ASSERT_EQ(ours.size(), size_t{kFurther});
    ASSERT_EQ(theirs.size(), ours.size());
    EXPECT_GT(std::abs(ours.back() - ours.front()), 1e-3) << "nothing was learnt";
    for (size_t step = 0; step < ours.size(); ++step) EXPECT_NEAR(ours[step], theirs[step], 1e-5) << step;
  }

  std::string python_ = env("LOCKSTEP_PADDLE_PYTHON").value_or("python3");
  testing_support::TempDir folder_;
};

TEST_P(PaddleContinuation, WeGoOnFromPaddles) {
  const std::vector<double> theirs = paddle("begin", folder_.path());
  const std::string file = folder_ / "net.pt";
  convert(folder_ / "net.pdparams" + ' ' + file + " --optimizer " + (folder_ / "net.pdopt"));
  Training training(GetParam());
  const checkpoint::Value root = checkpoint::open_checkpoint(file);
  checkpoint::load_model(*training.net, root, {.file = file, .strict = false});  // Paddle counts no batches
  const auto state = checkpoint::optimizer_from_dict(checkpoint::ValueView(root, file)["optimizer"]);
  training.optimizer->load_state_dict(loop::from_values(state, file));
  for (const auto& [name, value] : GetParam().options) {
    if (name == "lr") training.optimizer->set_lr(std::get<double>(value));
  }
  expect_equal(training.go_on(kFirst, kFirst + kFurther), theirs);
}

TEST_P(PaddleContinuation, PaddleGoesOnFromOurs) {
  paddle("begin", folder_.path());  // for its names of the parameters
  const std::string names = folder_ / "names.pdparams", file = folder_ / "ours.pt";
  ASSERT_EQ(rename((folder_ / "net.pdparams").c_str(), names.c_str()), 0);
  at::manual_seed(9);
  Training training(GetParam());
  training.go_on(0, kFirst);
  checkpoint::write_pt(
      checkpoint::Dict{{"model", checkpoint::state_dict(*training.net)},
                       {"optimizer", checkpoint::optimizer_to_dict(loop::to_values(training.optimizer->state_dict()))}},
      file);
  convert(file + ' ' + (folder_ / "net.pdparams"));
  convert(file + ' ' + (folder_ / "net.pdopt") + " --names " + names);
  expect_equal(training.go_on(kFirst, kFirst + kFurther), paddle("go-on", folder_.path()));
}

INSTANTIATE_TEST_SUITE_P(Interop, PaddleContinuation,
                         testing::Values(Case{"adam", "adam", {{"lr", 0.01}}},
                                         Case{"momentum", "sgd", {{"lr", 0.05}, {"momentum", 0.9}}},
                                         Case{"adagrad", "adagrad", {{"lr", 0.05}, {"eps", 1e-6}}}),
                         [](const auto& info) { return info.param.paddle; });

}  // namespace
}  // namespace lockstep
