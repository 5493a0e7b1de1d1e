// The options of the commands other than train, and what each line of a command's help is made from.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/config/train_options.h"

namespace lockstep::config {

struct EvalOptions {
  std::string recipe;
  std::string load;          // never empty
  std::string data;          // empty: made on the spot
  std::optional<Arch> arch;  // this and size: unset, the checkpoint's
  std::optional<int> size;
  int nproc = 1;
  int threads = 0;  // 0: default_threads()
  std::optional<int> batch_size;
  AmpLevel amp = AmpLevel::kO0;
  bool json = false;
};

enum class BenchKind { kStep, kAllreduce, kOptimizer, kPrecision, kStartup, kData };
constexpr auto words(BenchKind) {
  return std::to_array<std::string_view>({"step", "allreduce", "optimizer", "precision", "startup", "data"});
}
enum class BenchModel { kLenet, kResnet18, kUnet, kMobilenetV2 };
constexpr auto words(BenchModel) {
  return std::to_array<std::string_view>({"lenet", "resnet18", "unet", "mobilenet_v2"});
}
enum class BenchType { kFp32, kBf16, kFp16 };
constexpr auto words(BenchType) { return std::to_array<std::string_view>({"fp32", "bf16", "fp16"}); }
enum class BenchOptimizer { kSgd, kAdamW };
constexpr auto words(BenchOptimizer) { return std::to_array<std::string_view>({"sgd", "adamw"}); }

// Each kind reads the fields that its table names.
struct BenchOptions {
  BenchKind kind = BenchKind::kStep;
  std::string data;  // bench data: the folder
  BenchModel model = BenchModel::kResnet18;
  int size = 224;  // pixels a side
  int batch_size = 32;
  BenchType dtype = BenchType::kFp32;
  AmpLevel amp = AmpLevel::kO0;
  bool channels_last = true;
  BenchOptimizer optimizer = BenchOptimizer::kSgd;
  int nproc = 1;
  int threads = 0;        // 0: default_threads()
  bool no_comm = false;   // leave the all-reduce out
  bool overhead = false;  // with and without it by turns; the update unsharded on both sides
  BackendKind backend = BackendKind::kAuto;
  std::vector<int64_t> sizes;  // bytes, multiples of 4; empty: 1 KiB to 100 MiB
  Algorithm algorithm = Algorithm::kFold;
  int elements = 64 << 10;  // thousands (1024) of weights, for the caches to hold none
  CommType comm_dtype = CommType::kFp32;
  std::string interfaces;  // "eth0,eth1"; empty: the one that reaches the rendezvous
  int timeout = 600;       // seconds that a rank waits for the others
  bool json = false;
};

struct DoctorOptions {
  bool json = false;
};

struct InspectOptions {
  std::string file;
  bool json = false;
};

// Any program under the environment that torchrun sets.
struct LaunchOptions {
  int nproc = 1;
  int threads = 0;                   // OMP_NUM_THREADS; 0: default_threads()
  std::string log_dir;               // empty: no log files
  std::vector<std::string> program;  // with its arguments; never empty
};

OptionTable<EvalOptions> eval_table();
OptionTable<BenchOptions> bench_table(BenchKind kind);
OptionTable<InspectOptions> inspect_table();
OptionTable<LaunchOptions> launch_table();
OptionTable<DoctorOptions> doctor_table();

// "4096", "1K", "1M,100M": bytes, with binary prefixes. Throws ConfigError unless each is a multiple of 4 from 4 bytes
// to 64 GiB.
std::vector<int64_t> read_sizes(std::string_view name, std::string_view text);
std::string write_sizes(const std::vector<int64_t>& sizes);

}  // namespace lockstep::config
