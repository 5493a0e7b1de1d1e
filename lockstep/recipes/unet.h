// Telling an image's pixels apart with U-Net (Ronneberger et al., 2015); so far shapes that are drawn on the spot.
#pragma once

#include <string>
#include <vector>

#include "lockstep/recipes/described.h"
#include "lockstep/recipes/options/recipe_options.h"

namespace lockstep::recipes {

class UNet final : public Described<UNetOptions> {
 public:
  using Described::Described;
  train::Defaults defaults(const std::string& preset) const override;
  data::Splits open_data(const std::string& path, uint64_t seed) const override;
  train::Model make_model(uint64_t seed, const data::Dataset& data) const override;
  // Cross entropy plus Dice loss, of output [N, classes, H, W] and target [N, H, W]. Dice is each image's own, the mean
  // over classes, and smoothed by a pixel: so a class that an image lacks counts by the pixels wrongly given to it.
  at::Tensor loss(const at::Tensor& output, const at::Tensor& target) const override;
  // For each class, pixels that are it in both prediction and mask, and pixels in either, counted twice if in both.
  std::vector<double> measure(const at::Tensor& output, const at::Tensor& target) const override;
  // Dice over all pixels of all images: dice_per_class in the classes' order, dice the mean without class 0, the
  // ground.
  nlohmann::ordered_json metrics(const std::vector<double>& sums, int64_t samples) const override;
  std::string best_by() const override { return "dice"; }
};

}  // namespace lockstep::recipes
