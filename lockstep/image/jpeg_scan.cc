#include "lockstep/image/jpeg_scan.h"

#include <jpegint.h>

#include <algorithm>
#include <cstring>

namespace lockstep::image {
namespace {

constexpr int kMostSize = 15;  // bits of a value

HuffmanCodes codes_of(const JHUFF_TBL& table) {
  HuffmanCodes codes;
  size_t count = 0;
  for (size_t length = 1; length < codes.counts.size(); ++length) {
    codes.counts[length] = table.bits[length];
    count += table.bits[length];
  }
  std::copy_n(table.huffval, std::min(count, codes.symbols.size()), codes.symbols.begin());
  return codes;
}

bool is_known(jpeg_decompress_struct& jpeg) {
#if LIBJPEG_TURBO_VERSION_NUMBER >= 3000000
  if (jpeg.master->lossless) return false;
#endif
  return jpeg.progressive_mode == FALSE && jpeg.arith_code == FALSE && jpeg_has_multiple_scans(&jpeg) == FALSE &&
         jpeg.data_precision == BITS_IN_JSAMPLE && jpeg.unread_marker == 0;
}

}  // namespace

// Most files have the tables of the standard, or those of the file before.
const HuffmanTable* JpegScan::table_of(const JHUFF_TBL& from, size_t slot, bool is_ac) {
  const HuffmanCodes codes = codes_of(from);
  const auto is_size = [](int symbol) { return symbol <= kMostSize; };
  if (!is_ac && !std::all_of(codes.symbols.begin(), codes.symbols.end(), is_size)) return nullptr;
  auto& table = tables_[slot];
  if (table != nullptr && table->codes == codes) return table.get();
  if (table == nullptr) table = std::make_unique<HuffmanTable>();
  table->build(codes, is_ac);
  return table.get();
}

bool JpegScan::set_up_blocks(const jpeg_decompress_struct& jpeg) {
  block_count_ = jpeg.blocks_in_MCU;
  for (int i = 0; i < block_count_; ++i) {
    const auto channel = static_cast<size_t>(jpeg.MCU_membership[i]);
    const jpeg_component_info& info = *jpeg.cur_comp_info[channel];
    const auto dc = static_cast<size_t>(info.dc_tbl_no), ac = static_cast<size_t>(info.ac_tbl_no);
    const bool has_tables = dc < NUM_HUFF_TBLS && ac < NUM_HUFF_TBLS && jpeg.dc_huff_tbl_ptrs[dc] != nullptr &&
                            jpeg.ac_huff_tbl_ptrs[ac] != nullptr;
    if (!has_tables) return false;
    blocks_[static_cast<size_t>(i)] = {.dc = table_of(*jpeg.dc_huff_tbl_ptrs[dc], dc, false),
                                       .ac = table_of(*jpeg.ac_huff_tbl_ptrs[ac], NUM_HUFF_TBLS + ac, true),
                                       .last_dc = &last_dc_[channel],
                                       .is_wanted = info.component_needed == TRUE};
    if (blocks_[static_cast<size_t>(i)].dc == nullptr) return false;
  }
  return true;
}

bool JpegScan::start(jpeg_decompress_struct& jpeg, JDIMENSION first, JDIMENSION last, DecodeMcu decode_mcu) {
  if (!is_known(jpeg) || !set_up_blocks(jpeg)) return false;
  first_ = first;
  last_ = last;
  column_ = 0;
  columns_ = jpeg.MCUs_per_row;
  restart_interval_ = to_restart_ = jpeg.restart_interval;
  restarts_ = 0;
  source_ = jpeg.src->next_input_byte;
  source_end_ = source_ + jpeg.src->bytes_in_buffer;
  begin_segment();
  jpeg.entropy->decode_mcu = decode_mcu;
  return true;
}

void JpegScan::begin_segment() {
  last_dc_.fill(0);
  bits_ = {.next = copy_.data()};
  end_ = copy_.data();
  at_marker_ = false;
  more();
}

// Copies up to a chunk, without the zeros that are stuffed behind bytes of 0xff. Zeros follow the last byte before the
// marker, so that an MCU may be decoded beyond it.
void JpegScan::more() {
  uint8_t* to = std::copy(bits_.next, end_, copy_.data());
  bits_.next = copy_.data();
  const uint8_t* const full = copy_.data() + kChunk + kMargin;
  while (to < full && !at_marker_) {
    const auto room = static_cast<size_t>(std::min(full - to, source_end_ - source_));
    const auto* const mark = static_cast<const uint8_t*>(std::memchr(source_, 0xff, room));
    const size_t plain = mark == nullptr ? room : static_cast<size_t>(mark - source_);
    std::memcpy(to, source_, plain);
    to += plain;
    source_ += plain;
    if (mark != nullptr && source_end_ - source_ >= 2 && source_[1] == 0) {
      *to++ = 0xff;
      source_ += 2;
    } else {
      at_marker_ = mark != nullptr || source_ == source_end_;
    }
  }
  end_ = to;
  low_ = at_marker_ ? full + kMargin : end_ - kMargin;
  if (at_marker_) std::memset(to, 0, kMargin);
}

// The bits of a copy that have not been taken; below 0 if some were that are not there.
int64_t JpegScan::bits_left() const { return 8 * static_cast<int64_t>(end_ - bits_.next) + bits_.count; }

// Goes on behind the next restart marker, if it is there, and the right one.
bool JpegScan::restart() {
  constexpr uint8_t kFirst = 0xd0;
  const bool is_there =
      at_marker_ && bits_left() < 8 && source_end_ - source_ >= 2 && source_[1] == kFirst + restarts_ % 8;
  if (!is_there) return false;
  source_ += 2;
  ++restarts_;
  to_restart_ = restart_interval_;
  begin_segment();
  return true;
}

bool JpegScan::decode(JBLOCKROW* blocks) {
  if (restart_interval_ > 0 && to_restart_-- == 0) {
    if (!restart()) return false;
    --to_restart_;
  }
  if (bits_.next > low_) more();
  if (column_ < first_ || column_ > last_) blocks = nullptr;
  if (++column_ == columns_) column_ = 0;
  std::array<int16_t*, D_MAX_BLOCKS_IN_MCU> to;
  for (int i = 0; blocks != nullptr && i < block_count_; ++i) to[static_cast<size_t>(i)] = *blocks[i];
  return decode_jpeg_blocks(blocks_.data(), block_count_, bits_, blocks == nullptr ? nullptr : to.data()) &&
         bits_left() >= 0;
}

}  // namespace lockstep::image
