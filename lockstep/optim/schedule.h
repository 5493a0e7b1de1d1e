// Learning-rate schedules as pure functions of the step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::optim {

enum class ScheduleKind { kConstant, kStep, kCosine };

// "constant", "step", "cosine"; throws ConfigError with the nearest of them for anything else.
ScheduleKind parse_schedule(std::string_view name);

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kConstant;
  double base_lr = 0.01;
  double lr_min = 0;          // cosine: the last value
  int64_t horizon_steps = 0;  // cosine: where it reaches lr_min, warm-up included
  int64_t step_size = 1;      // step: so many steps with one rate
  double gamma = 0.1;         // step: the factor from each rate to the next
  int64_t warmup_steps = 0;
  std::optional<double> warmup_start;  // the share of base_lr at step 0; nothing: 1 / warmup_steps

  void check() const;  // throws ConfigError
};

// The rate of step `step`, counted from 0. With w = warmup_steps, T = horizon_steps - w and u = step - w:
//   step < w   base · (step + 1) / w, so that no step is lost; with a warmup_start s: base · (s + (1 - s) · step / w),
//              torch's LinearLR(start_factor=s, total_iters=w)
//   constant   base
//   step       base · gamma^⌊u / step_size⌋                                  torch's StepLR
//   cosine     lr_min + (base - lr_min) · (1 + cos(π · u / T)) / 2           torch's CosineAnnealingLR(T_max=T)
//              and lr_min from u = T on, where torch's would rise again
// After a warm-up it is what torch's SequentialLR makes of the two. `options` must have passed check(); step >= 0.
double lr_at(const ScheduleOptions& options, int64_t step);

}  // namespace lockstep::optim
