// bench allreduce: latency and bandwidth of the fold, in the manner of nccl-tests (algorithm bandwidth: bytes by time;
// bus bandwidth: that times 2·(W - 1)/W), and beside them what the machine's memory gives to a plain add (plain_add.h).
// With NCCL the bytes are in the GPUs' memory, and no add stands beside them.
#include <ATen/ops/full.h>
#include <ATen/ops/median.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "commands.h"
#include "lockstep/apps/ring/ring_communicator.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/rendezvous/place/environment.h"
#include "lockstep/train/device.h"
#include "lockstep/world/backends.h"
#include "lockstep/world/world.h"
#include "plain_add.h"

namespace lockstep::worker {
namespace {

constexpr double kSeconds = 0.4;        // of measuring a size
constexpr double kBatchSeconds = 2e-5;  // short ones are repeated for so long without a barrier between them
constexpr int64_t kTurns = 5;           // what is compared is measured in turns, so that both meet the same weather

// The times of something that all ranks do together on this device: rounds of a barrier and `batch_` repetitions, timed
// as one to the end of the last.
class Timing {
 public:
  Timing(comm::Communicator& comm, c10::Device device, std::function<void()> act)
      : comm_(comm), device_(device), act_(std::move(act)) {
    constexpr int kProbes = 6;
    const Stopwatch watch;
    double probe = round(1);
    for (int i = 1; i < kProbes; ++i) probe = std::min(probe, round(1));
    agree(std::max(probe, 1e-9), watch.seconds() / kProbes);
  }

  void take_turn() {
    round(batch_);  // brings its data near
    for (int64_t i = 0; i < rounds_; ++i) times_.push_back(round(batch_));
  }

  // The time of a round is the slowest rank's.
  double median() {
    const at::Tensor times = at::tensor(times_, at::kDouble);
    comm_.all_reduce(times, comm::ReduceOp::kMax);
    return at::median(times).item<double>();
  }

 private:
  double round(int64_t batch) {
    comm_.barrier();
    const Stopwatch watch;
    for (int64_t i = 0; i < batch; ++i) act_();
    if (!device_.is_cpu()) c10::impl::VirtualGuardImpl(device_.type()).synchronizeDevice(device_.index());
    return watch.seconds() / static_cast<double>(batch);
  }

  // All ranks repeat as rank 0 says, whom one took `seconds` and a round, with its barrier, `whole`.
  void agree(double seconds, double whole) {
    const double batch = std::clamp(kBatchSeconds / seconds, 1.0, 100.0);
    const double rounds = std::clamp(kSeconds / (std::max(seconds * batch, whole) * kTurns), 2.0, 1000.0);
    const at::Tensor both = at::tensor({std::floor(rounds), std::floor(batch)}, at::kDouble);
    comm_.broadcast(both, 0);
    rounds_ = static_cast<int64_t>(both[0].item<double>());
    batch_ = static_cast<int64_t>(both[1].item<double>());
  }

