// The command `bench KIND [options]`: the kinds of measurement, and the options of each.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/amp/options/precision_options.h"
#include "lockstep/apps/commands/bench_checkpoint_options.h"
#include "lockstep/apps/commands/bench_data_options.h"
#include "lockstep/apps/commands/bench_pipeline_options.h"
#include "lockstep/config/option_set.h"
#include "lockstep/parallel/options/parallel_options.h"
#include "lockstep/train/options/train_options.h"
#include "lockstep/world/options/backend_options.h"

namespace lockstep::apps {

enum class BenchKind { kStep, kAllreduce, kOptimizer, kPrecision, kStartup, kData, kCheckpoint, kPipeline, kForms };
constexpr auto words(BenchKind) {
  return std::to_array<config::Word<BenchKind>>({{BenchKind::kStep, "step"},
                                                 {BenchKind::kAllreduce, "allreduce"},
                                                 {BenchKind::kOptimizer, "optimizer"},
                                                 {BenchKind::kPrecision, "precision"},
                                                 {BenchKind::kStartup, "startup"},
                                                 {BenchKind::kData, "data"},
                                                 {BenchKind::kCheckpoint, "checkpoint"},
                                                 {BenchKind::kPipeline, "pipeline"},
                                                 {BenchKind::kForms, "forms"}});
}

// The networks of bench step, as the worker's table has them.
constexpr auto kBenchModels =
    std::to_array<std::string_view>({"alexnet", "lenet", "resnet18", "resnet50", "unet", "mobilenet_v2"});

// fold: the product's. ring: the usual ring all-reduce, which gives other bits at every number of processes.
// The forms of parallel training that bench forms has.
constexpr auto kBenchForms =
    std::to_array<std::string_view>({"ddp", "sharded", "dp", "pipeline", "pipeline-ddp", "tensor", "server"});
constexpr auto kBenchAlgorithms = std::to_array<std::string_view>({"fold", "ring"});

// Each kind has the options of its own declare function.
struct BenchOptions {
  BenchKind kind = BenchKind::kStep;
  BenchDataOptions loading;  // bench data: all of it; bench step: the folder, the workers, the seconds; pipeline: these
  std::string model = "resnet18";
  int size = 224;  // pixels a side
  int batch_size = 32;
  BenchType dtype = BenchType::kFp32;
  amp::AmpLevel amp = amp::AmpLevel::kO0;
  bool channels_last = true;
  std::string optimizer = "sgd";
  train::DeviceChoice device;
  bool deterministic = false;  // as `lockstep train` is by default
  bool prefetch = true;        // --data: a batch is copied to a GPU while the one before it is computed
  train::DecodeOn decode = train::DecodeOn::kHost;  // --data: who decodes JPEGs
  parallel::ProcessOptions processes;
  std::string form = "ddp";  // bench forms
  int micro_batches = 4;     // bench forms: of the pipelines' steps
  int replicas = 1;          // bench step: of the network in each process, each with batch_size samples
  bool graph = false;        // a step's forward and backward on a GPU are one launch
  std::string trace;         // the file that some steps are recorded into, or empty
  bool no_comm = false;      // leave the all-reduce out
  bool overhead = false;     // with and without it by turns; the update unsharded on both sides
  BackendOptions comm;       // bench allreduce: auto stands for shm and Gloo where all processes are on one node
  std::string algorithm = "fold";
  std::vector<int64_t> sizes;  // bytes, multiples of 4; empty: 1 KiB to 100 MiB
  parallel::CommType comm_dtype = parallel::CommType::kFp32;
  BenchCheckpointOptions checkpoint;
  BenchPipelineOptions pipeline;
  int elements = 64 << 10;  // thousands (1024) of weights, for the caches to hold none
  bool json = false;

  // Whether bench allreduce reduces memory of GPUs: NCCL's is. Elsewhere it is the CPUs'.
  bool on_gpus() const { return comm.backend == "nccl"; }

  void declare(config::OptionSet& options);  // the options of `kind`

 private:
  void declare_step(config::OptionSet& options);
  void declare_forms(config::OptionSet& options);
  void declare_allreduce(config::OptionSet& options);
};

// Not for several threads at once.
class BenchCommand {
 public:
  // Reads the words after "bench", as Command::read() does. The first word that is a kind decides.
  std::optional<std::string> read(const std::vector<std::string>& args);

  const BenchOptions& options() const { return options_; }
  std::vector<std::string> arguments() const;

 private:
  BenchOptions options_;
  config::OptionSet rows_;
};

std::string bench_help();

// Reads sizes in bytes, with binary prefixes: "4096", "1K", "1M,100M". Throws ConfigError unless each is a multiple of
// 4 from 4 bytes to 64 GiB.
std::vector<int64_t> read_sizes(std::string_view name, std::string_view text);
std::string write_sizes(const std::vector<int64_t>& sizes);

}  // namespace lockstep::apps
