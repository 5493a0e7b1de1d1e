// The descriptions of the recipes of `lockstep train`, with their own options.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/datasets/options/image_options.h"
#include "lockstep/train/options/recipe_choice.h"

namespace lockstep::recipes {

struct MnistOptions : train::RecipeDescription {
  std::string name() const override { return "mnist"; }
  std::vector<std::string> presets() const override { return {"paddle"}; }
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
  int side(const std::string& data) const;  // `size`, or what it stands for with these data
  void resolve(const std::string& data) override;
  void check() const override;
};

struct UNetOptions : train::RecipeDescription {
  std::optional<int> size;  // pixels of images' shorter side; left out: 64 of drawn ones, 256 of files
  int width = 64;           // channels of the first level
  bool bilinear = false;    // upsampling by interpolation
  datasets::ImageOptions images;

  std::string name() const override { return "unet"; }
  void declare(config::OptionSet& options) override;
  int side(const std::string& data) const;  // `size`, or what it stands for with these data
  void resolve(const std::string& data) override;
};

// Returns all descriptions, each with its defaults. A test compares them with the recipes themselves
// (recipes/registry.h).
train::RecipeDescriptions describe_recipes();

}  // namespace lockstep::recipes