  comm::Communicator& comm_;
  c10::Device device_;
  std::function<void()> act_;
  int64_t rounds_ = 0, batch_ = 0;
  std::vector<double> times_;
};

void require(bool right, const char* collective, const comm::Communicator& comm, int64_t bytes) {
  if (right) return;
  throw CommError("rank ", comm.rank(), ": ", collective, " of ", bytes, " bytes over ", comm.backend(),
                  " gave wrong values");
}

// Small whole numbers, so that every order of adding gives the same.
void check_values(comm::Communicator& comm, const at::Tensor& tensor, int64_t bytes) {
  const int size = comm.size();
  tensor.fill_(comm.rank() + 1);
  comm.fold({tensor}, {.label = "check", .square_sums = {}})->wait();
  require(tensor.eq(size * (size + 1) / 2).all().item<bool>(), "fold", comm, bytes);
  tensor.fill_(comm.rank());
  comm.broadcast(tensor, size - 1);
  require(tensor.eq(size - 1).all().item<bool>(), "broadcast", comm, bytes);
  const at::Tensor rows = comm.all_gather(at::full({8}, comm.rank(), tensor.options()));
  for (int rank = 0; rank < size; ++rank) require(rows[rank].eq(rank).all().item<bool>(), "all_gather", comm, 32);
  tensor.zero_();
}

// The plain add of a fold in CPU memory, and its times.
struct Beside {
  PlainAdd add;
  Timing timing;
  Beside(comm::Communicator& comm, int64_t bytes)
      : add(bytes, comm.size()), timing(comm, c10::Device(c10::kCPU), [this] { add.run(); }) {}
};

nlohmann::ordered_json measure(comm::Communicator& comm, c10::Device device, int64_t bytes,
                               const comm::FoldOptions& options) {
  const int size = comm.size();
  const at::Tensor tensor = at::zeros({bytes / 4}, device);
  check_values(comm, tensor, bytes);
  Timing fold(comm, device, [&] { comm.fold({tensor}, options)->wait(); });
  // A fold of one moves nothing that could be compared.
  const auto beside = size > 1 && device.is_cpu() ? std::make_unique<Beside>(comm, bytes) : nullptr;
  for (int64_t turn = 0; turn < kTurns; ++turn) {
    fold.take_turn();
    if (beside) beside->timing.take_turn();
  }
  const double seconds = fold.median();
  const double algbw = static_cast<double>(bytes) / seconds * 1e-9;
  nlohmann::ordered_json row = {
      {"backend", comm.backend()}, {"ranks", size},       {"bytes", bytes},
      {"seconds", seconds},        {"algbw_gbps", algbw}, {"busbw_gbps", algbw * 2 * (size - 1) / size}};
  if (!beside) return row;
  const double plain_seconds = beside->timing.median();
  row["memory_gbps"] = static_cast<double>(PlainAdd::bytes_moved(bytes, size)) / plain_seconds * 1e-9;
  row["of_memory"] = plain_seconds / seconds;
  return row;
}

std::optional<at::ScalarType> wire_of(const BenchOptions& options) {
  if (options.comm_dtype == parallel::CommType::kBf16) return at::kBFloat16;
  return std::nullopt;
}

std::vector<int64_t> sizes_of(const BenchOptions& options) {
  if (!options.sizes.empty()) return options.sizes;
  std::vector<int64_t> sizes;
  for (int64_t bytes = 1024; bytes <= int64_t{64} << 20; bytes *= 4) sizes.push_back(bytes);
  sizes.push_back(int64_t{100} << 20);
  return sizes;
}

std::string table(const nlohmann::ordered_json& rows) {
  std::string text =
      "     backend  ranks       bytes     microseconds   algbw GB/s   busbw GB/s   memory GB/s   share of a plain "
      "add\n";
  for (const auto& row : rows) {
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "%12s  %5d  %10ld  %15.1f  %11.2f  %11.2f  ",
                  row["backend"].get<std::string>().c_str(), row["ranks"].get<int>(), row["bytes"].get<long>(),
                  row["seconds"].get<double>() * 1e6, row["algbw_gbps"].get<double>(), row["busbw_gbps"].get<double>());
    text += line.data();
    if (row.contains("memory_gbps")) {
      std::snprintf(line.data(), line.size(), "%12.2f  %20.0f %%", row["memory_gbps"].get<double>(),
                    row["of_memory"].get<double>() * 100);
      text += line.data();
    }
    text += '\n';
  }
  return text;
}

// The backends to measure, the world's own last. Where none is named and all ranks are on one node, these are shared
// memory and Gloo, whose world has a session.
struct Measured {
  std::shared_ptr<World> world;
  std::unique_ptr<comm::Communicator> beside;
  c10::Device device{c10::kCPU};  // whose memory is reduced

  explicit Measured(const BenchOptions& bench) {
    const BackendOptions& options = bench.comm;
    if (bench.on_gpus()) train::open_cuda("--backend nccl");
    const WorldOptions named{.backend = options.backend,
                             .interfaces = options.interfaces,
                             .timeout = std::chrono::seconds(options.timeout),
                             .timeout_name = "--timeout"};
    const auto place =
        rendezvous::find_place({.parent = rendezvous::launcher_pid()}, [](const char* name) { return env(name); });
    const bool both = options.backend == "auto" && place.size > 1 && place.local_size == place.size;
    world = init({.backend = both ? "gloo" : options.backend,
                  .interfaces = options.interfaces,
                  .timeout = named.timeout,
                  .timeout_name = named.timeout_name});
    if (bench.on_gpus()) {
      device = train::open_device(train::DeviceKind::kCuda, train::node_ranks(*world, /*may_share=*/false));
    }
    if (!both) return;
    WorldOptions shm = named;
    shm.backend = "shm";
    beside = make_communicator({world->place(), world->memory(), world->pool(), &world->board(), nullptr}, shm);
  }
};

// Those of one backend.
void measure_all(comm::Communicator& comm, c10::Device device, const BenchOptions& options,
                 nlohmann::ordered_json& rows) {
  std::unique_ptr<apps::RingCommunicator> ring;
  if (options.algorithm == "ring") {
    std::vector<int> all(static_cast<size_t>(comm.size()));
    std::iota(all.begin(), all.end(), 0);
    ring = std::make_unique<apps::RingCommunicator>(comm.make_group(all));
  }
  comm::Communicator& chosen = ring ? *ring : comm;
  const comm::FoldOptions fold{.label = "bench", .wire = wire_of(options)};
  for (const int64_t bytes : sizes_of(options)) rows.push_back(measure(chosen, device, bytes, fold));
}

}  // namespace

int bench_allreduce(const BenchOptions& options) {
  const Measured measured(options);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  if (measured.beside) measure_all(*measured.beside, measured.device, options, rows);
  measure_all(measured.world->communicator(), measured.device, options, rows);
  if (measured.world->rank() != 0) return 0;
  print(options.json ? rows.dump() + '\n' : table(rows));
  return 0;
}

}  // namespace lockstep::worker
