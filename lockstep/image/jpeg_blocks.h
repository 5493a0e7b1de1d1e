// Decodes the Huffman codes of blocks of a baseline JPEG, in code for each instruction set.
#pragma once

#include <cstdint>

#include "lockstep/image/huffman_table.h"

namespace lockstep::image {

// The bits of a scan between two markers, and the place in them.
struct JpegBits {
  uint64_t bits = 0;              // the next ones; the first is the highest
  int count = 0;                  // how many of them are there
  const uint8_t* next = nullptr;  // the byte after them
};

// What is needed to decode a block of an MCU.
struct JpegBlock {
  const HuffmanTable *dc = nullptr, *ac = nullptr;
  int* last_dc = nullptr;  // of the blocks before, of the same channel
  bool is_wanted = true;   // else its channel is not
};

// Decodes `count` blocks, of an MCU, into zeros: coefficients in the order of rows. Passes over those that are not
// wanted, and over all where `blocks` is null. False: no JPEG's encoder writes such bits. May read 2.5 KB from
// JpegBits::next on.
bool decode_jpeg_blocks(const JpegBlock* from, int count, JpegBits& in, int16_t* const* blocks);

}  // namespace lockstep::image
