#include "lockstep/datasets/pair_dataset.h"

#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/datasets/free_list.h"
#include "lockstep/datasets/renderer.h"
#include "lockstep/datasets/scan_masks.h"
#include "lockstep/image/mask_value.h"

namespace lockstep::datasets {
namespace {

struct Desk : ReadingDesk {
  PairMemory bytes;
};

class PairDataset final : public data::Dataset {
 public:
  PairDataset(std::shared_ptr<const ImageSource> source, const image::LabelMap& labels, const ImageSetup& setup,
              bool augmented, std::string example)
      : source_(std::move(source)), labels_(labels), renderer_(setup, augmented), example_(std::move(example)) {
    if (setup.encoded) throw ConfigError("images with masks are decoded on the host; use --decode host");
  }

  int64_t size() const override { return source_->size(); }

  std::vector<data::Field> fields() const override {
    const image::Size size = renderer_.size();
    return {renderer_.field(), {.name = "target", .dtype = at::kLong, .shape = {size.height, size.width}}};
  }

  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, data::ReadStats& stats) const override {
    data::check_index(index, size());
    const auto desk = desks_.take();
    const int64_t begin = monotonic_ns();
    const EncodedPair stored = source_->read_pair(index, desk->bytes);
    const int64_t is_read = monotonic_ns();
    stats.read_ns += is_read - begin;
    stats.bytes += std::ssize(stored.image.bytes) + std::ssize(stored.mask.bytes);
    const image::DecodeOptions& options = renderer_.setup().decode;
    const std::string name = source_->name_of(index);
    check_channels(open_encoded(desk->image, stored.image, name, options), name, options.channels);
    open_encoded(desk->mask, stored.mask, source_->mask_name_of(index), options);
    stats.decode_ns += monotonic_ns() - is_read;
    renderer_.render(*desk, &labels_, draw, rows, stats);
  }

  std::string fingerprint() const override { return cat(source_->fingerprint(), ", ", text_of(labels_)); }

  std::string description() const override {
    return cat(source_->text(), " (", text_of(labels_), "); ", text_of(renderer_.setup(), renderer_.augmented()));
  }

  std::string transforms() const override { return renderer_.transforms(); }
  int64_t classes() const override { return std::ssize(labels_.values()); }
  std::vector<std::string> class_names() const override {
    std::vector<std::string> names;
    for (const uint32_t value : labels_.values()) names.push_back(image::text_of_mask_value(value));
    return names;
  }
  std::string name_of(int64_t index) const override { return source_->name_of(index); }
  std::string example() const override { return example_; }
  void will_need(std::span<const int64_t> indices) const override { source_->will_need(indices); }
  bool decodes() const override { return true; }
  std::vector<Listed> listing() const override { return source_->listing(); }

  std::shared_ptr<const Dataset> for_evaluation() const override {
    if (!renderer_.augmented()) return nullptr;
    return std::make_shared<PairDataset>(source_, labels_, renderer_.setup(), false, example_);
  }

 private:
  std::shared_ptr<const ImageSource> source_;
  image::LabelMap labels_;
  Renderer renderer_;
  std::string example_;
  mutable FreeList<Desk> desks_;
};

}  // namespace

std::shared_ptr<const data::Dataset> pair_dataset(std::shared_ptr<const ImageSource> source,
                                                  const image::LabelMap& labels, const ImageSetup& setup,
                                                  bool augmented, std::string example) {
  return std::make_shared<PairDataset>(std::move(source), labels, setup, augmented, std::move(example));
}

}  // namespace lockstep::datasets
