#include "lockstep/loop/state.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/file_size_limit.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/checkpoint/formats/pt_reader.h"
#include "lockstep/checkpoint/found_state.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/loop/background_saves.h"
#include "lockstep/loop/testing/loops.h"
#include "lockstep/optim/rules/adam.h"
#include "lockstep/optim/rules/sgd.h"

namespace lockstep::loop {
namespace {

using ::lockstep::testing_support::refusal;
using ::testing::HasSubstr;
using testing_support::linear;
using testing_support::Loop;
using testing_support::TinyLoop;

template <typename Optimizer>
void expect_it_continues(Optimizer made_of(const std::vector<at::Tensor>&), amp::OptLevel level) {
  Loop<Optimizer> whole(1, made_of, level);
  at::manual_seed(7);
  whole.train(3);
  const checkpoint::Value saved = whole.state().value();
  const at::Tensor random = at::globalContext().defaultGenerator(at::kCPU).get_state();
  Loop<Optimizer> resumed(2, made_of, level);
  at::manual_seed(8);
  resumed.state().load(saved, "run.pt");
  EXPECT_EQ(resumed.step, 3);
  EXPECT_EQ(resumed.best, 0.5);
  EXPECT_EQ(resumed.text, "said");
  EXPECT_TRUE(resumed.flag);
  EXPECT_TRUE(at::equal(resumed.average, at::ones({2})));
  EXPECT_EQ(resumed.stopping.best(), 0.25);
  EXPECT_TRUE(at::equal(at::globalContext().defaultGenerator(at::kCPU).get_state(), random));
  const at::Tensor state = at::globalContext().defaultGenerator(at::kCPU).get_state();
  resumed.train(3);
  at::Generator(at::globalContext().defaultGenerator(at::kCPU)).set_state(state);
  // The first network's memory is what was saved: it goes on from there itself.
  whole.train(3);
  EXPECT_EQ(checkpoint::weights_sha256(*resumed.net), checkpoint::weights_sha256(*whole.net));
  const auto one = whole.mixed.masters_by_weight(), other = resumed.mixed.masters_by_weight();
  EXPECT_EQ(one.size(), level == amp::OptLevel::kO2 ? 2u : 0u);
  for (const auto& [weight, master] : one) {
    const auto& parameters = whole.net->parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].unsafeGetTensorImpl() != weight) continue;
      EXPECT_TRUE(at::equal(other.at(resumed.net->parameters()[i].unsafeGetTensorImpl()), master));
    }
  }
}

TEST(LoopState, ALoopContinuesWithTheSameBits) {
  for (const auto level : {amp::OptLevel::kO0, amp::OptLevel::kO1, amp::OptLevel::kO2}) {
    expect_it_continues<optim::AdamW>(
        [](const std::vector<at::Tensor>& p) { return optim::AdamW(p, optim::AdamWOptions{.lr = 0.01}); }, level);
    expect_it_continues<torch::optim::Adam>(
        [](const std::vector<at::Tensor>& p) { return torch::optim::Adam(p, torch::optim::AdamOptions(0.01)); }, level);
  }
}

TEST(LoopState, MastersAreSavedInPlaceOfRoundedWeights) {
  Loop<optim::SGD> loop(
      1, [](const std::vector<at::Tensor>& p) { return optim::SGD(p, optim::SgdOptions{.lr = 0.01}); },
      amp::OptLevel::kO2);
  loop.train(2);
  const checkpoint::Value saved = loop.state().value();
  const checkpoint::ValueView view(saved, "run.pt");
  EXPECT_EQ(view["model"]["weight"].tensor().scalar_type(), at::kFloat);
  EXPECT_EQ(view["amp"]["opt_level"].text(), "O2");
  EXPECT_EQ(view["amp"]["loss_scaler1"]["loss_scale"].number(), 65536);
  EXPECT_EQ(view["meta"]["step"].integer(), 2);
}

