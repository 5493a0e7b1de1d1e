// .pt files: a zip archive around a pickle.
#include <libdeflate.h>

#include <cstring>

#include "checkpoints.h"

using namespace lockstep;

namespace {

template <typename T>
T number_in(std::span<const uint8_t> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Puts the checksum of one stored entry right, in its directory entry and in its own header, if all lies in the file.
void repair_entry(std::span<uint8_t> bytes, size_t entry) {
  const size_t length = number_in<uint32_t>(bytes, entry + 20), header = number_in<uint32_t>(bytes, entry + 42);
  if (header > bytes.size() || bytes.size() - header < 30) return;
  const size_t content =
      header + 30 + number_in<uint16_t>(bytes, header + 26) + number_in<uint16_t>(bytes, header + 28);
  if (content > bytes.size() || length > bytes.size() - content) return;
  const uint32_t checksum = libdeflate_crc32(0, bytes.data() + content, length);
  std::memcpy(bytes.data() + entry + 16, &checksum, sizeof checksum);
  std::memcpy(bytes.data() + header + 14, &checksum, sizeof checksum);
}

// Of all entries of an archive whose end record is the file's end, as torch.save and write_pt() have it.
void repair(std::span<uint8_t> bytes) {
  constexpr size_t kEnd = 22, kEntry = 46;
  if (bytes.size() < kEnd) return;
  size_t at = number_in<uint32_t>(bytes, bytes.size() - 6);
  for (int left = number_in<uint16_t>(bytes, bytes.size() - 12); left > 0; --left) {
    if (at > bytes.size() || bytes.size() - at < kEntry) return;
    repair_entry(bytes, at);
    size_t length = kEntry;
    for (const size_t field : {28, 30, 32}) length += number_in<uint16_t>(bytes, at + field);  // name, extra, comment
    at += length;
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return fuzz::mutate(data, size, most, seed, repair);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::read_as_checkpoint({data, size});
}
