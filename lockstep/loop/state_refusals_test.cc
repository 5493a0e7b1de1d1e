// What a loop's state refuses, for the loop would go on with other weights.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/lbfgs.h>

#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/data/mix.h"
#include "lockstep/data/order.h"
#include "lockstep/data/subset.h"
#include "lockstep/data/tensor_dataset.h"
#include "lockstep/data/wrapped.h"
#include "lockstep/datasets/drawn/synthetic_digits.h"
#include "lockstep/loop/make_loader.h"
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

TEST(LoopState, AnotherLoopsCheckpointIsRefused) {
  TinyLoop loop;
  const checkpoint::Value saved = loop.state().value();
  int64_t count = 0;
  State other(*loop.world, loop.step, {{"model", *loop.net}, {"count", count}});
  EXPECT_THAT(refusal([&] { other.load(saved, "run.pt"); }),
              HasSubstr("run.pt: the checkpoint of another loop: it lacks count, it has best, optimizer, which this "
                        "loop does not list"));
  std::string text;
  State kinds(*loop.world, loop.step, {{"model", *loop.net}, {"optimizer", loop.optimizer}, {"best", text}});
  EXPECT_THAT(refusal([&] { kinds.load(saved, "run.pt"); }),
              HasSubstr("best is a number in the checkpoint, and a text in this loop"));
  torch::optim::Adam adam(loop.net->parameters());
  State optimizers(*loop.world, loop.step, {{"model", *loop.net}, {"optimizer", adam}, {"best", loop.best}});
  EXPECT_THAT(refusal([&] { optimizers.load(saved, "run.pt"); }),
              HasSubstr("optimizer is an optimizer (sgd) in the checkpoint, and an optimizer (adam) in this loop"));
  EXPECT_THROW(loop.state().load(checkpoint::Dict{{"weight", at::ones({1})}}, "w.pt"), DataError);
}

TEST(LoopState, NamesAreCheckedAtOnce) {
  TinyLoop loop;
  EXPECT_THAT(refusal([&] {
                State(*loop.world, loop.step, {{"meta", loop.best}});
              }),
              HasSubstr("the name meta is the file's own"));
  EXPECT_THAT(refusal([&] {
                State(*loop.world, loop.step, {{"a", loop.best}, {"a", loop.step}});
              }),
              HasSubstr("two parts have the name a"));
  torch::optim::LBFGS lbfgs(loop.net->parameters());
  EXPECT_THAT(refusal([&] {
                State(*loop.world, loop.step, {{"optimizer", lbfgs}});
              }),
              HasSubstr("none of libtorch's SGD, Adam"));
}

// Left out, they would begin anew in silence: masters as rounded weights, the scale as the first one.
TEST(LoopState, MastersAndScalesThatNoPartHasAreRefused) {
  const auto sgd = [](const std::vector<at::Tensor>& p) { return optim::SGD(p, optim::SgdOptions{.lr = 0.01}); };
  Loop<optim::SGD> masters(1, sgd, amp::OptLevel::kO2), scaled(1, sgd, amp::OptLevel::kO1);
  const auto without_amp = [](Loop<optim::SGD>& loop) {
    return refusal([&] { State(*loop.world, loop.step, {{"model", loop.ddp}, {"optimizer", loop.optimizer}}); });
  };
  EXPECT_THAT(without_amp(masters),
              HasSubstr("model is in mixed precision, O2 float16, whose fp32 masters no part has"));
  EXPECT_THAT(without_amp(scaled), HasSubstr("model is in mixed precision, O1 float16, whose loss scale no part has"));
  torch::nn::Linear net = linear(1);
  optim::SGD optimizer(net->parameters(), {.lr = 0.01});
  int64_t step = 0;
  State early(*masters.world, step, {{"model", *net}, {"optimizer", optimizer}});
  amp::MixedPrecision mixed({net.get()}, {&optimizer}, {.opt_level = amp::OptLevel::kO2});
  EXPECT_THAT(refusal([&] { early.value(); }), HasSubstr("whose fp32 masters no part has")) << "cast after it was made";
  torch::nn::Linear narrow = linear(1);
  optim::SGD of_narrow(narrow->parameters(), {.lr = 0.01});
  const amp::MixedPrecision neither({narrow.get()}, {&of_narrow}, {.opt_level = amp::OptLevel::kO1});
  State(*masters.world, step, {{"model", *narrow}}).value();  // bf16 at O1
}

