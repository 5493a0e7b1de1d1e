#include "lockstep/datasets/renderer.h"

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"

namespace lockstep::datasets {

Renderer::Renderer(const ImageSetup& setup, bool augmented)
    : setup_(setup),
      augmented_(augmented),
      pipeline_(augmented ? setup.train : setup.evaluation),
      table_(setup.normalize, setup.as_bytes ? image::Type::kU8 : pixel_type(setup.dtype)),
      byte_table_(setup.as_bytes ? byte_table(setup) : at::Tensor()) {}

data::Field Renderer::field() const {
  return {.name = "data",
          .dtype = setup_.as_bytes ? at::kByte : setup_.dtype,
          .shape = {setup_.decode.channels, setup_.result.height, setup_.result.width},
          .channels_last = setup_.channels_last,
          .table = byte_table_};
}

void Renderer::check_size(const ReadingDesk& desk, image::Size size) const {
  const image::Size wanted = setup_.result;
  if (size == wanted) return;
  throw ConfigError(desk.image.name(), ": the transforms (", pipeline_->text(), ") give an image of ", size.width,
                    " x ", size.height, " pixels, and the data set's are ", wanted.width, " x ", wanted.height);
}

void Renderer::render(ReadingDesk& desk, const image::LabelMap* classes, const Draw& draw,
                      std::span<const at::Tensor> rows, data::ReadStats& stats) const {
  image::Pipeline::Times times;
  pipeline_->run(desk.image, classes == nullptr ? nullptr : &desk.mask, classes, draw, desk.scratch, desk.sample,
                 times);
  const int64_t transformed = monotonic_ns();
  check_size(desk, desk.sample.image.size());
  table_.store(desk.sample.image, rows[0].mutable_data_ptr(), setup_.channels_last);
  if (classes != nullptr) {
    check_size(desk, desk.sample.mask.size());
    image::store_classes(desk.sample.mask, rows[1].mutable_data_ptr<int64_t>());
  }
  stats.decode_ns += times.decode_ns;
  stats.transform_ns += times.transform_ns + monotonic_ns() - transformed;
}

}  // namespace lockstep::datasets
