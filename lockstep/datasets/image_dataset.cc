#include "lockstep/datasets/image_dataset.h"

#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/datasets/free_list.h"

namespace lockstep::datasets {
namespace {

// What a thread needs to read a sample.
struct Desk {
  image::Decoder decoder;
  image::Scratch scratch;
  image::Sample sample;
  std::vector<uint8_t> bytes;
};

class ImageDataset final : public data::Dataset {
 public:
  ImageDataset(std::shared_ptr<const ImageSource> source, const ImageSetup& setup, bool augmented)
      : source_(std::move(source)),
        setup_(setup),
        augmented_(augmented),
        pipeline_(augmented ? setup.train : setup.evaluation),
        table_(setup.normalize, pixel_type(setup.dtype)) {}

  int64_t size() const override { return source_->size(); }

  std::vector<data::Field> fields() const override {
    return {{.name = "data",
             .dtype = setup_.dtype,
             .shape = {setup_.decode.channels, setup_.result.height, setup_.result.width},
             .channels_last = setup_.channels_last},
            {.name = "target", .dtype = at::kLong, .shape = {}}};
  }

  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, data::ReadStats& stats) const override {
    data::check_index(index, size());
    const auto desk = desks_.take();
    const int64_t begin = monotonic_ns();
    const Encoded encoded = source_->read(index, desk->bytes);
    stats.read_ns += monotonic_ns() - begin;
    stats.bytes += std::ssize(encoded.bytes);
    open(desk->decoder, encoded, source_->name_of(index));
    image::Pipeline::Times times;
    pipeline_->run(desk->decoder, nullptr, nullptr, draw, desk->scratch, desk->sample, times);
    const int64_t transformed = monotonic_ns();
    if (desk->sample.image.size() != setup_.result) throw_other_size(index, desk->sample.image.size());
    table_.store(desk->sample.image, rows[0].mutable_data_ptr(), setup_.channels_last);
    *rows[1].mutable_data_ptr<int64_t>() = source_->class_of(index);
    stats.decode_ns += times.decode_ns;
    stats.transform_ns += times.transform_ns + monotonic_ns() - transformed;
  }

  std::string fingerprint() const override { return source_->fingerprint(); }
  std::string description() const override { return cat(source_->text(), "; ", text_of(setup_, augmented_)); }
  int64_t classes() const override { return static_cast<int64_t>(source_->class_names().size()); }
  int64_t class_of(int64_t index) const override { return source_->class_of(index); }
  std::string name_of(int64_t index) const override { return source_->name_of(index); }
  void will_need(std::span<const int64_t> indices) const override { source_->will_need(indices); }
  bool decodes() const override { return true; }
  std::vector<Listed> listing() const override { return source_->listing(); }

  std::shared_ptr<const Dataset> for_evaluation() const override {
    return augmented_ ? std::make_shared<ImageDataset>(source_, setup_, false) : nullptr;
  }

 private:
  void open(image::Decoder& decoder, const Encoded& encoded, const std::string& name) const {
    if (encoded.raw) {
      decoder.open_raw(encoded.bytes, *encoded.raw, name, setup_.decode);
    } else {
      decoder.open(encoded.bytes, name, setup_.decode);
    }
  }

  [[noreturn]] void throw_other_size(int64_t index, image::Size size) const {
    throw ConfigError(name_of(index), ": the transforms (", pipeline_->text(), ") give an image of ", size.width, " x ",
                      size.height, " pixels, and the data set's are ", setup_.result.width, " x ",
                      setup_.result.height);
  }

  std::shared_ptr<const ImageSource> source_;
  ImageSetup setup_;
  bool augmented_;
  std::shared_ptr<const image::Pipeline> pipeline_;
  image::NormalizeTable table_;
  mutable FreeList<Desk> desks_;
};

}  // namespace

std::shared_ptr<const data::Dataset> image_dataset(std::shared_ptr<const ImageSource> source, const ImageSetup& setup,
                                                   bool augmented) {
  return std::make_shared<ImageDataset>(std::move(source), setup, augmented);
}

}  // namespace lockstep::datasets