TEST(LoopState, AnOptimizerThatNoPartIsIsRefused) {
  const auto adam = [](const std::vector<at::Tensor>& p) { return optim::AdamW(p, {.lr = 0.01}); };
  const auto libtorchs = [](const std::vector<at::Tensor>& p) { return torch::optim::Adam(p, 0.01); };
  Loop<optim::AdamW> ours(1, adam, amp::OptLevel::kO1), unused(1, adam, amp::OptLevel::kO1);
  Loop<torch::optim::Adam> theirs(1, libtorchs, amp::OptLevel::kO1);
  const auto without_optimizer = [](auto& loop) {
    return refusal([&] { State(*loop.world, loop.step, {{"model", loop.ddp}, {"amp", loop.mixed}}).value(); });
  };
  ours.train(1);
  theirs.train(1);
  const char* const expected = "no part has the optimizer that steps model, and a resumed loop would begin it anew";
  EXPECT_THAT(without_optimizer(ours), HasSubstr(expected));
  EXPECT_THAT(without_optimizer(theirs), HasSubstr(expected));
  EXPECT_EQ(without_optimizer(unused), "") << "it has not stepped";
}

// As of a tied layer that is registered twice: libtorch's parameters() lists its weight twice.
TEST(LoopState, AnOptimizerOfLibtorchsThatHasAWeightTwiceIsRefused) {
  TinyLoop loop;
  torch::optim::SGD twice({loop.net->weight, loop.net->bias, loop.net->weight}, 0.1);
  EXPECT_THAT(refusal([&] {
                State(*loop.world, loop.step, {{"model", *loop.net}, {"optimizer", twice}});
              }),
              HasSubstr("one tensor of shape [3, 4] as its parameters 0 and 2, and would update it twice a step"));
  EXPECT_THAT(refusal([&] { amp::MixedPrecision({loop.net.get()}, {twice}, {}); }), HasSubstr("parameters 0 and 2"));
  optim::SGD once({loop.net->weight, loop.net->bias, loop.net->weight}, {.lr = 0.1});
  State(*loop.world, loop.step, {{"model", *loop.net}, {"optimizer", once}});
}

