#include "lockstep/datasets/warped_images.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/datasets/free_list.h"

namespace lockstep::datasets {
namespace {

struct Memory {
  image::Sample sample;
  image::Scratch scratch;
};

class WarpedImages final : public data::Dataset {
 public:
  WarpedImages(std::shared_ptr<const data::Dataset> images, const image::AffineOptions& options)
      : images_(std::move(images)), affine_(image::random_affine(options)) {}

  int64_t size() const override { return images_->size(); }
  std::vector<data::Field> fields() const override { return images_->fields(); }

  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, data::ReadStats& stats) const override {
    images_->read(index, draw, rows, stats);
    const auto memory = memories_.take();
    image::Pixels& pixels = memory->sample.image;
    const image::Size size{static_cast<int>(rows[0].size(2)), static_cast<int>(rows[0].size(1))};
    pixels.reshape(size, 1);
    float* const row = rows[0].mutable_data_ptr<float>();
    for (int y = 0; y < size.height; ++y) {
      const float* const from = row + static_cast<ptrdiff_t>(y) * size.width;
      std::transform(from, from + size.width, pixels.row(y),
                     [](float value) { return static_cast<uint8_t>(std::lround(std::clamp(value, 0.f, 1.f) * 255)); });
    }
    affine_->apply(memory->sample, draw.stream(static_cast<uint32_t>(affine_->slot())), memory->scratch);
    for (int y = 0; y < size.height; ++y) {
      const uint8_t* const from = memory->sample.image.row(y);
      std::transform(from, from + size.width, row + static_cast<ptrdiff_t>(y) * size.width,
                     [](uint8_t byte) { return static_cast<float>(byte) / 255.f; });
    }
  }

  std::string fingerprint() const override { return images_->fingerprint(); }
  std::string description() const override { return images_->description(); }
  std::string transforms() const override { return affine_->text(); }
  int64_t classes() const override { return images_->classes(); }
  std::vector<std::string> class_names() const override { return images_->class_names(); }
  int64_t class_of(int64_t index) const override { return images_->class_of(index); }
  std::string name_of(int64_t index) const override { return images_->name_of(index); }
  std::shared_ptr<const data::Dataset> for_evaluation() const override { return images_; }
  void will_need(std::span<const int64_t> indices) const override { images_->will_need(indices); }
  std::vector<Listed> listing() const override { return images_->listing(); }

 private:
  std::shared_ptr<const data::Dataset> images_;
  std::shared_ptr<const image::Transform> affine_;
  mutable FreeList<Memory> memories_;
};

}  // namespace

std::shared_ptr<const data::Dataset> warped(std::shared_ptr<const data::Dataset> images,
                                            const image::AffineOptions& options) {
  return std::make_shared<WarpedImages>(std::move(images), options);
}

}  // namespace lockstep::datasets
