// safetensors files; where the file begins with a brace, the index of sharded ones, whose shards are not there.
#include <algorithm>
#include <cstring>

#include "checkpoints.h"
#include "lockstep/checkpoint/formats/safetensors_index.h"
#include "lockstep/checkpoint/formats/safetensors_reader.h"

using namespace lockstep;

// The header's length is put right for a header that ends with the last brace.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return fuzz::mutate(data, size, most, seed, [](std::span<uint8_t> bytes) {
    const size_t end = std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).rfind('}');
    if (end == std::string_view::npos || end < 8 || bytes[0] == '{') return;
    const uint64_t length = end + 1 - 8;
    std::memcpy(bytes.data(), &length, sizeof length);
  });
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view start(reinterpret_cast<const char*>(data), std::min<size_t>(size, 64));
  if (checkpoint::is_safetensors(start) || !checkpoint::is_safetensors_index(start)) {
    return fuzz::read_as_checkpoint({data, size});
  }
  static fuzz::FileInMemory file;
  file.hold({data, size});
  try {
    checkpoint::read_checkpoint(file.path());
    fuzz::finding("an index whose shards are not there was read");
  } catch (const DataError& error) {
    fuzz::check(error.what() == shown(error.what()), "an error of several lines");
  }
  return 0;
}
