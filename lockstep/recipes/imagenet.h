// Image classification with one of the networks of --arch, on images of one's own (datasets/open_images.h) or on
// textured shapes that are drawn on the spot.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/datasets/image_setup.h"
#include "lockstep/recipes/described.h"
#include "lockstep/recipes/options/recipe_options.h"

namespace lockstep::recipes {

class Imagenet final : public Described<ImagenetOptions> {
 public:
  using Described::Described;
  train::Defaults defaults() const override;
  data::Splits open_data(const train::DataRequest& request) const override;
  train::OpenInput input_opener(const train::InputRequest& request) const override;
  bool takes_bytes() const override { return true; }
  bool takes_encoded() const override { return true; }
  bool repeats_operations() const override { return true; }
  train::Model make_model(uint64_t seed, const data::Dataset& data) const override;
  std::shared_ptr<const data::BatchTransform> batch_transform() const override;  // --mixup, --cutmix
  at::Tensor loss(const at::Tensor& output, const data::Batch& batch) const override;
  // Counts the images whose right class has the highest score, and those where it has one of the five highest.
  std::vector<double> measure(const at::Tensor& output, const data::Batch& batch) const override;
  nlohmann::ordered_json metrics(const std::vector<double>& sums, int64_t samples) const override;
  std::string best_by() const override { return "top1"; }

 private:
  datasets::ImageSetup input_setup(const train::InputRequest& request) const;
};

}  // namespace lockstep::recipes
