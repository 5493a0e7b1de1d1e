#include "lockstep/datasets/renderer.h"

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/image/device/picture_row.h"
#include "lockstep/image/named.h"

namespace lockstep::datasets {

Renderer::Renderer(const ImageSetup& setup, bool augmented)
    : setup_(setup),
      augmented_(augmented),
      pipeline_(augmented ? setup.train : setup.evaluation),
      table_(setup.normalize, setup.as_bytes ? image::Type::kU8 : pixel_type(setup.dtype)),
      byte_table_(setup.as_bytes ? byte_table(setup) : at::Tensor()) {
  if (encoded()) check_encoded();
}

void Renderer::check_encoded() const {
  const auto refuse = [](const auto&... why) {
    throw ConfigError("images that a device decodes: ", why..., "; use --decode host");
  };
  if (!setup_.as_bytes) refuse("they are normalised there, too");
  if (setup_.decode.channels != 3) refuse("they have three channels, not ", setup_.decode.channels);
  if (setup_.decode.fast) refuse("it doesn't scale while it decodes, as --fast-decode does");
  if (const std::string text = pipeline_->unplanned(); !text.empty()) {
    refuse("it crops, resizes and flips, and the transform \"", text,
           "\" changes pixels (--augment standard has none)");
  }
}

data::Field Renderer::field() const {
  return {.name = "data",
          .dtype = setup_.as_bytes ? at::kByte : setup_.dtype,
          .shape = {setup_.decode.channels, size().height, size().width},
          .channels_last = setup_.channels_last,
          .table = byte_table_,
          .encoded = encoded() ? image::row_bytes(size()) : 0};
}

void Renderer::store_encoded(ReadingDesk& desk, std::span<const uint8_t> file, const Draw& draw, const at::Tensor& row,
                             data::ReadStats& stats) const {
  const std::span<uint8_t> bytes(row.mutable_data_ptr<uint8_t>(), static_cast<size_t>(row.numel()));
  const int64_t begin = monotonic_ns();
  const std::string why = why_not_encoded(desk, file, draw, bytes);
  stats.transform_ns += monotonic_ns() - begin;
  if (why.empty()) return;
  const image::Size sides = size();
  const size_t pixels = size_t{3} * static_cast<size_t>(sides.width) * static_cast<size_t>(sides.height);
  const std::span<uint8_t> to = image::store_pixels(why, desk.image.name(), pixels, bytes);
  decode(desk, nullptr, draw, stats);
  table_.store(desk.sample.image, to.data(), setup_.channels_last);
}

// Stores the image in the row, or returns why it has no place there.
std::string Renderer::why_not_encoded(const ReadingDesk& desk, std::span<const uint8_t> file, const Draw& draw,
                                      std::span<uint8_t> row) const {
  const image::ImageInfo& info = desk.image.info();
  if (std::string why = image::kept_here(info); !why.empty()) return why;
  const auto plan = image::named(desk.image.name(), [&] { return pipeline_->plan(info.upright(), draw); });
  if (!plan) return "JPEG whose transforms change pixels";
  check_size(desk, plan->result());
  return image::store_jpeg({info.stored, info.orientation, *plan}, file, desk.image.name(), row);
}

// Decodes and transforms what is opened on the desk.
void Renderer::decode(ReadingDesk& desk, const image::LabelMap* classes, const Draw& draw,
                      data::ReadStats& stats) const {
  image::Pipeline::Times times;
  pipeline_->run(desk.image, classes == nullptr ? nullptr : &desk.mask, classes, draw, desk.scratch, desk.sample,
                 times);
  stats.decode_ns += times.decode_ns;
  stats.transform_ns += times.transform_ns;
  check_size(desk, desk.sample.image.size());
}

void Renderer::check_size(const ReadingDesk& desk, image::Size made) const {
  const image::Size wanted = size();
  if (made == wanted) return;
  throw ConfigError(desk.image.name(), ": the transforms (", pipeline_->text(), ") give an image of ", made.width,
                    " x ", made.height, " pixels, and the data set's are ", wanted.width, " x ", wanted.height);
}

void Renderer::render(ReadingDesk& desk, const image::LabelMap* classes, const Draw& draw,
                      std::span<const at::Tensor> rows, data::ReadStats& stats) const {
  decode(desk, classes, draw, stats);
  const int64_t transformed = monotonic_ns();
  table_.store(desk.sample.image, rows[0].mutable_data_ptr(), setup_.channels_last);
  if (classes != nullptr) {
    check_size(desk, desk.sample.mask.size());
    image::store_classes(desk.sample.mask, rows[1].mutable_data_ptr<int64_t>());
  }
  stats.transform_ns += monotonic_ns() - transformed;
}

}  // namespace lockstep::datasets
