#include "lockstep/apps/commands/bench_command.h"

#include <algorithm>
#include <charconv>

#include "lockstep/apps/commands/plain_commands.h"
#include "lockstep/base/error.h"
#include "lockstep/config/tokenizer.h"

namespace lockstep::apps {
namespace {

using enum config::Effect;

struct Usage {
  BenchKind kind;
  const char* text;
};

constexpr Usage kUsages[] = {
    {BenchKind::kStep, "lockstep bench step: forward, backward, all-reduce and update of a model"},
    {BenchKind::kAllreduce,
     "lockstep bench allreduce: bytes of many sizes between processes, over shm and Gloo, or a backend that is named"},
    {BenchKind::kOptimizer, "lockstep bench optimizer: bytes that updates move, beside the fewest they can"},
    {BenchKind::kStartup, "lockstep bench startup: from the command to the end of the first step"},
    {BenchKind::kPrecision, "lockstep bench precision: fp32, bf16 and fp16 on one thread, remembered for --amp auto"},
    {BenchKind::kData, "lockstep bench data DIR: making batches of what training reads"},
    {BenchKind::kCheckpoint, "lockstep bench checkpoint: writing a model with its AdamW, and loading it"},
    {BenchKind::kPipeline,
     "lockstep bench pipeline: a network in stages, one on each process: idle time, memory, bytes"},
    {BenchKind::kForms, "lockstep bench forms: one network trained in parallel in one of several forms"},
};

int64_t read_size(std::string_view name, std::string_view text) {
  constexpr std::string_view kPrefixes = "KMG";
  constexpr int64_t kMost = int64_t{1} << 36;
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, value);
  bool sound = error == std::errc() && value > 0 && value <= kMost;
  if (sound && at + 1 == end) {
    const size_t prefix = kPrefixes.find(*at++);
    sound = prefix != std::string_view::npos && value <= kMost >> (10 * (prefix + 1));
    if (sound) value <<= 10 * (prefix + 1);
  }
  if (sound && at == end && value % 4 == 0) return value;
  throw ConfigError("--", name, ' ', text, ": expected multiples of 4 bytes up to 64G, as 4096 or 1K,1M,100M");
}

std::string kinds() { return config::either(config::word_list<BenchKind>()); }

bool is_kind(const std::string& word) {
  const auto all = config::word_list<BenchKind>();
  return std::find(all.begin(), all.end(), word) != all.end();
}

void check(const BenchOptions& options) {
  if (options.kind == BenchKind::kData) options.loading.check();
  if (options.kind == BenchKind::kAllreduce && options.on_gpus() && options.algorithm == "ring") {
    throw ConfigError("--algorithm ring: is of messages, which go over the CPUs; leave it out with --backend nccl");
  }
  if (options.kind != BenchKind::kStep) return;
  const bool loads = !options.loading.path.empty();
  if (!options.prefetch && !loads) throw ConfigError("--prefetch off: goes with --data, whose batches are copied");
  const bool encoded = options.decode == train::DecodeOn::kDevice;
  if (encoded && !loads) throw ConfigError("--decode device: goes with --data, whose JPEGs are decoded");
  if (encoded && !options.prefetch) throw ConfigError("--decode device and --prefetch off: give only one of them");
  if (options.loading.workers && !loads) throw ConfigError("--workers: goes with --data, whose images they load");
  if (options.graph && !options.device.on_gpu()) throw ConfigError("--graph on: goes with --device cuda");
  if (options.graph && (options.no_comm || options.overhead)) {
    throw ConfigError("--graph on: not with --no-comm or --overhead, whose steps are not recorded");
  }
  if (options.replicas > 1 && (loads || options.device.on_gpu())) {
    throw ConfigError("--replicas: is of one batch in memory, on the CPU; leave out --data and --device");
  }
  if (options.overhead && loads) throw ConfigError("--overhead and --data: give only one of them");
  if (options.overhead && options.no_comm) throw ConfigError("--no-comm and --overhead: give only one of them");
}

bool asks_for_help(const std::string& word) { return word == "--help" || word == "-h"; }

}  // namespace

void BenchOptions::declare_step(config::OptionSet& options) {
  options.choice("model", "", &model, {kBenchModels.begin(), kBenchModels.end()}, kNone);
  options.number("size", "PX", "pixels a side", &size, 1, 4096, kNone);
  options.number("batch-size", "N", "samples a process", &batch_size, 1, 1 << 20, kNone);
  options.number("replicas", "N", "in each process, with so many samples each, on threads (DataParallel)", &replicas, 1,
                 256, kNone);
  options.word("dtype", "of the model", &dtype, kNone);
  options.toggle("channels-last", "memory layout of images", &channels_last, kNone);
  options.choice("optimizer", "", &optimizer, {"sgd", "adamw"}, kNone);
  processes.declare(options);
  device.declare(options, kNone);
  options.toggle("deterministic", "kernels that repeat their bits, as in training (off: on a GPU the fastest)",
                 &deterministic, kNone);
  options.number("seconds", "S", "measure for so long (left out: 4)", &loading.seconds, 0.05, 1e6, kNone);
  options.flag("no-comm", "leave the all-reduce out", &no_comm, kNone);
  options.text("data", "DIR", "load images at every step (left out: one batch in memory)", &loading.path, kNone);
  options.number("workers", "N", "threads a process that load --data", &loading.workers, 0, 256, kNone);
  options.toggle("prefetch", "--data on a GPU: copy a batch while the one before it is computed", &prefetch, kNone);
  options.word("decode", "JPEGs of --data: decoded, cropped and resized by the CPU or by the device", &decode, kNone);
  options.flag("overhead", "how much longer a step takes than without communication", &overhead, kNone);
  options.toggle("graph", "on a GPU: forward and backward as one CUDA graph", &graph, kNone);
  options.text("trace", "FILE", "record three steps of rank 0 for chrome://tracing or ui.perfetto.dev", &trace, kNone);
  amp::declare_amp(options, &amp, kNone);
}

