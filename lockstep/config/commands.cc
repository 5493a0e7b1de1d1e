#include "lockstep/config/commands.h"

#include <algorithm>
#include <charconv>

#include "lockstep/base/board.h"

namespace lockstep::config {
namespace {

template <typename Options>
OptionSpec<Options> processes() {
  return number("nproc", "N", "processes", &Options::nproc, 1, kMaxLocalRanks);
}

template <typename Options>
OptionSpec<Options> threads() {
  return number("threads", "N", "compute threads a process (default: cores / processes)", &Options::threads, 0, 1024);
}

template <typename Options>
OptionSpec<Options> json() {
  return flag("json", "machine-readable output", &Options::json);
}

OptionSpec<BenchOptions> sizes_option() {
  OptionSpec<BenchOptions> spec{
      {.name = "sizes", .value = "1K,1M,…", .help = "bytes to reduce (default: 1K to 100M)", .is_text = true}, {}, {}};
  spec.set = [](BenchOptions& options, const std::string& given) { options.sizes = read_sizes("sizes", given); };
  spec.get = [](const BenchOptions& options) -> std::optional<std::string> {
    if (options.sizes.empty()) return std::nullopt;
    return write_sizes(options.sizes);
  };
  return spec;
}

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

}  // namespace

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

OptionTable<EvalOptions> eval_table() {
  using O = EvalOptions;
  OptionTable<O> table;
  const OptionTable<O> network = network_options<O>();
  add_section(table, "Options",
              {text("load", "FILE", "the checkpoint to evaluate (required)", &O::load),
               text("data", "DIR", "folder of the data set (left out: data made on the spot)", &O::data), network[0],
               network[1], number("batch-size", "N", "samples at a time", &O::batch_size, 1, 1 << 24), processes<O>(),
               threads<O>(), amp_option<O>(), json<O>()});
  return table;
}

OptionTable<BenchOptions> bench_table(BenchKind kind) {
  using O = BenchOptions;
  OptionTable<O> rows;
  const auto size = number("size", "PX", "pixels a side", &O::size, 1, 4096);
  const auto batch_size = number("batch-size", "N", "samples a process", &O::batch_size, 1, 1 << 20);
  switch (kind) {
    case BenchKind::kStep:
      rows = {word("model", "", &O::model),
              size,
              batch_size,
              word("dtype", "of the model", &O::dtype),
              toggle("channels-last", "memory layout of images", &O::channels_last),
              word("optimizer", "", &O::optimizer),
              processes<O>(),
              threads<O>(),
              flag("no-comm", "leave the all-reduce out", &O::no_comm),
              flag("overhead", "how much longer a step takes than without communication", &O::overhead),
              amp_option<O>(),
              json<O>()};
      break;
    case BenchKind::kData:
      rows = {threads<O>(), size, batch_size, json<O>()};
      break;
    case BenchKind::kAllreduce:
      rows = {word("backend", "how processes talk", &O::backend,
                   {{"nccl", "this bench is of CPU memory; use another, or auto"}}),
              sizes_option(),
              word("algorithm", "ring: bits differ between world sizes", &O::algorithm),
              word("comm-dtype", "what is added and sent in", &O::comm_dtype),
              text("interface", "NAME[,NAME]", "network interfaces between nodes", &O::interfaces),
              processes<O>(),
              number("timeout", "SECONDS", "that a process waits for the others", &O::timeout, 1, 86400),
              json<O>()};
      break;
    case BenchKind::kOptimizer:
      rows = {number("elements", "N", "weights, in 1024", &O::elements, 1, 1 << 20), threads<O>(), json<O>()};
      break;
    case BenchKind::kStartup:
      rows = {processes<O>(), json<O>()};
      break;
    case BenchKind::kPrecision:
      rows = {json<O>()};
      break;
  }
  OptionTable<O> table;
  add_section(table, "Options", std::move(rows));
  return table;
}

OptionTable<InspectOptions> inspect_table() {
  OptionTable<InspectOptions> table;
  add_section(table, "Options", {json<InspectOptions>()});
  return table;
}

OptionTable<LaunchOptions> launch_table() {
  using O = LaunchOptions;
  OptionTable<O> table;
  add_section(table, "Options",
              {processes<O>(),
               number("threads", "N", "OMP_NUM_THREADS, where it is not set (default: cores / processes)", &O::threads,
                      0, 1024),
               text("log-dir", "DIR", "keep each process's output in DIR/rank<k>.log", &O::log_dir)});
  return table;
}

OptionTable<DoctorOptions> doctor_table() {
  OptionTable<DoctorOptions> table;
  add_section(table, "Options", {json<DoctorOptions>()});
  return table;
}

}  // namespace lockstep::config
