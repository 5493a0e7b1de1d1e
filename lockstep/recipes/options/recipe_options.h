// The descriptions of the recipes of `lockstep train`, with their own options.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/datasets/options/image_options.h"
#include "lockstep/train/options/recipe_choice.h"

namespace lockstep::recipes {

enum class DigitLoss { kCrossEntropy, kMse };
constexpr auto words(DigitLoss) {
  return std::to_array<config::Word<DigitLoss>>(
      {{DigitLoss::kCrossEntropy, "cross-entropy"}, {DigitLoss::kMse, "mse"}});
}

// How much training digits are changed at random: not, or turned, moved and scaled a little.
enum class DigitAugment { kNone, kStandard };
constexpr auto words(DigitAugment) {
  return std::to_array<config::Word<DigitAugment>>(
      {{DigitAugment::kNone, "none"}, {DigitAugment::kStandard, "standard"}});
}

struct MnistOptions : train::RecipeDescription {
  DigitLoss loss = DigitLoss::kCrossEntropy;
  DigitAugment augment = DigitAugment::kNone;

  std::string name() const override { return "mnist"; }
  void declare(config::OptionSet& options) override;
  std::vector<train::Preset> presets() const override;
};

enum class Arch {
  kResnet18,
  kResnet34,
  kResnet50,
  kResnet101,
  kResnet152,
  kMobilenetV2,
  kShufflenetV2,
  kAlexnet,
  kIgcv3
};
constexpr auto words(Arch) {
  return std::to_array<config::Word<Arch>>({{Arch::kResnet18, "resnet18"},
                                            {Arch::kResnet34, "resnet34"},
                                            {Arch::kResnet50, "resnet50"},
                                            {Arch::kResnet101, "resnet101"},
                                            {Arch::kResnet152, "resnet152"},
                                            {Arch::kMobilenetV2, "mobilenet_v2"},
                                            {Arch::kShufflenetV2, "shufflenet_v2"},
                                            {Arch::kAlexnet, "alexnet"},
                                            {Arch::kIgcv3, "igcv3"}});
}

struct ImagenetOptions : train::RecipeDescription {
  Arch arch = Arch::kResnet18;
  std::optional<int> size;  // pixels a side of images; left out: 64 of drawn ones, 224 of files, 32 of CIFAR's
  datasets::ImageOptions images;
  std::optional<double> mixup, cutmix;    // alphas of the training batches' MixUp and CutMix; unset or 0: none
  std::optional<double> label_smoothing;  // of the loss; unset: none

  std::string name() const override { return "imagenet"; }
  void declare(config::OptionSet& options) override;
  std::vector<train::Preset> presets() const override;
  int side(const std::string& data) const;  // `size`, or what it stands for with these data
  void resolve(const std::string& data) override;
  void check() const override;
};

// Whose Dice is part of the loss, and is the metric: the recipe's own, or that of milesial's Pytorch-UNet.
enum class Dice { kOwn, kMilesial };
constexpr auto words(Dice) {
  return std::to_array<config::Word<Dice>>({{Dice::kOwn, "own"}, {Dice::kMilesial, "milesial"}});
}

struct UNetOptions : train::RecipeDescription {
  std::optional<int> size;      // pixels of images' shorter side; left out: 64 of drawn ones, 256 of files
  std::optional<double> scale;  // of images' own size, instead of `size`
  std::optional<int> crop;      // sides of training images, as random parts of such; left out: whole images
  bool half_size = false;       // computes at half the images' size, and scales the scores back
  int views = 1;                // of an image, flipped and turned, over which evaluations and predictions average
  int width = 64;               // channels of the first level
  bool bilinear = false;        // upsampling by interpolation
  std::optional<int> channels;  // of images; left out: 1 or 3, as they have; 2 and 4: with their alpha
  std::optional<int> classes;   // outputs; left out: the masks' values; 1: a sigmoid in place of two
  Dice dice = Dice::kOwn;
  double dice_weight = 1;  // of the Dice loss, beside cross entropy
  datasets::ImageOptions images;

  std::string name() const override { return "unet"; }
  std::vector<train::Preset> presets() const override;
  std::string usual_preset(const std::string& data, const std::vector<config::GivenOption>& given) const override;
  std::vector<config::Spelling> spellings() const override;
  void declare(config::OptionSet& options) override;
  void check() const override;
  int side(const std::string& data) const;  // `size`, or what it stands for with these data
  void resolve(const std::string& data) override;
};

// Returns all descriptions, each with its defaults. A test compares them with the recipes themselves
// (recipes/registry.h).
train::RecipeDescriptions describe_recipes();

}  // namespace lockstep::recipes
