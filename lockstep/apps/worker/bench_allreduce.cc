// bench allreduce: latency and bandwidth of the fold, in the manner of nccl-tests.
#include <ATen/ops/ones.h>

#include <algorithm>

#include "commands.h"
#include "lockstep/base/clock.h"
#include "lockstep/comm/world.h"

namespace lockstep::worker {
namespace {

nlohmann::ordered_json measure(comm::World& world, int64_t bytes) {
  auto& comm = world.communicator();
  const at::Tensor tensor = at::ones({bytes / 4});
  const int rounds = static_cast<int>(std::clamp<int64_t>((int64_t{1} << 28) / bytes, 10, 5000));
  std::vector<double> times;
  for (int i = 0; i < rounds + rounds / 5 + 1; ++i) {
    comm.barrier();
    const Stopwatch watch;
    comm.fold({tensor}, {.label = "bench", .square_sums = {}})->wait();
    if (i > rounds / 5) times.push_back(watch.seconds());
  }
  std::sort(times.begin(), times.end());
  const double seconds = times[times.size() / 2];
  const double algbw = static_cast<double>(bytes) / seconds * 1e-9;
  return {{"backend", comm.backend()},
          {"ranks", world.size()},
          {"bytes", bytes},
          {"seconds", seconds},
          {"algbw_gbps", algbw},
          {"busbw_gbps", algbw * 2 * (world.size() - 1) / world.size()}};
}

}  // namespace

int bench_allreduce(const config::BenchOptions& options) {
  const auto world = init();
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (int64_t bytes = 1024; bytes <= int64_t{100} << 20;
       bytes = bytes == (int64_t{64} << 20) ? int64_t{100} << 20 : bytes * 4) {
    rows.push_back(measure(*world, bytes));
  }
  if (world->rank() != 0) return 0;
  if (options.json) {
    print(rows.dump() + '\n');
    return 0;
  }
  std::string text = "      bytes     microseconds   algbw GB/s   busbw GB/s\n";
  for (const auto& row : rows) {
    std::array<char, 100> line{};
    std::snprintf(line.data(), line.size(), "%11ld  %15.1f  %11.2f  %11.2f\n", row["bytes"].get<long>(),
                  row["seconds"].get<double>() * 1e6, row["algbw_gbps"].get<double>(), row["busbw_gbps"].get<double>());
    text += line.data();
  }
  print(text);
  return 0;
}

}  // namespace lockstep::worker
