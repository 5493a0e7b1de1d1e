#include "lockstep/datasets/image_dataset.h"

#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/datasets/free_list.h"
#include "lockstep/datasets/renderer.h"

namespace lockstep::datasets {
namespace {

struct Desk : ReadingDesk {
  std::vector<uint8_t> bytes;
};

class ImageDataset final : public data::Dataset {
 public:
  ImageDataset(std::shared_ptr<const ImageSource> source, const ImageSetup& setup, bool augmented)
      : source_(std::move(source)), renderer_(setup, augmented) {}

  int64_t size() const override { return source_->size(); }

  std::vector<data::Field> fields() const override {
    return {renderer_.field(), {.name = "target", .dtype = at::kLong, .shape = {}}};
  }

  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, data::ReadStats& stats) const override {
    data::check_index(index, size());
    const auto desk = desks_.take();
    const int64_t begin = monotonic_ns();
    const Encoded encoded = source_->read(index, desk->bytes);
    const int64_t is_read = monotonic_ns();
    stats.read_ns += is_read - begin;
    stats.bytes += std::ssize(encoded.bytes);
    open_encoded(desk->image, encoded, source_->name_of(index), renderer_.setup().decode);
    stats.decode_ns += monotonic_ns() - is_read;
    if (renderer_.encoded()) {
      renderer_.store_encoded(*desk, encoded.bytes, draw, rows[0], stats);
    } else {
      renderer_.render(*desk, nullptr, draw, rows, stats);
    }
    *rows[1].mutable_data_ptr<int64_t>() = source_->class_of(index);
  }

  std::string fingerprint() const override { return source_->fingerprint(); }
  std::string description() const override {
    return cat(source_->text(), "; ", text_of(renderer_.setup(), renderer_.augmented()));
  }
  std::string transforms() const override { return renderer_.transforms(); }
  int64_t classes() const override { return static_cast<int64_t>(source_->class_names().size()); }
  std::vector<std::string> class_names() const override {
    return source_->has_class_names() ? source_->class_names() : std::vector<std::string>();
  }
  int64_t class_of(int64_t index) const override { return source_->class_of(index); }
  std::string name_of(int64_t index) const override { return source_->name_of(index); }
  void will_need(std::span<const int64_t> indices) const override { source_->will_need(indices); }
  bool decodes() const override { return true; }
  std::vector<Listed> listing() const override { return source_->listing(); }

  std::shared_ptr<const Dataset> for_evaluation() const override {
    return renderer_.augmented() ? std::make_shared<ImageDataset>(source_, renderer_.setup(), false) : nullptr;
  }

 private:
  std::shared_ptr<const ImageSource> source_;
  Renderer renderer_;
  mutable FreeList<Desk> desks_;
};

}  // namespace

std::shared_ptr<const data::Dataset> image_dataset(std::shared_ptr<const ImageSource> source, const ImageSetup& setup,
                                                   bool augmented) {
  return std::make_shared<ImageDataset>(std::move(source), setup, augmented);
}

}  // namespace lockstep::datasets
