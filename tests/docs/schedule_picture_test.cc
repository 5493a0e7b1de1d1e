// docs/images/schedules.svg is drawn from the schedules themselves. LOCKSTEP_DRAW=1 writes it anew.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "lockstep/base/env.h"
#include "lockstep/base/text.h"
#include "lockstep/schedule/schedule.h"

namespace lockstep {
namespace {

constexpr int kSteps = 100, kColumns = 3, kWidth = 210, kHeight = 92, kPitchX = 232, kPitchY = 138;

constexpr const char* kPlain = "stroke=\"#2f6fb2\" stroke-width=\"2\"";
constexpr const char* kWarmed = "stroke=\"#e07b39\" stroke-width=\"1.5\" stroke-dasharray=\"4 3\"";
constexpr const char* kLoss = "stroke=\"#b0b7bf\"";

const std::pair<const char*, schedule::Shape> kPanels[] = {
    {"constant", schedule::ConstantLr{}},
    {"step --step-size 30 --gamma 0.3", schedule::StepLr{.step_size = 30, .gamma = 0.3}},
    {"multistep --milestones 40,60,90", schedule::MultiStepLr{.milestones = {40, 60, 90}, .gamma = 0.5}},
    {"exponential --gamma 0.96", schedule::ExponentialLr{.gamma = 0.96}},
    {"cosine", schedule::CosineLr{.t_max = kSteps}},
    {"cosine-restarts --restart-mult 2", schedule::CosineRestartsLr{.t_0 = 15, .t_mult = 2}},
    {"onecycle", schedule::OneCycleLr{.max_lr = 1, .total_steps = kSteps}},
    {"polynomial --power 2", schedule::PolynomialLr{.total_iters = kSteps, .power = 2}},
    {"plateau --patience 2", schedule::PlateauLr{.factor = 0.5, .patience = 2, .threshold = 0.02}}};

// As people give it: lengths and milestones hold the warm-up, except for a cycle, which is one itself.
schedule::ScheduleOptions warmed(schedule::Shape shape, int64_t warmup) {
  if (std::holds_alternative<schedule::OneCycleLr>(shape)) warmup = 0;
  if (auto* cosine = std::get_if<schedule::CosineLr>(&shape)) cosine->t_max -= warmup;
  if (auto* polynomial = std::get_if<schedule::PolynomialLr>(&shape)) polynomial->total_iters -= warmup;
  if (auto* drops = std::get_if<schedule::MultiStepLr>(&shape)) {
    for (int64_t& milestone : drops->milestones) milestone -= warmup;
  }
  return {.shape = std::move(shape), .base_lr = 1, .warmup = warmup};
}

// A loss that falls, stays, and falls once more; the plateau sees it at every fourth step.
double loss_at(int64_t step) {
  const auto t = static_cast<double>(step);
  return 0.3 + 0.7 * std::exp(-t / 7) - (step > 56 ? 0.15 * (1 - std::exp((56 - t) / 4)) : 0);
}

template <typename At>
std::string curve(const At& at, const char* style) {
  std::string points;
  char point[32];
  for (int64_t step = 0; step < kSteps; ++step) {
    std::snprintf(point, sizeof point, "%.1f,%.1f ", static_cast<double>(step) * kWidth / (kSteps - 1),
                  kHeight * (1 - at(step)));
    points += point;
  }
  points.pop_back();
  return cat("<polyline fill=\"none\" ", style, " points=\"", points, "\"/>\n");
}

std::string rates(const schedule::ScheduleOptions& options, const char* style) {
  schedule::PlateauState state;
  const auto* plateau = std::get_if<schedule::PlateauLr>(&options.shape);
  const auto rate = [&](int64_t step) {
    if (plateau != nullptr && step % 4 == 0 && step >= options.warmup) {
      state = schedule::next(*plateau, options.rates(), state, loss_at(step));
    }
    return schedule::lr_at(options, step, state);
  };
  return curve(rate, style);
}

// The steps below a panel, the factors of --lr beside it.
std::string axes() {
  const auto text = [](int x, int y, const char* anchor, const std::string& what) {
    return cat("<text x=\"", x, "\" y=\"", y, "\" font-size=\"9\" fill=\"#6a737d\" text-anchor=\"", anchor, "\">", what,
               "</text>\n");
  };
  return cat("<path fill=\"none\" stroke=\"#c8ced4\" d=\"M0 0V", kHeight, "H", kWidth, "\"/>\n",
             text(-4, 4, "end", "1"), text(-4, kHeight, "end", "0"), text(0, kHeight + 11, "middle", "0"),
             text(kWidth / 2, kHeight + 11, "middle", "step"),
             text(kWidth, kHeight + 11, "middle", std::to_string(kSteps)), "<text transform=\"translate(-8 ",
             kHeight / 2, ") rotate(-90)\" font-size=\"9\" fill=\"#6a737d\" ",
             "text-anchor=\"middle\">rate ÷ --lr</text>\n");
}

std::string legend() {
  const auto entry = [](int x, const char* style, const char* what) {
    return cat("<path fill=\"none\" ", style, " d=\"M", x, " 446h24\"/>\n<text x=\"", x + 30, "\" y=\"450\">", what,
               "</text>\n");
  };
  return entry(28, kPlain, "learning rate, as a factor of --lr") + entry(276, kWarmed, "with --warmup 10") +
         entry(424, kLoss, "the loss that the plateau sees");
}

std::string picture() {
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 722 464\" width=\"722\" height=\"464\" role=\"img\" "
      "aria-label=\"The learning rates of all schedules over 100 steps\">\n<rect width=\"722\" height=\"464\" rx=\"8\" "
      "fill=\"#ffffff\"/>\n<g font-family=\"Helvetica,Arial,DejaVu Sans,sans-serif\" font-size=\"12\" "
      "fill=\"#30363d\">\n";
  int i = 0;
  for (const auto& [title, shape] : kPanels) {
    svg += cat("<g transform=\"translate(", 28 + kPitchX * (i % kColumns), ' ', 34 + kPitchY * (i / kColumns), ")\">\n",
               "<text y=\"-10\">", title, "</text>\n", axes());
    if (std::holds_alternative<schedule::PlateauLr>(shape)) svg += curve(loss_at, kLoss);
    svg += rates(warmed(shape, 10), kWarmed);
    svg += rates(warmed(shape, 0), kPlain) + "</g>\n";
    ++i;
  }
  return svg + legend() + "</g>\n</svg>\n";
}

TEST(SchedulePicture, IsDrawnFromTheSchedules) {
  static_assert(std::size(kPanels) == std::variant_size_v<schedule::Shape>);
  const std::string path = LOCKSTEP_SOURCE_DIR "/docs/images/schedules.svg", drawn = picture();
  if (env("LOCKSTEP_DRAW")) std::ofstream(path) << drawn;
  std::ifstream file(path);
  const std::string kept((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_TRUE(kept == drawn) << path << " is another; LOCKSTEP_DRAW=1 writes it anew";
}

}  // namespace
}  // namespace lockstep