// Those of an optimizer without MixedPrecision.
TEST(LoopState, MastersOfAnOptimizerByItselfContinue) {
  struct OwnMasters {
    torch::nn::Linear net;
    optim::SGD optimizer;
    int64_t step = 0;
    explicit OwnMasters(uint64_t seed) : net(linear(seed)), optimizer((net->to(at::kBFloat16), net->parameters())) {
      optimizer.keep_masters();
    }
    State state() { return State(*testing_support::own_world(), step, {{"optimizer", optimizer}, {"model", *net}}); }
    void train() {
      for (auto& parameter : net->parameters()) parameter.mutable_grad() = at::full_like(parameter, 0.3).detach();
      optimizer.step();
    }
  };
  OwnMasters whole(1), resumed(2);
  whole.train();
  const checkpoint::Value saved = whole.state().value();
  resumed.state().load(saved, "run.pt");
  for (OwnMasters* each : {&whole, &resumed}) each->train();
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(whole.optimizer.masters()[i], resumed.optimizer.masters()[i]));
}

TEST(LoopState, AveragesOfTheWeightsContinue) {
  struct Averaged : TinyLoop {
    optim::SGD sgd{net->parameters(), {.lr = 0.1}};
    State state() { return State(*world, step, {{"model", *net}, {"optimizer", sgd}}); }
    void train(int steps) {
      for (int i = 0; i < steps; ++i) {
        for (auto& parameter : net->parameters()) parameter.mutable_grad() = parameter.detach().clone();
        sgd.step();
      }
    }
  };
  Averaged whole, resumed, without;
  whole.sgd.keep_average(0.9);
  resumed.sgd.keep_average(0.9);
  const checkpoint::Value first = whole.state().value();  // before there is an average
  resumed.state().load(first, "run.pt");
  EXPECT_FALSE(resumed.sgd.averages()[0].defined());
  whole.train(3);
  const checkpoint::Value saved = whole.state().value();
  resumed.state().load(saved, "run.pt");
  EXPECT_TRUE(at::equal(whole.sgd.averages()[0], resumed.sgd.averages()[0]));
  EXPECT_FALSE(whole.sgd.averages()[0].is_same(resumed.sgd.averages()[0]));
  EXPECT_THAT(
      refusal([&] { without.state().load(saved, "run.pt"); }),
      HasSubstr("run.pt: optimizer: the checkpoint has an average of the weights, and this loop keeps none; call "
                "keep_average() before"));
  for (Averaged* each : {&whole, &resumed}) each->train(2);
  EXPECT_TRUE(at::equal(whole.sgd.averages()[0], resumed.sgd.averages()[0]));
  EXPECT_FALSE(at::equal(whole.sgd.averages()[0], whole.net->weight));
}

// A process that is killed between the two: the checkpoint is there, and best.pt still points to an older one.
TEST(LoopState, AKilledSaveOfTheBestIsLinkedByTheNextLoad) {
  const std::string folder = testing::TempDir() + "loop_state_best." + std::to_string(getpid());
  TinyLoop loop;
  checkpoint::CheckpointStore store(folder);
  loop.state().save(store, /*best=*/true);
  loop.step = 5;
  loop.state().save(store, /*best=*/true);
  EXPECT_EQ(std::filesystem::read_symlink(folder + "/best.pt"), "step-000005.pt");
  std::filesystem::remove(folder + "/best.pt");
  std::filesystem::create_symlink("step-000003.pt", folder + "/best.pt");
  EXPECT_TRUE(loop.state().load(store));
  EXPECT_EQ(std::filesystem::read_symlink(folder + "/best.pt"), "step-000005.pt");
  loop.step = 7;
  loop.state().save(store);
  EXPECT_TRUE(loop.state().load(store));
  EXPECT_EQ(std::filesystem::read_symlink(folder + "/best.pt"), "step-000005.pt") << "the newest is not the best";
  std::filesystem::remove_all(folder);
}