TEST(LoopState, WeightsThatAreNotFiniteAreAWarning) {
  TinyLoop loop;
  const auto said = [&](State& state) {
    ::testing::internal::CaptureStderr();
    state.value();
    return ::testing::internal::GetCapturedStderr();
  };
  State state = loop.state();
  EXPECT_EQ(said(state), "");
  const at::NoGradGuard no_grad;
  loop.net->bias[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(said(state), HasSubstr("step 3: the checkpoint has weights that are not finite: model bias"));
  EXPECT_EQ(said(state), "") << "once";
}

TEST(LoopState, AnotherDtypeOrNumberOfLossesIsSaid) {
  torch::nn::Linear nets[3] = {linear(1), linear(1), linear(1)};
  amp::MixedPrecision half({nets[0].get()}, {}, {.opt_level = amp::OptLevel::kO1, .dtype = at::kHalf, .num_losses = 2}),
      bfloat({nets[1].get()}, {}, {.opt_level = amp::OptLevel::kO1, .num_losses = 2}),
      one({nets[2].get()}, {}, {.opt_level = amp::OptLevel::kO1, .dtype = at::kHalf});
  int64_t step = 0;
  const auto state = [&](amp::MixedPrecision& mixed) {
    return State(*testing_support::own_world(), step, {{"amp", mixed}});
  };
  const checkpoint::Value saved = state(half).value();
  EXPECT_THAT(refusal([&] { state(bfloat).load(saved, "run.pt"); }),
              HasSubstr("run.pt: amp: the checkpoint is of fp16, this loop of bf16"));
  EXPECT_THAT(refusal([&] { state(one).load(saved, "run.pt"); }),
              HasSubstr("run.pt: amp: the checkpoint is of 2 losses, this loop has num_losses 1"));
}

TEST(LoopState, AnotherNumberOfStepsAnEpochIsSaid) {
  int64_t step = 0;
  const auto world = testing_support::own_world();
  const auto digits = datasets::synthetic_digits({.seed = 1, .train_size = 20, .test_size = 4}).train;
  data::Loader whole = make_loader(*world, digits, {.lanes = 2, .batch_size = 3, .seed = 1});
  data::Loader dropping = make_loader(*world, digits, {.lanes = 2, .batch_size = 3, .seed = 1, .drop_last = true});
  const checkpoint::Value saved = State(*world, step, {{"sampler", whole}}).value();
  State resumed(*world, step, {{"sampler", dropping}});
  EXPECT_EQ(refusal([&] { resumed.load(saved, "run.pt"); }),
            "rank 0: run.pt: sampler: the checkpoint was trained with drop_last 0, this loop has 1");
  const checkpoint::Dict older{{"meta", checkpoint::Dict{{"step", 0}}},
                               {"sampler", checkpoint::Dict{{"epoch", 0}, {"step", 0}}}};
  EXPECT_THAT(refusal([&] { resumed.load(older, "run.pt"); }), HasSubstr("trained with drop_last 0"));
}

TEST(LoopState, OtherDataOfTheSameSizeAreSaid) {
  int64_t step = 0;
  const auto world = testing_support::own_world();
  const auto digits = [](uint64_t seed) {
    return datasets::synthetic_digits({.seed = seed, .train_size = 20, .test_size = 4}).train;
  };
  data::Loader first = make_loader(*world, digits(1), {.lanes = 2, .batch_size = 3, .seed = 1});
  data::Loader same = make_loader(*world, digits(1), {.lanes = 2, .batch_size = 3, .seed = 1});
  data::Loader other = make_loader(*world, digits(2), {.lanes = 2, .batch_size = 3, .seed = 1});
  const checkpoint::Value saved = State(*world, step, {{"sampler", first}}).value();
  State(*world, step, {{"sampler", same}}).load(saved, "run.pt");
  State resumed(*world, step, {{"sampler", other}});
  EXPECT_THAT(refusal([&] { resumed.load(saved, "run.pt"); }),
              HasSubstr("run.pt: sampler: the checkpoint was trained on other data ("));
}

std::shared_ptr<const data::Dataset> twenty_images() {
  at::manual_seed(1);
  return std::make_shared<data::TensorDataset>(at::rand({20, 3, 4, 4}), at::arange(20) % 5);
}

TEST(LoopState, AnotherOrderOfSamplesIsSaid) {
  int64_t step = 0;
  const auto world = testing_support::own_world();
  const auto loader = [&](std::shared_ptr<const data::Order> order) {
    return make_loader(*world, twenty_images(), {.lanes = 2, .batch_size = 3, .seed = 1, .order = std::move(order)});
  };
  const auto refused = [&](data::Loader from, data::Loader into) {
    const checkpoint::Value saved = State(*world, step, {{"sampler", from}}).value();
    return refusal([&] { State(*world, step, {{"sampler", into}}).load(saved, "run.pt"); });
  };
  const std::vector<double> even(20, 1);
  EXPECT_EQ(refused(loader(data::weighted(even, 20, 1)), loader(data::weighted(even, 20, 1))), "");
  EXPECT_THAT(refused(loader(data::weighted(even, 20, 1)), loader(nullptr)),
              HasSubstr("was trained with another order of samples (\"weighted "));
  EXPECT_THAT(refused(loader(data::weighted(even, 20, 1)), loader(data::weighted(even, 20, 2))),
              HasSubstr("another order of samples"))
      << "another seed";
}

TEST(LoopState, OtherMixingIsSaid) {
  int64_t step = 0;
  const auto world = testing_support::own_world();
  const auto loader = [&](const std::shared_ptr<const data::BatchTransform>& transform) {
    return make_loader(*world, twenty_images(), {.lanes = 2, .batch_size = 3, .seed = 1}, {.transform = transform});
  };
  const auto saved = [&](data::Loader of) { return State(*world, step, {{"sampler", of}}).value(); };
  const auto refused = [&](const checkpoint::Value& value, data::Loader into) {
    return refusal([&] { State(*world, step, {{"sampler", into}}).load(value, "run.pt"); });
  };
  const auto mixing = data::mix({.mixup = 0.2});
  EXPECT_EQ(refused(saved(loader(mixing)), loader(data::mix({.mixup = 0.2}))), "");
  EXPECT_EQ(
      refused(saved(loader(mixing)), loader(data::mix({.mixup = 0.2000001}))),
      "rank 0: run.pt: sampler: the checkpoint was trained with other mixing of batches (\"MixUp 0.2\"), this loop has "
      "\"MixUp 0.2000001\"; give it the former, or load the checkpoint's networks alone");
  EXPECT_THAT(refused(saved(loader(mixing)), loader(nullptr)), HasSubstr("(\"MixUp 0.2\"), this loop has none; "));
  EXPECT_THAT(refused(saved(loader(nullptr)), loader(mixing)), HasSubstr("(none), this loop has \"MixUp 0.2\"; "));
  const checkpoint::Dict older{{"meta", checkpoint::Dict{{"step", 0}}},
                               {"sampler", checkpoint::Dict{{"epoch", 0}, {"step", 0}}}};
  EXPECT_EQ(refused(older, loader(mixing)), "") << "it does not say";
}

// The same images, changed in another way as they are read.
struct Changed final : data::Wrapped {
  explicit Changed(std::string how) : Wrapped(twenty_images()), text(std::move(how)) {}
  std::string transforms() const override { return text; }
  std::shared_ptr<const data::Dataset> around(std::shared_ptr<const data::Dataset>) const override { return nullptr; }
  std::string text;
};

TEST(LoopState, OtherTransformsOfTheDataAreSaid) {
  int64_t step = 0;
  const auto world = testing_support::own_world();
  const auto loader = [&](const std::string& how) {
    const auto changed = std::make_shared<Changed>(how);
    const auto all = data::subset(changed, {0, 1, 2, 3, 4, 5, 6, 7}, "eight");
    return make_loader(*world, all, {.lanes = 2, .batch_size = 3, .seed = 1});
  };
  data::Loader first = loader("flip 0.5"), same = loader("flip 0.5"), other = loader("flip 0.1"), none = loader("");
  const checkpoint::Value saved = State(*world, step, {{"sampler", first}}).value();
  State(*world, step, {{"sampler", same}}).load(saved, "run.pt");
  const auto refused = [&](data::Loader& into) {
    return refusal([&] { State(*world, step, {{"sampler", into}}).load(saved, "run.pt"); });
  };
  EXPECT_EQ(
      refused(other),
      "rank 0: run.pt: sampler: the checkpoint was trained with other transforms of its data (\"flip 0.5\"), this loop "
      "has \"flip 0.1\"; give it the former, or load the checkpoint's networks alone");
  EXPECT_THAT(refused(none), HasSubstr("(\"flip 0.5\"), this loop has none; "));
}

TEST(LoopState, AnotherScheduleIsSaid) {
  int64_t step = 0;
  const auto world = testing_support::own_world();
  const schedule::ScheduleOptions was{.shape = schedule::CosineLr{.t_max = 1000}, .base_lr = 0.1};
  const checkpoint::Value saved = State(*world, step, {{"schedule", was}}).value();
  schedule::ScheduleOptions now = was;
  State resumed(*world, step, {{"schedule", now}});
  resumed.load(saved, "run.pt");
  const schedule::ScheduleOptions too_short{.shape = schedule::CosineLr{.t_max = -10}, .base_lr = 0.1, .warmup = 100};
  State unfinished(*world, step, {{"schedule", too_short}});  // whose length may be set later
  EXPECT_THAT(refusal([&] { unfinished.value(); }), HasSubstr("cosine over -10 steps"));
  now.shape = schedule::CosineLr{.t_max = 2000};
  EXPECT_EQ(refusal([&] { resumed.load(saved, "run.pt"); }),
            "rank 0: run.pt: schedule: the checkpoint is of another schedule, whose t_max was 1000, and is 2000 in "
            "this loop; "
            "give it the former one, or load the checkpoint's networks alone");
}

TEST(LoopState, ARefusedLoadLeavesTheLoopAsItWas) {
  TinyLoop was, loop;
  was.optimizer.param_groups()[0].options().set_lr(0.5);
  was.net->weight.data().add_(1);
  was.step = 7;
  const schedule::ScheduleOptions first{.shape = schedule::CosineLr{.t_max = 1000}, .base_lr = 0.1};
  const schedule::ScheduleOptions other{.shape = schedule::CosineLr{.t_max = 2000}, .base_lr = 0.1};
  const auto state_of = [](TinyLoop& of, const schedule::ScheduleOptions& schedule) {
    return State(*of.world, of.step, {{"model", *of.net}, {"optimizer", of.optimizer}, {"schedule", schedule}});
  };
  const checkpoint::Value saved = state_of(was, first).value();
  const std::string weights = checkpoint::weights_sha256(*loop.net);
  EXPECT_THAT(refusal([&] { state_of(loop, other).load(saved, "run.pt"); }), HasSubstr("another schedule"));
  EarlyStopping up, down({.lower_is_better = true});
  const auto with_stopping = [](TinyLoop& of, EarlyStopping& stopping) {
    return State(*of.world, of.step, {{"model", *of.net}, {"optimizer", of.optimizer}, {"stopping", stopping}});
  };
  const checkpoint::Value stopped = with_stopping(was, up).value();
  EXPECT_THAT(refusal([&] { with_stopping(loop, down).load(stopped, "run.pt"); }), HasSubstr("lower_is_better"));
  EXPECT_EQ(checkpoint::weights_sha256(*loop.net), weights);
  EXPECT_EQ(loop.optimizer.param_groups()[0].options().get_lr(), 0.1);
  EXPECT_EQ(loop.step, 3);
}

TEST(LoopState, AnotherOptLevelIsSaid) {
  const auto sgd = [](const std::vector<at::Tensor>& p) { return optim::SGD(p, optim::SgdOptions{.lr = 0.01}); };
  Loop<optim::SGD> one(1, sgd, amp::OptLevel::kO1), two(1, sgd, amp::OptLevel::kO2);
  const checkpoint::Value saved = one.state().value();
  EXPECT_THAT(refusal([&] { two.state().load(saved, "run.pt"); }),
              HasSubstr("run.pt: amp: the checkpoint is of opt level O1, this loop of O2; use O1"));
}

// A loop that would end at the first of them again, or go on with another list.
TEST(LoopState, ALimitBelowWhatWasPassedOverIsRefused) {
  const auto world = testing_support::own_world();
  const auto digits = datasets::synthetic_digits({.seed = 1, .train_size = 20, .test_size = 4}).train;
  const auto loader_with = [&](int64_t most) {
    return make_loader(*world, digits, {.lanes = 2, .batch_size = 3, .seed = 1}, {.skip_bad = most});
  };
  data::Loader before = loader_with(3);
  before.skipped()->restore({{"a", "a: torn"}, {"b", "b: torn"}});
  int64_t step = 4;
  const checkpoint::Value saved = State(*world, step, {{"sampler", before}}).value();
  for (const int64_t most : {0, 1}) {
    data::Loader few = loader_with(most);
    EXPECT_THAT(refusal([&] {
                  State(*world, step, {{"sampler", few}}).load(saved, "run.pt");
                }),
                HasSubstr(cat("2 samples that can't be read were passed over, and this loop's skip_bad is ", most)));
    EXPECT_EQ(few.position(), data::Position());
  }
  data::Loader enough = loader_with(2);
  State(*world, step, {{"sampler", enough}}).load(saved, "run.pt");
  EXPECT_EQ(enough.skipped()->all(), before.skipped()->all());
}

}  // namespace
}  // namespace lockstep::loop
