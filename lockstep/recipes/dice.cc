#include "lockstep/recipes/dice.h"

#include <ATen/ops/where.h>

namespace lockstep::recipes {
namespace {

constexpr double kLittle = 1e-6;

// The pixels of each image and class, in fp64: [N, classes].
at::Tensor pixels(const at::Tensor& mask) { return mask.sum({2, 3}, /*keepdim=*/false, at::kDouble); }

struct Counts {
  at::Tensor both, either;  // [N, classes]; `both` counts each pixel twice
};

Counts counts_of(const at::Tensor& predicted, const at::Tensor& mask) {
  return {2 * pixels(predicted * mask), pixels(predicted) + pixels(mask)};
}

std::vector<double> as_vector(const at::Tensor& values) {
  const at::Tensor here = values.to(at::kCPU).contiguous();
  return {here.const_data_ptr<double>(), here.const_data_ptr<double>() + here.numel()};
}

}  // namespace

at::Tensor dice_loss(const at::Tensor& probabilities, const at::Tensor& mask) {
  const at::Tensor both = (probabilities * mask).sum({2, 3});
  const at::Tensor either = (probabilities + mask).sum({2, 3});
  return 1 - ((2 * both + 1) / (either + 1)).mean();
}

at::Tensor joint_dice_loss(const at::Tensor& probabilities, const at::Tensor& mask) {
  const at::Tensor both = 2 * (probabilities * mask).sum();
  at::Tensor either = probabilities.sum() + mask.sum();
  either = at::where(either.eq(0), both, either);
  return 1 - (both + kLittle) / (either + kLittle);
}

std::vector<double> dice_counts(const at::Tensor& predicted, const at::Tensor& mask) {
  const Counts counts = counts_of(predicted, mask);
  const std::vector<double> both = as_vector(counts.both.sum(0)), either = as_vector(counts.either.sum(0));
  std::vector<double> sums;
  for (size_t label = 0; label < both.size(); ++label) sums.insert(sums.end(), {both[label], either[label]});
  return sums;
}

std::vector<double> dice_of_images(const at::Tensor& predicted, const at::Tensor& mask) {
  constexpr double kGrain = 0x1p32;
  const Counts counts = counts_of(predicted, mask);
  const at::Tensor dice = (counts.both + kLittle) / (counts.either + kLittle);
  return as_vector((dice * kGrain).round().sum(0) / kGrain);
}

}  // namespace lockstep::recipes
