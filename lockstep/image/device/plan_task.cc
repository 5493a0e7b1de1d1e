#include "lockstep/image/device/plan_task.h"

#include "lockstep/image/orientation.h"

namespace lockstep::image {
namespace {

AxisTask axis_task(const AxisInRow& axis, const uint8_t* numbers, const uint8_t* weights) {
  const auto* first = reinterpret_cast<const int32_t*>(numbers);
  return {.first = first,
          .count = first + axis.count,
          .weights = reinterpret_cast<const int16_t*>(weights),
          .begin = axis.begin,
          .size = axis.count,
          .taps = axis.taps};
}

int64_t numbers_of(const AxisInRow& axis) { return int64_t{2} * axis.count * int64_t{sizeof(int32_t)}; }

// How far the stored place of an upright pixel is from the first stored one.
int64_t offset_of(const PictureRow& picture, const DecodedPixels& decoded, int x, int y) {
  const Rect place = stored_rect({x, y, 1, 1}, picture.stored, picture.orientation);
  return place.x * decoded.pixel + place.y * decoded.row;
}

}  // namespace

int64_t between_bytes(const PictureRow& picture) { return int64_t{3} * picture.used * picture.across.count; }

ResizeTask resize_task(const PictureRow& picture, const DecodedPixels& decoded, const uint8_t* tables, uint8_t* between,
                       const ResultPixels& result) {
  const Geometry& g = picture.geometry;
  const int64_t origin = offset_of(picture, decoded, 0, 0);
  const uint8_t* const down_numbers = tables + numbers_of(picture.across);
  const uint8_t* const weights = down_numbers + numbers_of(picture.down);
  const int64_t across_weights = int64_t{picture.across.count} * picture.across.taps * int64_t{sizeof(int16_t)};
  return {.source = decoded.first + offset_of(picture, decoded, g.source.x, g.source.y),
          .right = offset_of(picture, decoded, 1, 0) - origin,
          .down = offset_of(picture, decoded, 0, 1) - origin,
          .across = axis_task(picture.across, tables, weights),
          .along = axis_task(picture.down, down_numbers, weights + across_weights),
          .first_used = picture.first_used,
          .used = picture.used,
          .between = between,
          .result = result.first,
          .to_right = result.right,
          .to_down = result.down,
          .to_channel = result.channel,
          .width = g.window.width,
          .height = g.window.height,
          .window_x = g.window.x,
          .window_y = g.window.y,
          .flip_x = g.flip_x,
          .flip_y = g.flip_y,
          .fill = g.fill};
}

}  // namespace lockstep::image
