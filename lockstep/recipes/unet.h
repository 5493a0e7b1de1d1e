// Image segmentation with U-Net (Ronneberger et al., 2015), on images and masks of one's own (datasets/open_pairs.h) or
// on shapes that are drawn on the spot.
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
  data::Splits open_data(const train::DataRequest& request) const override;
  train::OpenInput input_opener(const train::InputRequest& request) const override;
  bool makes_masks() const override { return true; }
  bool takes_bytes() const override { return true; }
  train::Model make_model(uint64_t seed, const data::Dataset& data) const override;
  // Returns cross entropy plus Dice loss, of output [N, classes, H, W] and target [N, H, W]. Dice is computed for each
  // image by itself, as the mean over classes, and smoothed by a pixel. So a class that an image lacks counts by the
  // pixels wrongly given to it.
  at::Tensor loss(const at::Tensor& output, const data::Batch& batch) const override;
  // Counts, for each class, the pixels that have it in both prediction and mask, and the pixels that have it in either,
  // twice if in both.
  std::vector<double> measure(const at::Tensor& output, const data::Batch& batch) const override;
  // Returns Dice over all pixels of all images: dice_per_class in the classes' order, and dice, the mean without class
  // 0, the background.
  nlohmann::ordered_json metrics(const std::vector<double>& sums, int64_t samples) const override;
  std::string best_by() const override { return "dice"; }
};

}  // namespace lockstep::recipes
