// The two passes of resizing, in vector code. All sums are of integers, so that every instruction set gives the same
// bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lockstep/image/axis.h"

namespace lockstep::image {

// Rows of pixels in memory.
template <typename Byte>
struct RowsOf {
  Byte* first = nullptr;
  ptrdiff_t stride = 0;  // bytes; below zero from the last row up
};

struct ResizePass {
  RowsOf<const uint8_t> from;
  RowsOf<uint8_t> to;
  const Axis& axis;
  int begin = 0, count = 0;  // the pixels that are wanted, counted from axis.begin
  int origin = 0;            // what is added to a tap for its place in `from`, in pixels or rows
  int other = 0;             // the other axis: rows, or bytes a row
  bool flip = false;         // writes the last pixel first
};

// Resizes each of `other` rows of pixels of 4 bytes, or of 1 byte. Rows of `from` may be read 16 bytes past their end.
void resize_colour_rows(const ResizePass& pass);
void resize_grey_rows(const ResizePass& pass);

// Resizes columns, of `other` bytes side by side. Rows may be read and written up to the next multiple of 64 bytes.
void resize_columns(const ResizePass& pass);

}  // namespace lockstep::image
