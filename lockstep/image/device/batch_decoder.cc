#include "lockstep/image/device/batch_decoder.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"

namespace lockstep::image {
namespace {

// An image's values in the order of its memory.
at::Tensor in_memory_order(const at::Tensor& image, bool channels_last) {
  return channels_last ? image.permute({1, 2, 0}) : image;
}

// Queues the copy of pixels that the host has made, which lie as the image's do.
void copy_pixels(const PictureRow& picture, const at::Tensor& image, bool channels_last) {
  const at::Tensor to = in_memory_order(image, channels_last);
  if (std::ssize(picture.file) != to.numel()) {
    throw BugError(picture.name, ": ", picture.file.size(), " bytes of pixels for an image of ", to.numel());
  }
  auto* const pixels = const_cast<uint8_t*>(picture.file.data());
  to.copy_(at::from_blob(pixels, to.sizes(), at::TensorOptions(at::kByte)), /*non_blocking=*/true);
}

}  // namespace

int64_t DecodedCounts::host() const {
  int64_t all = 0;
  for (const auto& [why, count] : on_host) all += count;
  return all;
}

DecodedCounts& DecodedCounts::operator+=(const DecodedCounts& other) {
  on_device += other.on_device;
  for (const auto& [why, count] : other.on_host) on_host[why] += count;
  return *this;
}

std::string DecodedCounts::text() const {
  std::string whys;
  for (const auto& [why, count] : on_host) whys += cat(whys.empty() ? "" : ", ", count, ' ', why);
  return cat(on_device, " on the device, ", host(), " on the host", whys.empty() ? "" : cat(" (", whys, ')'));
}

std::string DecodedCounts::lines() const {
  std::string lines = cat(on_device, '\n');
  for (const auto& [why, count] : on_host) lines += cat(count, ' ', why, '\n');
  return lines;
}

DecodedCounts DecodedCounts::of(const std::string& lines) {
  DecodedCounts counts;
  std::istringstream from(lines);
  from >> counts.on_device;
  int64_t count = 0;
  for (std::string why; from >> count && std::getline(from >> std::ws, why);) counts.on_host[why] += count;
  return counts;
}

BatchDecoder::BatchDecoder(std::shared_ptr<JpegDecoder> decoder, c10::Device device)
    : decoder_(std::move(decoder)), device_(device) {}

at::Tensor BatchDecoder::empty(int64_t pictures, Size result, bool channels_last, c10::Device device) const {
  return at::empty({pictures, 3, result.height, result.width}, at::TensorOptions(at::kByte).device(device),
                   channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
}

at::Tensor BatchDecoder::decode(const at::Tensor& rows, Size result, bool channels_last, DecodedCounts& counts) {
  const at::Tensor images = empty(rows.size(0), result, channels_last, device_);
  const auto* const bytes = rows.const_data_ptr<uint8_t>();
  const auto length = static_cast<size_t>(rows.size(1));
  std::vector<PlannedJpeg> pictures;
  for (int64_t place = 0; place < rows.size(0); ++place) {
    const PictureRow picture = read_row({bytes + static_cast<size_t>(place) * length, length});
    if (picture.why.empty()) {
      if (picture.geometry.result() != result)
        throw BugError(picture.name, ": its plan has another size than the batch");
      pictures.push_back({picture, place});
    } else {
      copy_pixels(picture, images.select(0, place), channels_last);
      ++counts.on_host[std::string(picture.why)];
    }
  }
  if (pictures.empty()) return images;
  const std::vector<int64_t> refused = decoder_->decode(pictures, images);
  counts.on_device += std::ssize(pictures) - std::ssize(refused);
  for (const int64_t place : refused) {
    const auto found = std::find_if(pictures.begin(), pictures.end(), [&](const auto& p) { return p.place == place; });
    const at::Tensor image = empty(1, result, channels_last, at::kCPU);
    host_.decode(std::vector<PlannedJpeg>{{found->picture, 0}}, image);
    images.select(0, place).copy_(image[0]);
    ++counts.on_host[cat("JPEG that ", decoder_->text(), " refuses")];
  }
  return images;
}

}  // namespace lockstep::image
