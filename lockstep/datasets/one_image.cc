#include "lockstep/datasets/one_image.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/datasets/augment.h"
#include "lockstep/datasets/files/file_bytes.h"
#include "lockstep/datasets/image_dataset.h"
#include "lockstep/datasets/image_source.h"
#include "lockstep/image/crops.h"

namespace lockstep::datasets {
namespace {

class OneImage final : public ImageSource {
 public:
  explicit OneImage(std::string file) : file_(std::move(file)) {}

  int64_t size() const override { return 1; }
  Encoded read(int64_t /*index*/, std::vector<uint8_t>& memory) const override { return {read_whole(file_, memory)}; }
  std::string name_of(int64_t /*index*/) const override { return shown(file_); }
  std::string fingerprint() const override { return "one image"; }
  std::string text() const override { return shown(file_); }

 private:
  std::string file_;
};

// Both pipelines are this transform.
void use(ImageSetup& setup, const std::shared_ptr<const image::Transform>& transform, image::Size result) {
  setup.train = setup.evaluation = std::make_shared<image::Pipeline>(std::vector{transform});
  setup.result = result;
}

}  // namespace

std::shared_ptr<const data::Dataset> one_image(const std::string& file, const ImageSetup& setup) {
  return image_dataset(std::make_shared<OneImage>(file), setup, /*augmented=*/false);
}

ImageSetup whole_image_setup(const std::string& file, const OpenOptions& options, int channels) {
  constexpr int kMostSide = 16384;
  std::vector<uint8_t> memory;
  image::Decoder decoder;
  const auto& info = decoder.open(read_whole(file, memory), shown(file), {.exif = options.images.turns()});
  if (channels == 1 && info.channels > channels && options.channels != 1) {
    throw DataError(shown(file), ": the network has ", channels, " input channel, and the image ", info.channels,
                    "; save it as grey");
  }
  check_channels(info, shown(file), channels);
  const image::Size size = sides_like(info.upright(), options);
  if (std::max(size.width, size.height) > kMostSide) {
    throw DataError(shown(file), ": scaled by --", options.scale ? "scale" : "size", " it would be ", size.width, "×",
                    size.height, " pixels, more than ", kMostSide, " a side; cut it into parts");
  }
  ImageSetup setup = pair_setup(options, size);
  setup.decode.channels = channels;
  use(setup, image::resize_to(size), size);
  return setup;
}

ImageSetup grey_image_setup(const OpenOptions& options, image::Size size) {
  ImageSetup setup = pair_setup(options, size);
  setup.decode.channels = 1;
  use(setup, image::resize_to(size), size);
  return setup;
}

}  // namespace lockstep::datasets
