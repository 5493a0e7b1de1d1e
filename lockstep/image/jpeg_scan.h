// The Huffman decoding of baseline JPEGs, of which libjpeg does the rest.
//
// It is most of a JPEG's decoding. libjpeg looks at the file byte by byte, and decodes a code and its value one after
// the other. Here the bytes of the scan are first copied without what is stuffed between them. Then one look at a table
// gives a coefficient with its run and its value, or, outside of the crop, some coefficients that are passed over.
//
// libjpeg calls its decoder of MCUs (the smallest groups of blocks) by a pointer in jpegint.h, which is replaced here.
// Only sound files are decoded so. At the first sign of anything else decode() gives up, and the caller has the image
// decoded anew by libjpeg alone, which then says what is wrong with it, or reads it nevertheless.
#pragma once

#include <array>
#include <memory>

#include "lockstep/image/huffman_table.h"
#include "lockstep/image/jpeg_blocks.h"
#include "lockstep/image/jpeg_errors.h"

namespace lockstep::image {

class JpegScan {
 public:
  // Decodes the scan of `jpeg`, which has begun to decompress, in place of libjpeg, if it is of the kind that is known
  // here: the only scan of a baseline file. Only blocks of the MCU columns [first, last] are wanted. `jpeg.client_data`
  // must lead `decode_mcu` to this object. False: nothing was changed.
  using DecodeMcu = boolean (*)(j_decompress_ptr jpeg, JBLOCKROW* blocks);
  bool start(jpeg_decompress_struct& jpeg, JDIMENSION first, JDIMENSION last, DecodeMcu decode_mcu);

  // Decodes the next MCU into blocks of zeros, or passes over it (null). False: the data are not sound.
  bool decode(JBLOCKROW* blocks);

 private:
  static constexpr size_t kChunk = size_t{16} << 10;  // bytes that are copied at a time
  static constexpr size_t kMargin = 4096;             // bytes: more than the longest MCU

  const HuffmanTable* table_of(const JHUFF_TBL& from, size_t slot, bool is_ac);
  bool set_up_blocks(const jpeg_decompress_struct& jpeg);
  void begin_segment();
  void more();
  int64_t bits_left() const;
  bool restart();

  JpegBits bits_;
  std::array<JpegBlock, D_MAX_BLOCKS_IN_MCU> blocks_;
  int block_count_ = 0;
  JDIMENSION column_ = 0, columns_ = 0, first_ = 0, last_ = 0;  // of MCUs
  std::array<int, MAX_COMPS_IN_SCAN> last_dc_{};
  unsigned restart_interval_ = 0, to_restart_ = 0, restarts_ = 0;
  const uint8_t *source_ = nullptr, *source_end_ = nullptr;              // of the file, what is not copied yet
  bool at_marker_ = false;                                               // all up to the next marker is copied
  const uint8_t *end_ = nullptr, *low_ = nullptr;                        // of the copy; and where more should be copied
  std::array<std::unique_ptr<HuffmanTable>, 2 * NUM_HUFF_TBLS> tables_;  // of DC, then of AC
  std::array<uint8_t, kChunk + 2 * kMargin> copy_;
};

}  // namespace lockstep::image
