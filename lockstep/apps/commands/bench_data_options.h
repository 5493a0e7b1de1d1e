// The options of `bench data DIR`.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "lockstep/config/option_set.h"
#include "lockstep/datasets/options/image_options.h"

namespace lockstep::apps {

enum class BenchType { kFp32, kBf16, kFp16 };
constexpr auto words(BenchType) {
  return std::to_array<config::Word<BenchType>>(
      {{BenchType::kFp32, "fp32"}, {BenchType::kBf16, "bf16"}, {BenchType::kFp16, "fp16"}});
}

struct BenchDataOptions {
  std::string path;
  std::optional<int> size;  // pixels a side, of images with masks the shorter side; unset: as training has it
  int batch_size = 64;
  std::optional<int> workers;  // threads that load, also called --threads; unset: one a core
  std::optional<int> threads;
  std::optional<int> epochs;       // to measure, each as a round; unset: `seconds`, in five rounds
  std::optional<double> seconds;   // unset: 5
  std::optional<BenchType> dtype;  // of images; unset: fp32
  bool channels_last = true;       // how images lie in memory
  datasets::ImageOptions images;

  void declare(config::OptionSet& options);
  // Throws ConfigError for options of which one says what another one says too.
  void check() const;
};

}  // namespace lockstep::apps
