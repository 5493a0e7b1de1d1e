#include "lockstep/loop/chunk_sums.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/plain_nan.h"
#include "lockstep/comm/blocks.h"
#include "lockstep/world/once.h"

namespace lockstep::loop {
namespace {

int64_t chunks_of(int64_t samples, int64_t chunk) {
  if (chunk < 1) throw ConfigError("an evaluation in chunks of ", chunk, " samples; expected 1 or more");
  return samples == 0 ? 0 : (samples - 1) / chunk + 1;
}

}  // namespace

OwnSamples own_samples(comm::Communicator& comm, int64_t samples, int64_t chunk) {
  const comm::Slice own = comm::slice_of(chunks_of(samples, chunk), comm.rank(), comm.size());
  return {.first = std::min(samples, own.first * chunk), .last = std::min(samples, own.last * chunk)};
}

std::vector<double> chunk_sums(comm::Communicator& comm, int64_t samples, int64_t chunk,
                               const std::function<std::vector<double>(int64_t first, int64_t count)>& measure) {
  const int64_t chunks = chunks_of(samples, chunk);
  const comm::Slice own = comm::slice_of(chunks, comm.rank(), comm.size());
  std::vector<std::vector<double>> measured;  // of this rank's chunks
  const at::Tensor most = at::zeros({1}, at::kLong);
  together(comm, [&] {
    for (int64_t number = own.first; number < own.last; ++number) {
      const int64_t first = number * chunk;
      measured.push_back(measure(first, std::min(chunk, samples - first)));
      most.fill_(std::max(most.item<int64_t>(), std::ssize(measured.back())));
    }
  });
  comm.all_reduce(most, comm::ReduceOp::kMax);
  const int64_t width = 1 + most.item<int64_t>();  // of a row: the number of sums, the sums
  const at::Tensor table = at::zeros({chunks, width}, at::kDouble);
  const auto row = [&, rows = table.mutable_data_ptr<double>()](int64_t number) { return rows + number * width; };
  for (int64_t number = own.first; number < own.last; ++number) {
    const auto& sums = measured[static_cast<size_t>(number - own.first)];
    row(number)[0] = static_cast<double>(sums.size());
    std::copy(sums.begin(), sums.end(), row(number) + 1);
  }
  comm.all_reduce(table, comm::ReduceOp::kSum);  // every row is one rank's, and zero elsewhere
  std::vector<double> total;
  for (int64_t number = 0; number < chunks; ++number) {
    if (number == 0) total.resize(static_cast<size_t>(row(0)[0]));
    if (row(number)[0] != row(0)[0]) {
      throw ConfigError("an evaluation gave ", row(0)[0], " sums for samples 0 to ", chunk - 1, ", and ",
                        row(number)[0], " for those from ", number * chunk, " on");
    }
    for (size_t i = 0; i < total.size(); ++i) total[i] += row(number)[1 + i];
  }
  std::transform(total.begin(), total.end(), total.begin(), plain_nan);
  return total;
}

}  // namespace lockstep::loop
