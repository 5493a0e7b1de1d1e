// A Huffman table of a JPEG, laid out so that one look at the next bits decodes a symbol and the value behind it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep::image {

// A table as a file gives it.
struct HuffmanCodes {
  std::array<uint8_t, 17> counts{};    // [length]: the codes of so many bits; [0] is not used
  std::array<uint8_t, 256> symbols{};  // by ascending code: run << 4 | size of an AC table, the size of a DC table
  bool operator==(const HuffmanCodes&) const = default;
};

// What the next bits say. Its lowest byte is the number of bits that they are, the next one how many coefficients
// further the value belongs, and the upper half the value.
using HuffmanEntry = uint32_t;

constexpr uint32_t kHuffmanLong = 0x80;   // in the lowest byte: the code, or its value, goes beyond the looked-up bits
constexpr uint32_t kHuffmanEnd = 64;      // further: the block ends here
constexpr uint32_t kHuffmanInvalid = 96;  // further: no code begins like that

// What the next bits say of several coefficients whose values nobody wants. Its lowest byte is the number of bits, the
// next seven bits how many coefficients further they lead; the highest bit says that the block ends there.
using HuffmanSkip = uint16_t;

constexpr uint32_t kSkipEnd = 0x8000;
constexpr uint32_t kSkipNothing = 127;  // further: the bits are to be looked up symbol by symbol

struct HuffmanTable {
  static constexpr int kBits = 11;

  // Codes must be a legal tree, as libjpeg checks it, and sizes at most 15.
  void build(const HuffmanCodes& from, bool is_ac);

  // The whole entry of what begins with `bits`, the next bit being the highest, where `entry` is kHuffmanLong.
  HuffmanEntry resolve(HuffmanEntry entry, uint64_t bits) const;

  std::array<HuffmanEntry, size_t{1} << kBits> entries;
  std::array<HuffmanSkip, size_t{1} << kBits> skips;  // of an AC table
  HuffmanCodes codes;
  bool is_ac = false;
  std::array<uint32_t, 17> limits;  // [length]: codes of 16 bits below it are of at most that length
  std::array<int, 17> offsets;      // [length]: a code's place in the symbols, less the code

 private:
  HuffmanEntry entry_of(uint32_t symbol, int length, uint64_t bits) const;
  void fill_entries(uint32_t symbol, int length, uint32_t code);
  void fill_limits();
  void fill_skips();
};

}  // namespace lockstep::image
