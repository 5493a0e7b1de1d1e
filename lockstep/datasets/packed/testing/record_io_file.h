// For tests: RecordIO files.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/datasets/packed/format.h"

namespace lockstep::datasets::testing {

inline constexpr uint32_t kRecordIoMagic = 0xced7230a;

inline std::string number(uint32_t value) {
  std::vector<uint8_t> bytes;
  append(bytes, value);
  return {bytes.begin(), bytes.end()};
}

// An image with its head, as MXNet's pack() makes it; `labels` of them in place of the head's own.
inline std::string image_record(float label, const std::string& image, uint32_t labels = 0) {
  std::string record = number(labels) + number(std::bit_cast<uint32_t>(labels == 0 ? label : 0.f));
  record.append(16, '\x07');  // two numbers of the image
  for (uint32_t i = 0; i < labels; ++i) record += number(std::bit_cast<uint32_t>(label));
  return record + image;
}

inline std::string part(uint32_t flag, std::string_view data) {
  std::string bytes = number(kRecordIoMagic) + number(flag << 29 | static_cast<uint32_t>(data.size()));
  bytes += data;
  return bytes.append((4 - data.size() % 4) % 4, '\0');
}

// A record, in parts where its data hold the magic at a multiple of 4.
inline std::string record_io(const std::string& data) {
  std::vector<std::string> parts(1);
  for (size_t at = 0; at < data.size(); at += 4) {
    const std::string word = data.substr(at, 4);
    if (word == number(kRecordIoMagic)) {
      parts.emplace_back();
    } else {
      parts.back() += word;
    }
  }
  if (parts.size() == 1) return part(0, data);
  std::string bytes;
  for (size_t i = 0; i < parts.size(); ++i) bytes += part(i == 0 ? 1 : i + 1 < parts.size() ? 2 : 3, parts[i]);
  return bytes;
}

}  // namespace lockstep::datasets::testing
