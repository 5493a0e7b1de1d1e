#include "lockstep/train/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::train {
namespace {

using checkpoint::Dict;
using checkpoint::Value;
using checkpoint::ValueView;

// The names in PyTorch 2.11's state_dict() of each class, in their order.
const std::vector<std::string> kCommon = {
    "base_lrs", "last_epoch", "_step_count", "_is_initial", "_get_lr_called_within_step", "_last_lr"};

std::vector<std::string> keys(const Dict& dict) {
  std::vector<std::string> names;
  for (const auto& [key, value] : dict) names.push_back(checkpoint::key_text(key));
  return names;
}

Scheduler scheduler(schedule::Shape shape, int64_t warmup = 0) {
  return {.options = {.shape = std::move(shape), .base_lr = 0.1, .warmup = warmup}};
}

TEST(Scheduler, HasTheKeysOfPyTorchs) {
  const std::pair<schedule::Shape, std::vector<std::string>> table[] = {
      {schedule::ConstantLr{}, {"factor", "total_iters"}},
      {schedule::StepLr{}, {"step_size", "gamma"}},
      {schedule::MultiStepLr{.milestones = {3, 8}}, {"milestones", "gamma"}},
      {schedule::ExponentialLr{}, {"gamma"}},
      {schedule::CosineLr{}, {"T_max", "eta_min"}},
      {schedule::CosineRestartsLr{}, {"T_0", "T_i", "T_mult", "eta_min", "T_cur"}},
      {schedule::OneCycleLr{}, {"total_steps", "_schedule_phases", "_anneal_func_type", "cycle_momentum"}},
      {schedule::PolynomialLr{}, {"total_iters", "power"}}};
  for (auto [shape, expected] : table) {
    expected.insert(expected.end(), kCommon.begin(), kCommon.end());
    EXPECT_EQ(keys(scheduler_to_dict(scheduler(shape), 5)), expected);
  }
  EXPECT_EQ(keys(scheduler_to_dict(scheduler(schedule::PlateauLr{}), 5)),
            (std::vector<std::string>{"factor", "default_min_lr", "min_lrs", "patience", "cooldown", "eps",
                                      "last_epoch", "_last_lr", "mode_worse", "mode", "threshold", "threshold_mode",
                                      "best", "cooldown_counter", "num_bad_epochs", "base_lrs", "metric"}));
}

TEST(Scheduler, ACycleHasTheKeysOfPyTorchs) {
  Scheduler cycle = scheduler(
      schedule::OneCycleLr{.max_lr = 0.3, .total_steps = 50, .anneal = schedule::Anneal::kLinear, .three_phase = true});
  std::get<schedule::OneCycleLr>(cycle.options.shape).momentum = {.base = 0.8, .most = 0.9, .beta1 = true};
  const Value saved(scheduler_to_dict(cycle, 5));
  std::vector<std::string> expected = {"total_steps", "_schedule_phases", "_anneal_func_type", "cycle_momentum",
                                       "use_beta1"};
  expected.insert(expected.end(), kCommon.begin(), kCommon.end());
  EXPECT_EQ(keys(*saved.get_if<Dict>()), expected);
  const ValueView view(saved, "a.pt");
  EXPECT_EQ(view["_anneal_func_type"].text(), "linear");
  const auto phases = view["_schedule_phases"].items();
  ASSERT_EQ(phases.size(), 3u);
  EXPECT_EQ(phases[1]["end_step"].number(), 2 * 0.3 * 50 - 2);
  EXPECT_EQ(phases[1]["end_lr"].text() + phases[2]["start_momentum"].text(), "initial_lrmax_momentum");
  Dict group;
  group.set("lr_scale", 0.5);
  add_group_rates(cycle, group);
  EXPECT_EQ(keys(group),
            (std::vector<std::string>{"lr_scale", "initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum"}));
  EXPECT_EQ(*group.find("max_lr")->get_if<double>(), 0.15);
}

TEST(Scheduler, RatesAreListsWithOneForEachGroup) {
  const Scheduler step = scheduler(schedule::StepLr{.step_size = 3}, 4);
  const Value saved(scheduler_to_dict(step, 8, {1, 0.5}));
  const ValueView view(saved, "a.pt");
  ASSERT_EQ(view["_last_lr"].items().size(), 2u);
  EXPECT_EQ(view["_last_lr"].items()[1].number(), 0.5 * view["_last_lr"].items()[0].number());
  EXPECT_EQ(view["_schedulers"].items()[1]["base_lrs"].items()[1].number(), 0.05);
  Scheduler plateau = scheduler(schedule::PlateauLr{.factor = 0.3, .patience = 0});
  for (const double loss : {1.0, 2.0, 3.0}) plateau.observe(0, loss);
  const Value kept(scheduler_to_dict(plateau, 8, {0.7}));
  EXPECT_EQ(plateau_in(ValueView(kept, "a.pt"), plateau), plateau.plateau) << "bit for bit, though no group has it";
}

// Values as PyTorch has them after five steps of CosineAnnealingWarmRestarts(T_0=3, T_mult=2, eta_min=0.001).
TEST(Scheduler, HasTheValuesOfPyTorchs) {
  Scheduler restarts = scheduler(schedule::CosineRestartsLr{.t_0 = 3, .t_mult = 2});
  restarts.options.lr_min = 0.001;
  const Value saved(scheduler_to_dict(restarts, 5));
  const ValueView view(saved, "a.pt");
  EXPECT_EQ(view["T_cur"].integer() * 100 + view["T_i"].integer() * 10 + view["last_epoch"].integer(), 265);
  EXPECT_EQ(view["base_lrs"].items()[0].number(), 0.1);
  EXPECT_DOUBLE_EQ(view["_last_lr"].items()[0].number(), 0.07525);
}

TEST(Scheduler, CountsEpochsWhereAsked) {
  Scheduler cosine = scheduler(schedule::CosineLr{.t_max = 10});
  cosine.steps_per_unit = 7;
  EXPECT_EQ(cosine.lr(6), 0.1);
  EXPECT_LT(cosine.lr(7), 0.1);
  EXPECT_EQ(cosine.lr(13), cosine.lr(7));
  const Value saved(scheduler_to_dict(cosine, 20));
  EXPECT_EQ(ValueView(saved, "a.pt")["last_epoch"].integer(), 2);
}

TEST(Scheduler, WithAWarmupItIsASequence) {
  const Scheduler warm = scheduler(schedule::StepLr{.step_size = 3}, 4);
  const auto at = [&](int64_t step) { return Value(scheduler_to_dict(warm, step)); };
  const Value early = at(2), late = at(8);
  const ValueView before(early, "a.pt"), after(late, "a.pt");
  EXPECT_EQ(before["_milestones"].items()[0].integer(), 4);
  EXPECT_EQ(before["_schedulers"].items()[0]["last_epoch"].integer(), 2);
  EXPECT_EQ(before["_schedulers"].items()[1]["last_epoch"].integer(), -1);
  EXPECT_DOUBLE_EQ(before["_last_lr"].items()[0].number(), 0.075);
  EXPECT_EQ(after["_schedulers"].items()[0]["last_epoch"].integer(), 3);
  EXPECT_EQ(after["_schedulers"].items()[1]["last_epoch"].integer(), 4);
  EXPECT_DOUBLE_EQ(after["_last_lr"].items()[0].number(), 0.01);
}

Scheduler plateau() {
  Scheduler made = scheduler(schedule::PlateauLr{.factor = 0.5, .patience = 1, .cooldown = 1}, 10);
  for (const double metric : {5.0, 4.0, 4.0, 4.0}) made.observe(20, metric);
  return made;
}

TEST(Scheduler, APlateauComesBack) {
  const Scheduler made = plateau();
  EXPECT_EQ(made.lr(20), 0.05);
  EXPECT_DOUBLE_EQ(made.lr(0), 0.01) << "the warm-up's rates are not lowered";
  const Value saved(scheduler_to_dict(made, 20));
  Scheduler fresh = scheduler(made.options.shape, 10);
  EXPECT_EQ(plateau_in(ValueView(saved, "a.pt"), fresh), made.plateau);
  const Value none(scheduler_to_dict(fresh, 0));
  EXPECT_EQ(plateau_in(ValueView(none, "a.pt"), fresh), schedule::PlateauState{});
  const Value other(scheduler_to_dict(scheduler(schedule::CosineLr{}), 0));
  EXPECT_EQ(plateau_in(ValueView(other, "a.pt"), fresh), schedule::PlateauState{}) << "another schedule's checkpoint";
}

TEST(Scheduler, AnEvaluationWithinTheWarmupDoesNotCount) {
  Scheduler made = scheduler(schedule::PlateauLr{}, 10);
  made.observe(9, 5);
  EXPECT_EQ(made.plateau, schedule::PlateauState{});
  made.observe(10, 5);
  EXPECT_EQ(made.plateau.metrics, 1);
}

TEST(Scheduler, AnothersPlateauIsRefused) {
  const Value saved(scheduler_to_dict(plateau(), 20));
  Scheduler run = plateau();
  run.options.base_lr = 0.2;
  try {
    plateau_in(ValueView(saved, "a.pt"), run);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(
        error.what(),
        "a.pt: its plateau began at lr 0.1, this run's at 0.2; leave --lr out, or start a new run with --load");
  }
  run = plateau();
  run.metric = "accuracy";
  EXPECT_THROW(plateau_in(ValueView(saved, "a.pt"), run), ConfigError);
}

TEST(Scheduler, GroupsHaveWhatPyTorchsSchedulersKeepThere) {
  Dict options;
  add_group_rates(scheduler(schedule::OneCycleLr{.max_lr = 0.5}), options);
  EXPECT_EQ(keys(options), (std::vector<std::string>{"initial_lr", "max_lr", "min_lr"}));
  EXPECT_EQ(*options.find("initial_lr")->get_if<double>(), 0.02);
}

}  // namespace
}  // namespace lockstep::train
