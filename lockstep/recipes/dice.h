// Dice, the overlap of predicted and true masks, as a loss and as a metric (Milletari et al., 2016). Masks are
// [N, classes, H, W], of probabilities or of zeros and ones.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace lockstep::recipes {

// Returns 1 less the mean, over images and classes, of Dice smoothed by a pixel: a scalar with a graph.
at::Tensor dice_loss(const at::Tensor& probabilities, const at::Tensor& mask);

// Returns 1 less the Dice of all images and classes together, smoothed by 1e-6, as milesial's Pytorch-UNet computes it:
// a scalar with a graph.
at::Tensor joint_dice_loss(const at::Tensor& probabilities, const at::Tensor& mask);

// Returns, for each class, twice the pixels that are in both masks, and the pixels of one and of the other together.
std::vector<double> dice_counts(const at::Tensor& predicted, const at::Tensor& mask);

// Returns, for each class, the sum over images of their Dice, smoothed by 1e-6, in 2^-32ths: sums of two million images
// are exact.
std::vector<double> dice_of_images(const at::Tensor& predicted, const at::Tensor& mask);

}  // namespace lockstep::recipes
