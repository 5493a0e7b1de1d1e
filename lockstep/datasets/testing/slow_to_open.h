// For tests: an image that takes a while to open.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/datasets/image_source.h"

namespace lockstep::datasets::testing {

// An image in memory, which is its own mask too if it `has_masks`. Naming it, which is part of opening it, takes a
// while.
class SlowToOpen final : public ImageSource {
 public:
  static constexpr int kOpenMs = 30;

  explicit SlowToOpen(std::string png, bool has_masks = false) : png_(std::move(png)), has_masks_(has_masks) {}

  int64_t size() const override { return 1; }
  Encoded read(int64_t, std::vector<uint8_t>&) const override {
    return {{reinterpret_cast<const uint8_t*>(png_.data()), png_.size()}};
  }
  bool has_masks() const override { return has_masks_; }
  EncodedPair read_pair(int64_t, PairMemory& memory) const override {
    return {read(0, memory.image), read(0, memory.mask)};
  }
  std::string name_of(int64_t) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(kOpenMs));
    return "slow.png";
  }
  std::string fingerprint() const override { return text(); }
  std::string text() const override { return "slow"; }
  int64_t class_of(int64_t) const override { return 0; }

 private:
  std::string png_;
  bool has_masks_;
};

}  // namespace lockstep::datasets::testing