void BenchOptions::declare_forms(config::OptionSet& options) {
  options.choice("form", "", &form, {kBenchForms.begin(), kBenchForms.end()}, kNone);
  options.choice("model", "", &model, {kBenchModels.begin(), kBenchModels.end()}, kNone);
  options.number("size", "PX", "pixels a side", &size, 1, 4096, kNone);
  options.number("batch-size", "N", "samples a step, of all processes", &batch_size, 1, 1 << 20, kNone);
  options.number("micro-batches", "N", "of a pipeline's step", &micro_batches, 1, 1 << 10, kNone);
  options.number("replicas", "N", "dp: in one process", &replicas, 1, 256, kNone);
  processes.declare_nproc(options);
  options.number("seconds", "S", "measure for so long (left out: 4)", &loading.seconds, 0.05, 1e6, kNone);
}

void BenchOptions::declare_allreduce(config::OptionSet& options) {
  comm.declare(options);
  options.section("Options");
  options.choice("algorithm", "ring: the usual one, beside which the fold can be set", &algorithm,
                 {kBenchAlgorithms.begin(), kBenchAlgorithms.end()}, kNone);
  config::Option& bytes =
      options.form("sizes", "1K,1M,…", "bytes to reduce (default: 1K to 100M)", &sizes, read_sizes, write_sizes, kNone);
  bytes.get = [this]() -> std::optional<std::string> {
    if (sizes.empty()) return std::nullopt;
    return write_sizes(sizes);
  };
  bytes.default_value = bytes.get();
  options.word("comm-dtype", "what is added and sent in", &comm_dtype, kNone);
  processes.declare_nproc_or_auto(options);
}

void BenchOptions::declare(config::OptionSet& options) {
  options.section("Options");
  switch (kind) {
    case BenchKind::kStep:
      declare_step(options);
      break;
    case BenchKind::kForms:
      declare_forms(options);
      break;
    case BenchKind::kData:
      loading.declare(options);
      break;
    case BenchKind::kAllreduce:
      declare_allreduce(options);
      break;
    case BenchKind::kOptimizer:
      options.number("elements", "N", "weights, in 1024", &elements, 1, 1 << 20, kNone);
      processes.declare_threads(options);
      break;
    case BenchKind::kStartup:
      processes.declare_nproc(options);
      break;
    case BenchKind::kPrecision:
      break;
    case BenchKind::kCheckpoint:
      checkpoint.declare(options);
      break;
    case BenchKind::kPipeline:
      pipeline.declare(options);
      processes.declare_nproc(options);
      options.number("seconds", "S", "measure each row for so long (left out: 1)", &loading.seconds, 0.05, 1e6, kNone);
      break;
  }
  declare_json(options, &json);
}

std::optional<std::string> BenchCommand::read(const std::vector<std::string>& args) {
  const auto kind = std::find_if(args.begin(), args.end(), is_kind);
  if (std::any_of(args.begin(), args.end(), asks_for_help)) return bench_help();
  if (kind == args.end()) {
    const auto all = config::word_list<BenchKind>();
    const std::vector<std::string> names(all.begin(), all.end());
    throw ConfigError("bench", args.empty() ? "" : " " + args[0], ": expected ", kinds(),
                      args.empty() ? "" : config::did_you_mean(args[0], names));
  }
  options_.kind = config::read_enum<BenchKind>("kind", *kind);
  options_.declare(rows_);
  std::vector<std::string> others(args.begin(), kind);
  others.insert(others.end(), kind + 1, args.end());
  const config::Given line = config::tokenize(rows_.shapes(), others);
  if (options_.kind == BenchKind::kData) {
    options_.loading.path = only_word(line, "lockstep bench data", "DIR");
  } else {
    refuse_words(line, "lockstep bench " + *kind);
  }
  rows_.apply_as_given(line.options);
  check(options_);
  return std::nullopt;
}

std::vector<std::string> BenchCommand::arguments() const {
  std::vector<std::string> words = {"bench", config::word_of(options_.kind)};
  for (auto& word : rows_.arguments()) words.push_back(std::move(word));
  return words;
}

std::string bench_help() {
  std::string out = cat("Usage: lockstep bench ", config::joined(config::word_list<BenchKind>(), "|"), " [options]\n");
  for (const Usage& usage : kUsages) {
    BenchOptions options;
    options.kind = usage.kind;
    config::OptionSet rows;
    options.declare(rows);
    auto shapes = rows.shapes();
    for (auto& shape : shapes) shape.section = usage.text;
    out += config::describe(shapes);
  }
  return out;
}

std::vector<int64_t> read_sizes(std::string_view name, std::string_view text) {
  std::vector<int64_t> sizes;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    sizes.push_back(read_size(name, text.substr(start, end - start)));
    start = end + 1;
  }
  return sizes;
}

std::string write_sizes(const std::vector<int64_t>& sizes) {
  std::string text;
  for (const int64_t size : sizes) text += cat(text.empty() ? "" : ",", size);
  return text;
}

}  // namespace lockstep::apps
