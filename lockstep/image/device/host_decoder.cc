#include "lockstep/image/device/host_decoder.h"

#include "lockstep/image/device/plan_task.h"

namespace lockstep::image {

std::vector<int64_t> HostDecoder::decode(std::span<const PlannedJpeg> pictures, const at::Tensor& images) {
  for (const PlannedJpeg& each : pictures) decode(each.picture, images.select(0, each.place));
  return {};
}

void HostDecoder::decode(const PictureRow& picture, const at::Tensor& image) {
  decoder_.open(picture.file, std::string(picture.name), {.exif = false});
  const Rect held = decoder_.decode({0, 0, picture.stored.width, picture.stored.height}, picture.stored, pixels_);
  between_.resize(static_cast<size_t>(between_bytes(picture)));
  const ResizeTask task =
      resize_task(picture, {pixels_.at(held.x, held.y), pixels_.step(), static_cast<int64_t>(pixels_.stride())},
                  picture.tables.data(), between_.data(),
                  {image.mutable_data_ptr<uint8_t>(), image.stride(2), image.stride(1), image.stride(0)});
  for (int y = 0; y < task.used; ++y) {
    for (int x = 0; x < task.across.size; ++x) mix_row(task, x, y);
  }
  for (int y = 0; y < task.height; ++y) {
    for (int x = 0; x < task.width; ++x) mix_column(task, x, y);
  }
}

}  // namespace lockstep::image
