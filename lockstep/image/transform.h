// One step of augmentation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/philox.h"
#include "lockstep/image/geometry.h"
#include "lockstep/image/pixels.h"
#include "lockstep/image/resize.h"

namespace lockstep::image {

// An image and, where the task has one, its mask: one channel of class numbers, of the image's size. Else it is empty.
struct Sample {
  Pixels image, mask;
  std::vector<uint32_t> mask_values = {};  // of classes 0, 1 …, where the mask was numbered by its own values
};

// Memory that transforms keep between samples. One thread at a time.
struct Scratch {
  Resizer resizer;
  Pixels image, mask;
  std::vector<uint32_t> values;
};

// Which of a sample's random numbers a transform draws. The n-th of a kind in a pipeline draws from slot + n, so that
// one that is added, or that draws more, moves the numbers of no other. Transforms of one's own begin at kOwn,
// and end below 4096; a pipeline refuses two that would draw from the same slot.
enum class Slot : uint32_t {
  kCrop = 16,
  kFlipX = 32,
  kFlipY = 48,
  kAffine = 64,
  kColour = 80,
  kErasing = 96,
  kChoice = 112,
  kTranspose = 128,
  kOwn = 2048
};

// A pure function of pixels and random numbers. Immutable; any thread.
class Transform {
 public:
  virtual ~Transform() = default;
  virtual std::string text() const = 0;  // "flip 0.5"
  virtual Slot slot() const = 0;

  // What becomes of `before`, for a transform of geometry; nothing for others, and where no geometry can say it. The
  // transform is then applied to pixels.
  virtual std::optional<Geometry> plan(const Geometry& before, RandomStream random) const;

  // Applies the transform to an image and its mask.
  virtual void apply(Sample& sample, RandomStream random, Scratch& scratch) const = 0;
};

// Applies a transform of geometry to pixels, by its plan. Throws BugError if it has none.
void apply_plan(const Transform& transform, Sample& sample, const RandomStream& random, Scratch& scratch);

}  // namespace lockstep::image
