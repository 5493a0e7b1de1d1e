// Reads event files back, as far as tests look at them.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/track/event_file.h"

namespace lockstep::track::testing_support {

// A message's fields by their numbers; numbers of any kind as their bits.
struct Message {
  std::map<int, std::vector<uint64_t>> numbers;
  std::map<int, std::vector<std::string>> texts;

  explicit Message(std::string_view bytes) {
    while (!bytes.empty()) {
      const uint64_t tag = varint(bytes);
      const int field = static_cast<int>(tag >> 3), wire = static_cast<int>(tag & 7);
      if (wire == 2) {
        texts[field].emplace_back(take(bytes, varint(bytes)));
      } else {
        numbers[field].push_back(wire == 0 ? varint(bytes) : fixed(bytes, wire == 1 ? 8 : 4));
      }
    }
  }
  bool has(int field) const { return numbers.contains(field) || texts.contains(field); }
  const std::string& text(int field) const { return texts.at(field).at(0); }
  Message message(int field) const { return Message(text(field)); }
  int64_t whole(int field) const { return numbers.contains(field) ? static_cast<int64_t>(numbers.at(field)[0]) : 0; }
  double real(int field) const { return std::bit_cast<double>(numbers.at(field).at(0)); }
  float real32(int field) const { return std::bit_cast<float>(static_cast<uint32_t>(numbers.at(field).at(0))); }
  std::vector<double> reals(int field) const {
    std::vector<double> all(text(field).size() / sizeof(double));
    std::memcpy(all.data(), text(field).data(), all.size() * sizeof(double));
    return all;
  }

 private:
  static std::string_view take(std::string_view& bytes, uint64_t count) {
    if (bytes.size() < count) throw std::runtime_error("a message is cut off");
    const std::string_view taken = bytes.substr(0, count);
    bytes.remove_prefix(count);
    return taken;
  }
  static uint64_t fixed(std::string_view& bytes, size_t count) {
    uint64_t value = 0;
    std::memcpy(&value, take(bytes, count).data(), count);
    return value;
  }
  static uint64_t varint(std::string_view& bytes) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(bytes, 1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
};

// The events of a file. Throws std::runtime_error for a frame that is damaged.
inline std::vector<Message> read_events(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string file((std::istreambuf_iterator<char>(in)), {});
  std::vector<Message> events;
  for (size_t at = 0; at < file.size();) {
    uint64_t size = 0;
    if (file.size() - at < 16) throw std::runtime_error(path + ": cut off");
    std::memcpy(&size, file.data() + at, sizeof(size));
    const std::string record = file.substr(at + 12, size);
    if (file.compare(at, size + 16, framed(record)) != 0) throw std::runtime_error(path + ": damaged");
    events.emplace_back(record);
    at += size + 16;
  }
  return events;
}

// One value of a summary, and its step.
struct SummaryValue {
  int64_t step = 0;
  std::string tag;
  Message value;
};
inline std::vector<SummaryValue> summary_values(const std::vector<Message>& events) {
  std::vector<SummaryValue> all;
  for (const Message& event : events) {
    if (!event.has(5)) continue;
    const Message summary = event.message(5);
    if (!summary.has(1)) continue;
    for (const std::string& bytes : summary.texts.at(1)) {
      Message value(bytes);
      std::string tag = value.text(1);
      all.push_back({event.whole(2), std::move(tag), std::move(value)});
    }
  }
  return all;
}

}  // namespace lockstep::track::testing_support
