#include "spoil.h"

#include <cstdint>

#include "lockstep/base/error.h"

namespace lockstep::e2e {
namespace {

std::string little_endian(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

uint64_t number_at(const std::string& text, size_t at, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i) value = value << 8 | static_cast<uint8_t>(text.at(at + static_cast<size_t>(i)));
  return value;
}

// As zip and gzip have it.
uint32_t crc32(const std::string& bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320u : 0u);
  }
  return ~crc;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

std::string with_other_names(std::string checkpoint, const std::string& from, const std::string& to) {
  // A local header is 30 bytes, then come the name, the extra field and, stored, the content.
  constexpr size_t kHeader = 30;
  const std::string name = "archive/data.pkl";
  const size_t named = checkpoint.find(name);
  if (named < kHeader || named == std::string::npos) throw BugError("with_other_names: no data.pkl");
  const size_t start = named + name.size() + number_at(checkpoint, named - 2, 2);
  // The size may be in a descriptor behind the content; the central directory always has it.
  const size_t listed = checkpoint.rfind(name);
  const size_t size = number_at(checkpoint, listed - 22, 4);
  std::string pickle = checkpoint.substr(start, size);
  const std::string old_crc = little_endian(crc32(pickle), 4);
  replace_all(pickle, from, to);
  checkpoint.replace(start, size, pickle);
  replace_all(checkpoint, old_crc, little_endian(crc32(pickle), 4));
  return checkpoint;
}

std::string broken_gzip(const std::string& bytes, unsigned promised) {
  const std::string header("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", 10);
  return header + '\x01' + little_endian(promised, 2) + little_endian(~promised & 0xffffu, 2) + bytes;
}

}  // namespace lockstep::e2e
