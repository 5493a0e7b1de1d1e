// A protobuf message in its wire form, field by field (protobuf.dev: Encoding). libtorch brings a protobuf of its own,
// so none is linked.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

// Numbers are those of the message's fields. Fields are written in the order of the calls, defaults too. One thread.
class ProtoWriter {
 public:
  ProtoWriter& whole(int field, int64_t value) {  // int32, int64, enum, bool
    tag(field, kVarint);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  ProtoWriter& real(int field, double value) {
    tag(field, kFixed64);
    little_endian(std::bit_cast<uint64_t>(value), 8);
    return *this;
  }
  ProtoWriter& real32(int field, float value) {
    tag(field, kFixed32);
    little_endian(std::bit_cast<uint32_t>(value), 4);
    return *this;
  }
  ProtoWriter& text(int field, std::string_view value) {  // string, bytes
    begin(field, value.size());
    bytes_ += value;
    return *this;
  }
  // The front of a field of type string, bytes or message; the caller writes its `length` bytes behind this message.
  ProtoWriter& begin(int field, size_t length) {
    tag(field, kLength);
    varint(length);
    return *this;
  }
  ProtoWriter& message(int field, const ProtoWriter& value) { return text(field, value.bytes_); }
  ProtoWriter& reals(int field, std::span<const double> values) {  // packed
    tag(field, kLength);
    varint(values.size_bytes());
    for (const double value : values) little_endian(std::bit_cast<uint64_t>(value), 8);
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  enum Wire : uint64_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

  void tag(int field, Wire wire) { varint(static_cast<uint64_t>(field) << 3 | wire); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  void little_endian(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }

  std::string bytes_;
};

}  // namespace lockstep
