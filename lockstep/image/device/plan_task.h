// The resizing of a picture's row as a task, on whatever device.
#pragma once

#include <cstdint>

#include "lockstep/image/device/picture_row.h"
#include "lockstep/image/device/resize_task.h"

namespace lockstep::image {

// A JPEG's pixels as they are stored, red, green and blue side by side. In the memory of whoever computes.
struct DecodedPixels {
  const uint8_t* first = nullptr;
  int64_t pixel = 3, row = 0;  // steps, in bytes
};

// A result in its batch. Steps are bytes.
struct ResultPixels {
  uint8_t* first = nullptr;
  int64_t right = 0, down = 0, channel = 0;
};

// The bytes that ResizeTask::between needs.
int64_t between_bytes(const PictureRow& picture);

// The task, in which `tables` is where the picture's tables lie for whoever computes, at a multiple of 4.
ResizeTask resize_task(const PictureRow& picture, const DecodedPixels& decoded, const uint8_t* tables, uint8_t* between,
                       const ResultPixels& result);

}  // namespace lockstep::image
