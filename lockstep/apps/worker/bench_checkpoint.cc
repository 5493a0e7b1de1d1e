// bench checkpoint: writing a checkpoint of a model and its AdamW, and loading it into a model and an optimizer that
// are there as `train --resume` does, or the weights alone as `train --load` does, beside what writing and reading as
// many bytes takes by itself.
#include <ATen/ATen.h>
#include <fcntl.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include "commands.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/shared_memory.h"
#include "lockstep/checkpoint/formats/file_reader.h"
#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/value_view.h"
#include "lockstep/checkpoint/optimizer_state.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/loop/optimizer_values.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "median.h"
#include "process_figures.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kWidth = 1024;                             // of a layer
constexpr double kLayerBytes = 4.0 * kWidth * (kWidth + 1);  // of its weights, and of each of AdamW's two moments

// Layers that add up to the size, and their optimizer unless there are weights alone.
struct Trained {
  explicit Trained(const apps::BenchCheckpointOptions& asked) {
    const double layer_bytes = asked.weights ? kLayerBytes : 3 * kLayerBytes;
    const auto layers = std::max(1, static_cast<int>(asked.megabytes * 1e6 / layer_bytes));
    for (int i = 0; i < layers; ++i) net->push_back(torch::nn::Linear(kWidth, kWidth));
    if (!asked.weights) optimizer = optim::make_optimizer("adamw", net->parameters());
  }
  void step() {
    if (!optimizer) return;
    for (at::Tensor& parameter : net->parameters()) parameter.mutable_grad() = at::full_like(parameter, 0.01);
    optimizer->update({});
    for (at::Tensor& parameter : net->parameters()) parameter.mutable_grad().reset();
  }
  checkpoint::Value value() const {
    if (!optimizer) return checkpoint::Dict{{"model", checkpoint::state_dict(*net)}};
    return checkpoint::Dict{{"model", checkpoint::state_dict(*net)},
                            {"optimizer", checkpoint::optimizer_to_dict(loop::to_values(optimizer->state_dict()))}};
  }
  void load(const std::string& file) {
    const checkpoint::Value root =
        checkpoint::open_checkpoint(file, {.takes_optimizers = true, .checks_on_the_way = optimizer == nullptr});
    const checkpoint::ValueView view(root, file);
    checkpoint::load_state_dict(*net, view["model"].dict(), {.file = file});
    if (optimizer)
      optimizer->load_state_dict(
          loop::from_values(checkpoint::optimizer_from_dict(view["optimizer"]), file, checkpoint::take_elements));
  }

  torch::nn::Sequential net;
  std::unique_ptr<optim::FusedOptimizer> optimizer;
};

// A file that is removed with its owner.
struct Scratch {
  explicit Scratch(const std::string& folder, const char* suffix)
      : path((folder.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(folder)) /
             cat("lockstep-bench-", getpid(), '.', suffix)) {}
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path;
};

constexpr uint64_t kBlock = 1u << 20;  // dd bs=1M

// Writes as many bytes as dd conv=fsync does: the same memory, a block at a time.
void write_through(const std::string& path, uint64_t bytes) {
  const std::string block(kBlock, 'x');
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  bool good = bool{file};
  for (uint64_t at = 0; good && at < bytes; at += block.size()) {
    good = write_all(file.get(), std::string_view(block).substr(0, bytes - at));
  }
  if (!good || fsync(file.get()) != 0) throw IoError(path, ": can't be written: ", errno_text(errno));
}

// Reads the file as dd does: a block at a time into the same memory, or one behind the other into `kept`.
void read_through(const std::string& path, std::vector<char>* kept = nullptr) {
  const checkpoint::InputFile file = checkpoint::open_input(path);
  std::vector<char> block(kBlock);
  for (uint64_t at = 0; at < file.bytes; at += kBlock) {
    char* const to = kept == nullptr ? block.data() : kept->data() + at;
    checkpoint::read_at(file.fd.get(), path, at, to, std::min(kBlock, file.bytes - at));
  }
}

// Puts the file out of the system's memory, or into it: a written one may be in either.
void set_cold(const std::string& path, bool cold) {
  if (!cold) return read_through(path);
  const checkpoint::InputFile file = checkpoint::open_input(path);
  if (posix_fadvise(file.fd.get(), 0, 0, POSIX_FADV_DONTNEED) != 0) throw IoError(path, ": can't be put out of memory");
}

