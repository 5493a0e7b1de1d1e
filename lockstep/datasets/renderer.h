// Makes rows of tensors of images that are opened, and of their masks: what all data sets of images share.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <string>

#include "lockstep/base/draw.h"
#include "lockstep/data/dataset.h"
#include "lockstep/datasets/image_setup.h"
#include "lockstep/image/decoder.h"
#include "lockstep/image/label_map.h"
#include "lockstep/image/normalize.h"
#include "lockstep/image/pipeline.h"

namespace lockstep::datasets {

// What a thread needs to read a sample. Image and mask are opened in it.
struct ReadingDesk {
  image::Decoder image, mask;
  image::Scratch scratch;
  image::Sample sample;
};

// Immutable; any thread, each with a desk of its own.
class Renderer {
 public:
  // Augmented by the set-up's training transforms, or else as an evaluation sees images. Throws ConfigError for a
  // set-up whose images come encoded, and whose transforms or decoding a device can't do.
  Renderer(const ImageSetup& setup, bool augmented);

  const ImageSetup& setup() const { return setup_; }
  bool augmented() const { return augmented_; }
  image::Size size() const { return setup_.size(augmented_); }  // of the images
  // What becomes of stored images, for data::Dataset::transforms().
  std::string transforms() const { return transforms_of(setup_, augmented_); }
  // Whether images are decoded where they are used.
  bool encoded() const { return setup_.encoded && augmented_; }
  // The tensor of an image: "data" [channels, height, width].
  data::Field field() const;

  // Of images that come encoded: writes the image that is opened on the desk, whose file is `file`, to the row of
  // data::Field::encoded bytes. Where the device can't decode it, the host does, and says why in the row. Adds to
  // `stats`. Throws as render().
  void store_encoded(ReadingDesk& desk, std::span<const uint8_t> file, const Draw& draw, const at::Tensor& row,
                     data::ReadStats& stats) const;

  // Writes the image that is opened on the desk to rows[0] and, with `classes`, the classes of its mask to rows[1], of
  // int64 [height, width]. Adds to `stats`. Throws DataError and IoError that name the image or the mask, and
  // ConfigError for transforms that give another size than the set-up's.
  void render(ReadingDesk& desk, const image::LabelMap* classes, const Draw& draw, std::span<const at::Tensor> rows,
              data::ReadStats& stats) const;

 private:
  void check_encoded() const;
  std::string why_not_encoded(const ReadingDesk& desk, std::span<const uint8_t> file, const Draw& draw,
                              std::span<uint8_t> row) const;
  void decode(ReadingDesk& desk, const image::LabelMap* classes, const Draw& draw, data::ReadStats& stats) const;
  void check_size(const ReadingDesk& desk, image::Size made) const;

  ImageSetup setup_;
  bool augmented_;
  std::shared_ptr<const image::Pipeline> pipeline_;
  image::NormalizeTable table_;
  at::Tensor byte_table_;  // of images that come as bytes
};

}  // namespace lockstep::datasets
