#include "lockstep/datasets/pair_dataset.h"

#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/datasets/files/file_bytes.h"
#include "lockstep/datasets/free_list.h"
#include "lockstep/datasets/image_files.h"
#include "lockstep/datasets/scan_masks.h"

namespace lockstep::datasets {
namespace {

// What a thread needs to read a sample.
struct Desk {
  image::Decoder image, mask;
  image::Scratch scratch;
  image::Sample sample;
  std::vector<uint8_t> image_bytes, mask_bytes;
};

// What all samples share.
struct Shared {
  Pairs pairs;
  image::LabelMap labels;
  ImageSetup setup;
};

class PairDataset final : public data::Dataset {
 public:
  PairDataset(std::shared_ptr<const Shared> shared, bool augmented)
      : shared_(std::move(shared)),
        augmented_(augmented),
        pipeline_(augmented ? shared_->setup.train : shared_->setup.evaluation),
        table_(shared_->setup.normalize, pixel_type(shared_->setup.dtype)) {}

  int64_t size() const override { return std::ssize(shared_->pairs.pairs); }

  std::vector<data::Field> fields() const override {
    const ImageSetup& setup = shared_->setup;
    const int64_t height = setup.result.height, width = setup.result.width;
    return {{.name = "data",
             .dtype = setup.dtype,
             .shape = {setup.decode.channels, height, width},
             .channels_last = setup.channels_last},
            {.name = "target", .dtype = at::kLong, .shape = {height, width}}};
  }

  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, data::ReadStats& stats) const override {
    const Pair& pair = at(index);
    const auto desk = desks_.take();
    const int64_t begin = monotonic_ns();
    const std::string image = path_of(pair.image), mask = path_of(pair.mask);
    desk->image.open(read_whole(image, desk->image_bytes), shown(image), shared_->setup.decode);
    desk->mask.open(read_whole(mask, desk->mask_bytes), shown(mask), shared_->setup.decode);
    stats.read_ns += monotonic_ns() - begin;
    stats.bytes += std::ssize(desk->image_bytes) + std::ssize(desk->mask_bytes);
    image::Pipeline::Times times;
    pipeline_->run(desk->image, &desk->mask, &shared_->labels, draw, desk->scratch, desk->sample, times);
    const int64_t transformed = monotonic_ns();
    check_size(index, desk->sample.image.size());
    check_size(index, desk->sample.mask.size());
    table_.store(desk->sample.image, rows[0].mutable_data_ptr(), shared_->setup.channels_last);
    image::store_classes(desk->sample.mask, rows[1].mutable_data_ptr<int64_t>());
    stats.decode_ns += times.decode_ns;
    stats.transform_ns += times.transform_ns + monotonic_ns() - transformed;
  }

  std::string fingerprint() const override {
    return cat(fingerprint_of(shared_->pairs.listing), ", ", text_of(shared_->labels));
  }

  std::string description() const override {
    Listing images;
    for (const Pair& pair : shared_->pairs.pairs) images.push_back({pair.image, 0});
    return cat(count_of_images(images), " with masks in ", shown(shared_->pairs.path), " (", text_of(shared_->labels),
               "); ", text_of(shared_->setup, augmented_));
  }

  int64_t classes() const override { return std::ssize(shared_->labels.values()); }
  std::string name_of(int64_t index) const override { return shown(path_of(at(index).image)); }
  bool decodes() const override { return true; }
  std::vector<Listed> listing() const override { return shared_->pairs.listing; }

  std::shared_ptr<const Dataset> for_evaluation() const override {
    return augmented_ ? std::make_shared<PairDataset>(shared_, false) : nullptr;
  }

 private:
  const Pair& at(int64_t index) const {
    data::check_index(index, size());
    return shared_->pairs.pairs[static_cast<size_t>(index)];
  }
  std::string path_of(const std::string& name) const { return shared_->pairs.path + "/" + name; }

  void check_size(int64_t index, image::Size size) const {
    const image::Size wanted = shared_->setup.result;
    if (size == wanted) return;
    throw ConfigError(name_of(index), ": the transforms (", pipeline_->text(), ") give an image of ", size.width, " x ",
                      size.height, " pixels, and the data set's are ", wanted.width, " x ", wanted.height);
  }

  std::shared_ptr<const Shared> shared_;
  bool augmented_;
  std::shared_ptr<const image::Pipeline> pipeline_;
  image::NormalizeTable table_;
  mutable FreeList<Desk> desks_;
};

}  // namespace

std::shared_ptr<const data::Dataset> pair_dataset(const Pairs& pairs, const image::LabelMap& labels,
                                                  const ImageSetup& setup, bool augmented) {
  return std::make_shared<PairDataset>(std::make_shared<Shared>(Shared{pairs, labels, setup}), augmented);
}

}  // namespace lockstep::datasets