// Lets the disk end what it has begun, such as giving the room of a removed file back.
void settle(const std::string& folder) {
  const Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened || syncfs(opened.get()) != 0) throw IoError(folder, ": ", errno_text(errno));
}

double seconds_of(const std::function<void()>& act) {
  const Stopwatch watch;
  act();
  return watch.seconds();
}

// What the process has at most from here on is counted anew.
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

double two_digits(double share) { return std::round(share * 100) / 100; }

}  // namespace

int bench_checkpoint(const BenchOptions& options) {
  const apps::BenchCheckpointOptions& asked = options.checkpoint;
  const Scratch file(asked.folder, "pt");
  Trained from(asked);
  from.step();
  const std::string folder = std::filesystem::path(file.path).parent_path();
  checkpoint::write_pt(from.value(), file.path);
  const auto bytes = std::filesystem::file_size(file.path);
  std::vector<double> written, plainly, read, kept, loaded, peaks;
  std::vector<char> memory(bytes);
  for (int round = 0; round < asked.rounds; ++round) {
    Trained to(asked);
    const auto write = [&] {
      std::filesystem::remove(file.path);  // a run's checkpoint replaces none
      settle(folder);
      written.push_back(seconds_of([&] { checkpoint::write_pt(from.value(), file.path); }));
    };
    const auto write_plainly = [&] {
      const Scratch plain(asked.folder, "plain");
      settle(folder);
      plainly.push_back(seconds_of([&] { write_through(plain.path, bytes); }));
    };
    const auto load = [&] {
      set_cold(file.path, asked.cold);
      reset_peak();
      const double before = resident_mb();
      loaded.push_back(seconds_of([&] { to.load(file.path); }));
      peaks.push_back(peak_mb() - before);
    };
    const auto read_plainly = [&] {
      set_cold(file.path, asked.cold);
      read.push_back(seconds_of([&] { read_through(file.path); }));
      set_cold(file.path, asked.cold);
      kept.push_back(seconds_of([&] { read_through(file.path, &memory); }));
    };
    // Each comes first in turn, because some disks lend speed for a while, and the second has less of it.
    if (round % 2 == 0) write(), write_plainly(), load(), read_plainly();
    if (round % 2 == 1) write_plainly(), write(), read_plainly(), load();
    if (checkpoint::weights_sha256(*to.net) != checkpoint::weights_sha256(*from.net)) {
      throw BugError("bench checkpoint: other weights were loaded than written");
    }
  }
  std::vector<double> of_read, of_kept, of_write;  // what we reach of the plain rates, round by round
  for (size_t i = 0; i < read.size(); ++i) {
    of_read.push_back(read[i] / loaded[i]);
    of_kept.push_back(kept[i] / loaded[i]);
    of_write.push_back(plainly[i] / written[i]);
  }
  const nlohmann::ordered_json found = {{"bytes", bytes},
                                        {"cold", asked.cold},
                                        {"write_seconds", median(written)},
                                        {"plain_write_seconds", median(plainly)},
                                        {"read_seconds", median(read)},
                                        {"kept_read_seconds", median(kept)},
                                        {"load_seconds", median(loaded)},
                                        {"write_of_plain", two_digits(median(of_write))},
                                        {"load_of_read", two_digits(median(of_read))},
                                        {"load_of_kept_read", two_digits(median(of_kept))},
                                        {"load_peak_mb", *std::max_element(peaks.begin(), peaks.end())}};
  const auto rate = [&](const char* what) {
    return cat(static_cast<int64_t>(static_cast<double>(bytes) / 1e6 / found[what].get<double>()), " MB/s");
  };
  print(options.json
            ? found.dump() + '\n'
            : cat(human_bytes(bytes), ": written at ", rate("write_seconds"), ", ", found["write_of_plain"].dump(),
                  " of the ", rate("plain_write_seconds"), " of a plain file; loaded at ", rate("load_seconds"), ", ",
                  found["load_of_read"].dump(), " of the ", rate("read_seconds"), " of reading it and ",
                  found["load_of_kept_read"].dump(), " of the ", rate("kept_read_seconds"),
                  " of reading it into memory of its size, with at most ",
                  static_cast<int64_t>(found["load_peak_mb"].get<double>()), " MB more memory\n"));
  return 0;
}

}  // namespace lockstep::worker
