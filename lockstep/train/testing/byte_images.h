// For tests: images of random bytes that come as they are, beside a table, or as the table's numbers.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/philox.h"
#include "lockstep/data/dataset.h"

namespace lockstep::train::testing_support {

class ByteImages final : public data::Dataset {
 public:
  static constexpr int64_t kSide = 8;
  static constexpr int64_t kSampleBytes = 3 * kSide * kSide * 4 + 8;  // with numbers of 4 bytes, and the target

  ByteImages(int64_t size, bool as_bytes) : size_(size), as_bytes_(as_bytes) {
    table_ = at::empty({3, 256});
    for (int64_t i = 0; i < table_.numel(); ++i) {
      table_.mutable_data_ptr<float>()[i] =
          (static_cast<float>(i % 256) / 255 - 0.45f) / (0.2f + 0.1f * float(i / 256));
    }
  }

  int64_t size() const override { return size_; }
  std::vector<data::Field> fields() const override {
    return {{.name = "data",
             .dtype = as_bytes_ ? at::kByte : at::kFloat,
             .shape = {3, kSide, kSide},
             .channels_last = true,
             .table = as_bytes_ ? table_ : at::Tensor()},
            {.name = "target", .dtype = at::kLong, .shape = {}}};
  }
  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, data::ReadStats&) const override {
    RandomStream random = draw.stream(0);
    const auto* table = table_.const_data_ptr<float>();
    for (int64_t i = 0; i < rows[0].numel(); ++i) {  // as they lie in memory: height, width, channels
      const uint32_t byte = (random.below(256) + static_cast<uint32_t>(index % 3) * 16) % 256;
      if (as_bytes_) {
        rows[0].mutable_data_ptr<uint8_t>()[i] = static_cast<uint8_t>(byte);
      } else {
        rows[0].mutable_data_ptr<float>()[i] = table[i % 3 * 256 + byte];
      }
    }
    *rows[1].mutable_data_ptr<int64_t>() = index % 3;
  }
  std::string fingerprint() const override { return "byte images"; }
  std::string description() const override { return "byte images"; }
  int64_t classes() const override { return 3; }

 private:
  int64_t size_;
  bool as_bytes_;
  at::Tensor table_;
};

}  // namespace lockstep::train::testing_support
