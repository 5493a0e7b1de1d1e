#include "lockstep/amp/rates.h"

#include <ATen/Parallel.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/linspace.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "lockstep/amp/half_convolution.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/cpu_features.h"
#include "lockstep/base/env.h"
#include "lockstep/base/file_content.h"
#include "lockstep/base/fnv.h"
#include "lockstep/base/text.h"

namespace lockstep::amp {
namespace {

constexpr int64_t kBatch = 2, kChannels = 64, kSide = 56, kFilter = 3;
constexpr int64_t kProbeSide = 14;  // of one image: a thirty-second of the work
constexpr double kSeconds = 0.3;
constexpr int kMostRounds = 9;

// A convolution and both its gradients, in one dtype.
class Work {
 public:
  Work(at::ScalarType dtype, int64_t batch, int64_t side)
      : x_(values({batch, kChannels, side, side}, dtype)),
        weight_(values({kChannels, kChannels, kFilter, kFilter}, dtype)),
        giga_operations_(3 * 2e-9 * static_cast<double>(x_.numel() * kChannels * kFilter * kFilter)) {}

  // One round; the best time counts. Throws c10::Error where libtorch can't compute in the dtype here.
  void run() {
    const Stopwatch watch;
    const at::Tensor y = at::conv2d(x_, weight_, {}, 1, 1);
    at::convolution_backward(y, x_, weight_, at::OptionalIntArrayRef(), {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1,
                             {true, true, false});
    if (rounds_++ > 0) best_ = std::min(best_, watch.seconds());  // the first chooses kernels
  }
  double rate() const { return giga_operations_ / best_; }

 private:
  static at::Tensor values(at::IntArrayRef sizes, at::ScalarType dtype) {
    return at::linspace(-1, 1, c10::multiply_integers(sizes))
        .view(sizes)
        .to(dtype)
        .contiguous(at::MemoryFormat::ChannelsLast);
  }

  at::Tensor x_, weight_;
  double giga_operations_;
  int rounds_ = 0;
  double best_ = 1e9;
};

// By a small convolution, for there are dtypes in which the real one takes seconds.
double probe(at::ScalarType dtype) {
  try {
    Work work(dtype, 1, kProbeSide);
    for (int round = 0; round < 3; ++round) work.run();
    return work.rate();
  } catch (const c10::Error&) {
    return 0;
  }
}

// The kind of CPU and the libtorch that the rates depend on.
std::string machine_key() {
  const CpuFeatures cpu = detect_cpu_features();
  return cat(cpu.model, "; amx_bf16 ", cpu.amx_bf16, " avx512_bf16 ", cpu.avx512_bf16, " avx512_fp16 ", cpu.avx512_fp16,
             " avx512 ", cpu.avx512, "; libtorch ", TORCH_VERSION);
}

std::string file_in(const std::string& folder) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "/rates-%016lx.json",
                static_cast<unsigned long>(fnv1a(kFnvSeed, machine_key())));
  return folder + name.data();
}

}  // namespace

Rates measure_rates() {
  widen_slow_half_convolutions();
  const c10::AutoGradMode no_grad(false);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  constexpr std::array kTypes = {at::kFloat, at::kBFloat16, at::kHalf};
  std::array<double, 3> rates{};
  std::vector<std::pair<size_t, Work>> works;  // of those that may be the fastest
  for (size_t i = 0; i < kTypes.size(); ++i) {
    rates[i] = probe(kTypes[i]);
    if (rates[i] > rates[0] / 2) works.emplace_back(i, Work(kTypes[i], kBatch, kSide));
  }
  const Stopwatch watch;
  for (int round = 0; round < kMostRounds && (round < 2 || watch.seconds() < kSeconds); ++round) {
    for (auto& work : works) work.second.run();
  }
  for (const auto& [i, work] : works) rates[i] = work.rate();
  at::set_num_threads(threads);
  return {rates[0], rates[1], rates[2]};
}

std::string cache_folder() {
  if (const auto cache = env("XDG_CACHE_HOME")) return *cache + "/lockstep";
  const auto home = env("HOME");
  return home ? *home + "/.cache/lockstep" : "";
}

std::optional<Rates> read_rates(const std::string& folder) {
  if (folder.empty()) return std::nullopt;
  const auto file =
      nlohmann::json::parse(file_content(file_in(folder)).value_or(""), nullptr, /*allow_exceptions=*/false);
  if (!file.is_object() || file.value("machine", nlohmann::json()) != machine_key()) return std::nullopt;
  const auto rate = [&file](const char* name) {
    const auto value = file.value(name, nlohmann::json());
    return value.is_number() ? value.get<double>() : -1;
  };
  const Rates rates{rate("fp32"), rate("bf16"), rate("fp16")};
  if (!(rates.fp32 > 0) || rates.bf16 < 0 || rates.fp16 < 0) return std::nullopt;
  return rates;
}

bool write_rates(const std::string& folder, const Rates& rates) {
  if (folder.empty()) return false;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string path = file_in(folder), beside = cat(path, '.', getpid());
  {
    std::ofstream out(beside);
    out << nlohmann::ordered_json(
               {{"machine", machine_key()}, {"fp32", rates.fp32}, {"bf16", rates.bf16}, {"fp16", rates.fp16}})
               .dump(1, ' ', false, nlohmann::json::error_handler_t::replace)
        << '\n';
    out.close();
    if (out && std::rename(beside.c_str(), path.c_str()) == 0) return true;
  }
  std::remove(beside.c_str());
  return false;
}

Rates rates_of_this_machine() {
  const std::string folder = cache_folder();
  if (const auto known = read_rates(folder)) return *known;
  const Rates rates = measure_rates();
  write_rates(folder, rates);
  return rates;
}

}  // namespace lockstep::amp
