// Changes gzip data in what they unpack to, three times of four: else every change would break the checksum alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "fuzz.h"
#include "lockstep/datasets/files/gzip.h"
#include "lockstep/datasets/files/testing/files.h"

namespace lockstep::fuzz {

inline size_t mutate_gzip(uint8_t* data, size_t size, size_t most, unsigned seed) {
  constexpr uint64_t kMostUnpacked = 1 << 20;
  const std::span<const uint8_t> packed(data, size);
  if (!datasets::is_gzip(packed) || seed % 4 == 0) return LLVMFuzzerMutate(data, size, most);
  std::string repacked;
  try {
    const datasets::Bytes bytes = datasets::gunzip(packed, kMostUnpacked, kMostUnpacked, "seed");
    std::string text(bytes.span().begin(), bytes.span().end());
    text.resize(2 * text.size() + 64);
    text.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(text.data()), bytes.size(), text.size()));
    repacked = datasets::testing::gzip(text, 1);
  } catch (const DataError&) {  // it has been damaged before
  }
  if (repacked.empty() || repacked.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::copy(repacked.begin(), repacked.end(), data);
  return repacked.size();
}

}  // namespace lockstep::fuzz