TEST(LoopState, TheBestsWeightsComeBackByThemselves) {
  const std::string folder = testing::TempDir() + "loop_state_weights." + std::to_string(getpid());
  TinyLoop loop;
  checkpoint::CheckpointStore store(folder);
  const std::string weights = checkpoint::weights_sha256(*loop.net);
  loop.state().save(store, /*best=*/true);
  {
    const at::NoGradGuard no_grad;
    loop.net->weight.zero_();
  }
  loop.step = 5;
  loop.state().save(store);
  const std::string best = folder + "/best.pt";
  const checkpoint::Value saved = checkpoint::read_pt(best);
  checkpoint::load_state_dict(*loop.net, checkpoint::find_model_state(saved, best),
                              {.file = best, .convert_dtypes = true});
  EXPECT_EQ(checkpoint::weights_sha256(*loop.net), weights);
  EXPECT_EQ(loop.step, 5);
  std::filesystem::remove_all(folder);
}

// By this its launcher lets it finish when another rank dies.
TEST(LoopState, ASaveIsOnTheBoardWithItsProgress) {
  const std::string folder = testing::TempDir() + "loop_state_board." + std::to_string(getpid());
  TinyLoop loop;
  BoardRank& self = loop.world->self();
  self.beat_ns.store(0);
  checkpoint::CheckpointStore store(folder);
  loop.state().save(store);
  EXPECT_NE(self.beat_ns.load(), 0);
  EXPECT_EQ(self.saving.load(), 0u);

  // A write that a limit refuses sends a signal, whose handler looks in.
  static std::atomic<uint32_t>* saving;
  static std::atomic<uint32_t> seen;
  saving = &self.saving;
  {
    const ::lockstep::testing_support::FileSizeLimit full(0, [](int) { seen.store(saving->load()); });
    EXPECT_THROW(loop.state().save(store), Error);
  }
  EXPECT_EQ(seen.load(), 1u);
  EXPECT_EQ(self.saving.load(), 0u);
  std::filesystem::remove_all(folder);
}

// The next load would take the later one, of another branch.
TEST(LoopState, IsNotSavedBesideLaterCheckpoints) {
  const std::string folder = testing::TempDir() + "loop_state_branch." + std::to_string(getpid());
  TinyLoop loop;
  checkpoint::CheckpointStore store(folder);
  loop.state().save(store);
  loop.step = 9;
  loop.state().save(store);
  const std::string older = folder + "/step-000003.pt";
  loop.state().load(checkpoint::read_pt(older), older);
  loop.step = 4;
  const std::string why = refusal([&] { loop.state().save(store); });
  EXPECT_THAT(why, testing::AllOf(testing::HasSubstr("step 4: " + folder + "/step-000009.pt is of a later step"),
                                  testing::HasSubstr("store.cut_back(4)")));
  {
    BackgroundSaves saves(*loop.world, store);
    EXPECT_THROW(loop.state().save(saves), ConfigError);
  }
  EXPECT_TRUE(std::filesystem::exists(folder + "/step-000009.pt"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/step-000004.pt"));
  store.cut_back(4);
  loop.state().save(store);
  EXPECT_TRUE(loop.state().load(store));
  EXPECT_EQ(loop.step, 4);
  loop.step = 9;
  loop.state().save(store);
  std::filesystem::resize_file(folder + "/step-000009.pt", 100);
  EXPECT_TRUE(loop.state().load(store));
  loop.step = 5;
  loop.state().save(store);  // beside one that no load would take
  std::filesystem::remove_all(folder);
}

TEST(LoopState, TheNewestReadableFileIsLoaded) {
  const std::string folder = testing::TempDir() + "loop_state." + std::to_string(getpid());
  TinyLoop loop;
  checkpoint::CheckpointStore store(folder);
  EXPECT_FALSE(loop.state().load(store));
  loop.state().save(store, /*best=*/true);
  loop.step = 5;
  loop.best = 2;
  loop.state().save(store);
  EXPECT_EQ(std::filesystem::read_symlink(folder + "/best.pt"), "step-000003.pt");
  loop.best = 0;
  EXPECT_TRUE(loop.state().load(store));
  EXPECT_EQ(loop.best, 2);
  std::filesystem::resize_file(folder + "/step-000005.pt", 100);
  EXPECT_TRUE(loop.state().load(store));
  EXPECT_EQ(loop.step, 3);
  EXPECT_EQ(loop.best, 1);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lockstep::loop
