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
  train::Defaults defaults() const override;
  data::Splits open_data(const train::DataRequest& request) const override;
  train::OpenInput input_opener(const train::InputRequest& request) const override;
  bool makes_masks() const override { return true; }
  bool takes_bytes() const override { return true; }
  bool repeats_operations() const override { return true; }
  train::Model make_model(uint64_t seed, const data::Dataset& data) const override;
  // Returns cross entropy plus Dice loss (dice.h), of output [N, classes, H, W] and target [N, H, W]; of one class the
  // cross entropy of its sigmoid. milesial's Dice is that of the lane's batch together; the recipe's own is a mean over
  // images, so that a class which an image lacks counts by the pixels wrongly given to it.
  at::Tensor loss(const at::Tensor& output, const data::Batch& batch) const override;
  std::vector<double> measure(const at::Tensor& output, const data::Batch& batch) const override;
  // Returns dice_per_class in the classes' order, and dice, the mean without class 0, the background. The recipe's own
  // is over all pixels of all images, milesial's a mean over images.
  nlohmann::ordered_json metrics(const std::vector<double>& sums, int64_t samples) const override;
  std::string best_by() const override { return "dice"; }

 private:
  bool joint_dice() const { return options_.dice == Dice::kMilesial; }
};

}  // namespace lockstep::recipes
