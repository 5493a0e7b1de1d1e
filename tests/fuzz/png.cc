// PNGs, as images and as masks.
#include <libdeflate.h>

#include "images.h"

using namespace lockstep;

namespace {

// Puts the checksums of all whole chunks right.
void repair(std::span<uint8_t> bytes) {
  const auto number_at = [&](size_t at) {
    return uint32_t{bytes[at]} << 24 | uint32_t{bytes[at + 1]} << 16 | uint32_t{bytes[at + 2]} << 8 | bytes[at + 3];
  };
  for (size_t at = 8; at + 12 <= bytes.size();) {
    const size_t length = number_at(at);
    if (length > bytes.size() - at - 12) return;
    const uint32_t sum = libdeflate_crc32(0, bytes.data() + at + 4, length + 4);
    for (size_t i = 0; i < 4; ++i) bytes[at + 8 + length + i] = static_cast<uint8_t>(sum >> (24 - 8 * i));
    at += 12 + length;
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return fuzz::mutate(data, size, most, seed, repair);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::ImageFuzzer fuzzer(image::Format::kPng);
  return fuzzer.run({data, size});
}
