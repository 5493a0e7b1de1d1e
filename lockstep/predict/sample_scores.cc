#include "lockstep/predict/sample_scores.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/nn/predicted_classes.h"

namespace lockstep::predict {
namespace {

// [N]: of each mask the mean over all classes but the first. predicted, target: [N, H, W].
at::Tensor dice_of_masks(const at::Tensor& predicted, const at::Tensor& target, int64_t classes) {
  at::Tensor sum = at::zeros({target.size(0)}, at::kDouble);
  const auto pixels = [](const at::Tensor& mask) { return mask.flatten(1).sum(1, false, at::kDouble); };
  for (int64_t number = 1; number < classes; ++number) {
    const at::Tensor here = predicted.eq(number), there = target.eq(number);
    const at::Tensor either = pixels(here) + pixels(there);
    sum += at::where(either.eq(0), 1.0, 2 * pixels(here.logical_and(there)) / either);
  }
  return sum / static_cast<double>(classes - 1);
}

}  // namespace

void SampleScores::add(const at::Tensor& scores, const at::Tensor& target) {
  const bool fits = scores.dim() >= 2 && target.scalar_type() == at::kLong && target.dim() == scores.dim() - 1 &&
                    target.size(0) == scores.size(0) && target.numel() * scores.size(1) == scores.numel();
  if (!fits) {
    throw ConfigError("--worst: the network's outputs, ", scores.sizes(), ", are no scores of classes for targets ",
                      target.sizes());
  }
  const int64_t classes = nn::classes_of_outputs(scores.size(1));
  at::Tensor values;
  if (target.dim() == 1) {
    values = nn::class_probabilities(scores, 1).gather(1, target.unsqueeze(1)).squeeze(1).to(at::kCPU);
  } else {
    values = dice_of_masks(nn::predicted_classes(scores, 1).to(at::kCPU), target.to(at::kCPU), classes);
    values.masked_fill_(scores.flatten(1).isfinite().all(1).logical_not().to(at::kCPU), std::nan(""));
  }
  const at::Tensor plain = values.contiguous();
  all_.insert(all_.end(), plain.const_data_ptr<double>(), plain.const_data_ptr<double>() + plain.numel());
}

std::vector<RankedSample> ranked(const std::vector<double>& scores, int64_t first, std::span<const int64_t> left_out) {
  std::vector<RankedSample> samples;
  auto next = std::lower_bound(left_out.begin(), left_out.end(), first);
  int64_t index = first;
  for (const double score : scores) {
    for (; next != left_out.end() && *next == index; ++next) ++index;
    samples.push_back({.index = index++, .score = score});
  }
  return samples;
}

std::vector<RankedSample> worst_of(std::vector<RankedSample> samples, int64_t most) {
  const auto worse = [](const RankedSample& a, const RankedSample& b) {
    const bool a_none = std::isnan(a.score), b_none = std::isnan(b.score);
    if (a_none != b_none) return a_none;
    if (!a_none && a.score != b.score) return a.score < b.score;
    return a.index < b.index;
  };
  std::sort(samples.begin(), samples.end(), worse);
  samples.resize(std::min(samples.size(), static_cast<size_t>(most)));
  return samples;
}

}  // namespace lockstep::predict
