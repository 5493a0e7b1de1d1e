#include "lockstep/train/training_state.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/value_view.h"
#include "lockstep/checkpoint/found_state.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/optim/rules/make_optimizer.h"

namespace lockstep::train {
namespace {

struct SmallRun {
  torch::nn::Linear net{torch::nn::LinearOptions(3, 2)};
  std::unique_ptr<optim::FusedOptimizer> optimizer;
  amp::LossScaler scaler;
  TrainingState state{.step = 7,
                      .steps_per_epoch = 5,
                      .best = 0.5,
                      .best_at_interval = 0.25,
                      .origin = {.options = {{"recipe", "mnist"},
                                             {"lanes", "4"},
                                             {"batch-size", "32"},
                                             {"seed", "3"},
                                             {"amp", "O1"},
                                             {"drop-last", "false"},
                                             {"validation", "10"},
                                             {"lr", ""}},
                                 .sample_shape = {3, 64, 64},
                                 .train_samples = 600,
                                 .data = {.fingerprints = {"files 9f31", "none", "files 12"},
                                          .classes = {.count = 2, .names = {"cats", "dogs"}}},
                                 .versions = "lockstep 0, libtorch 2"}};

  explicit SmallRun(const std::string& kind = "adam") {
    optimizer = optim::make_optimizer(kind, net->parameters(), {{"lr", 0.1}});
    amp::ScalerOptions options;
    options.enabled = true;
    scaler = amp::LossScaler(options);
  }
  void train() {
    for (auto& parameter : net->parameters()) parameter.mutable_grad() = at::randn_like(parameter);
    optimizer->update({});
    scaler.update(true);
  }
  checkpoint::Value save() const { return to_checkpoint(state, *net, *optimizer, scaler); }
};

TEST(TrainingState, EverythingComesBack) {
  SmallRun one, two;
  one.train();
  const auto saved = one.save();
  const TrainingState state = read_state(saved, "a.pt");
  EXPECT_EQ(state.step, 7);
  EXPECT_EQ(state.best, 0.5);
  EXPECT_EQ(state.best_at_interval, 0.25);
  EXPECT_EQ(state.origin.options, one.state.origin.options);
  EXPECT_EQ(state.origin.sample_shape, std::vector<int64_t>({3, 64, 64}));
  EXPECT_EQ(state.origin.train_samples, 600);
  EXPECT_EQ(state.origin.data, one.state.origin.data);
  EXPECT_EQ(state.origin.versions, one.state.origin.versions);
  restore_model(saved, "a.pt", *two.net);
  restore(saved, "a.pt", *two.net, *two.optimizer, two.scaler);
  EXPECT_TRUE(at::equal(two.net->weight, one.net->weight));
  EXPECT_EQ(two.scaler.state(), one.scaler.state());
  at::manual_seed(1);
  one.train();
  at::manual_seed(1);
  two.train();
  EXPECT_TRUE(at::equal(two.net->weight, one.net->weight)) << "the next step, by the optimizer's state";
}

// Groups change the optimizer's order of parameters; checkpoints go by names.
TEST(TrainingState, GroupsComeBackWithAveragesAndMasters) {
  const auto grouped = [](SmallRun& run, const char* first) {
    const auto groups = optim::group_parameters(*run.net, {.rules = {{first, {{"lr_scale", 0.5}}}}});
    run.optimizer = optim::make_optimizer("adam", groups, {{"lr", 0.1}});
    run.optimizer->keep_average(0.5);
  };
  SmallRun one, two;
  grouped(one, "weight");
  grouped(two, "weight");
  EXPECT_TRUE(one.optimizer->all_parameters()[0].is_same(one.net->bias)) << "another order than the module's";
  one.train();
  const auto saved = one.save();
  const checkpoint::ValueView view(saved, "a.pt");
  const auto groups = view["optimizer"]["param_groups"].items();
  ASSERT_EQ(groups.size(), 2u) << "PyTorch's layout";
  EXPECT_EQ(groups[1]["lr"].number(), 0.05);
  EXPECT_EQ(groups[1]["lr_scale"].number(), 0.5);
  EXPECT_EQ(groups[1]["params"].items()[0].integer(), 1);
  restore_model(saved, "a.pt", *two.net);
  restore(saved, "a.pt", *two.net, *two.optimizer, two.scaler);
  for (SmallRun* run : {&one, &two}) {
    at::manual_seed(1);
    run->train();
  }
  EXPECT_TRUE(at::equal(two.net->weight, one.net->weight) && at::equal(two.net->bias, one.net->bias));
  for (SmallRun* run : {&one, &two}) run->optimizer->exchange_averages();
  EXPECT_TRUE(at::equal(two.net->weight, one.net->weight) && at::equal(two.net->bias, one.net->bias));
  SmallRun other;
  grouped(other, "bias");
  EXPECT_THROW(restore(saved, "a.pt", *other.net, *other.optimizer, other.scaler), Error) << "another grouping";
}

TEST(TrainingState, TheAverageComesBack) {
  SmallRun one, two;
  one.optimizer->keep_average(0.5);
  two.optimizer->keep_average(0.5);
  one.train();
  EXPECT_TRUE(one.save().get_if<checkpoint::Dict>()->contains("ema"));
  one.train();
  const auto saved = one.save();
  restore_model(saved, "a.pt", *two.net);
  restore(saved, "a.pt", *two.net, *two.optimizer, two.scaler);
  one.optimizer->exchange_averages();
  two.optimizer->exchange_averages();
  EXPECT_TRUE(at::equal(two.net->weight, one.net->weight));
  EXPECT_TRUE(at::equal(two.net->bias, one.net->bias));
  const std::string average = checkpoint::weights_sha256(*one.net);
  one.optimizer->exchange_averages();  // whose memory `saved` shares
  checkpoint::load_state_dict(*two.net, checkpoint::find_model_state(saved, "a.pt", checkpoint::Average::kOn));
  EXPECT_EQ(checkpoint::weights_sha256(*two.net), average) << "it is a state dict of the model";
}

TEST(TrainingState, HasTheKeysOfTheContract) {
  const SmallRun run;
  const auto saved = run.save();
  const auto& root = *saved.get_if<checkpoint::Dict>();
  for (const char* key : {"model", "optimizer", "amp", "scheduler", "sampler", "rng", "meta"})
    EXPECT_TRUE(root.contains(key)) << key;
}

TEST(TrainingState, AnothersCheckpointIsRefused) {
  SmallRun adam, sgd("sgd");
  try {
    restore(adam.save(), "a.pt", *sgd.net, *sgd.optimizer, sgd.scaler);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "a.pt: its optimizer is adam, the run's sgd; use --optimizer adam");
  }
  EXPECT_THROW(read_state(checkpoint::Value(checkpoint::Dict{{"epoch", 1}}), "a.pt"), DataError);
}

// As earlier versions wrote them, which recorded the training part alone, and no --validation where nothing was held
// out.
TEST(TrainingState, WhatAnEarlierVersionDidNotRecordIsNotKnown) {
  SmallRun run;
  std::erase_if(run.state.origin.options, [](const auto& option) { return option.name == "validation"; });
  checkpoint::Value saved = run.save();
  auto& root = *saved.get_if<checkpoint::Dict>();
  checkpoint::Dict meta;
  for (const auto& [key, value] : *root.find("meta")->get_if<checkpoint::Dict>()) {
    const std::string name = checkpoint::key_text(key);
    if (name.find("_fingerprint") == std::string::npos && !name.starts_with("class")) meta.set(name, value);
  }
  root.set("meta", meta);
  const auto origin = find_origin(saved, "a.pt");
  ASSERT_TRUE(origin);
  EXPECT_EQ(origin->data.fingerprints, (ByPart<std::string>{"files 9f31", "", ""}));
  EXPECT_EQ(origin->data.classes, data::Classes());
  EXPECT_EQ(origin->held_out().percent, 0);
  EXPECT_EQ(origin->option("validation"), "0") << "as it is recorded now";
}

TEST(TrainingState, TheShareThatFilesMadeIsNoChoice) {
  SmallRun run;
  auto& options = run.state.origin.options;
  std::erase_if(options, [](const auto& option) { return option.name == "validation" || option.name == "hold-out"; });
  options.push_back({"validation", "16.67"});
  options.push_back({"hold-out", "7.png"});
  const auto origin = find_origin(run.save(), "a.pt");
  ASSERT_TRUE(origin);
  EXPECT_EQ(origin->option("validation"), "") << "an earlier version recorded both";
  EXPECT_EQ(origin->held_out().files, "7.png");
}

// As earlier versions wrote them: their weights can be loaded, no run can go on from them.
TEST(TrainingState, ACheckpointWithoutItsOptionsIsNotGoneOnFrom) {
  checkpoint::Value saved = SmallRun().save();
  auto& root = *saved.get_if<checkpoint::Dict>();
  root.set("meta", checkpoint::Dict{{"step", 7}, {"recipe", "mnist"}});
  EXPECT_EQ(find_origin(saved, "a.pt"), std::nullopt);
  EXPECT_THROW(read_state(saved, "a.pt"), DataError);
}

}  // namespace
}  // namespace lockstep::train
