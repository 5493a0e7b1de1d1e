#include "lockstep/loop/chunk_sums.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/plain_nan.h"
#include "lockstep/comm/blocks.h"
#include "lockstep/data/chunk_reader.h"
#include "lockstep/world/once.h"

namespace lockstep::loop {

OwnSamples own_samples(comm::Communicator& comm, int64_t samples, int64_t chunk) {
  const comm::Slice own = comm::slice_of(data::chunks_of(samples, chunk), comm.rank(), comm.size());
  return {.first = std::min(samples, own.first * chunk), .last = std::min(samples, own.last * chunk)};
}

std::vector<double> chunk_sums(comm::Communicator& comm, int64_t samples, int64_t chunk,
                               const std::function<std::vector<double>(int64_t first, int64_t count)>& measure) {
  const int64_t chunks = data::chunks_of(samples, chunk);
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
  int64_t before = -1;  // the last chunk that has sums
  for (int64_t number = 0; number < chunks; ++number) {
    const auto sums = static_cast<size_t>(row(number)[0]);
    if (sums == 0) continue;
    if (before == -1) total.resize(sums);
    if (sums != total.size()) {
      throw ConfigError("an evaluation gave ", total.size(), " sums for samples ", before * chunk, " to ",
                        (before + 1) * chunk - 1, ", and ", sums, " for those from ", number * chunk, " on");
    }
    before = number;
    for (size_t i = 0; i < total.size(); ++i) total[i] += row(number)[1 + i];
  }
  std::transform(total.begin(), total.end(), total.begin(), plain_nan);
  return total;
}

std::vector<double> batch_sums(comm::Communicator& comm, const data::Dataset& data, int64_t chunk, int workers,
                               const std::function<std::vector<double>(data::Batch batch)>& measure,
                               data::SkippedSamples* skipped) {
  const OwnSamples own = own_samples(comm, data.size(), chunk);
  std::optional<data::ChunkReader> reader;  // made where its errors are all ranks'
  auto total = chunk_sums(comm, data.size(), chunk, [&](int64_t /*first*/, int64_t /*count*/) -> std::vector<double> {
    if (!reader) reader.emplace(data, own.first, own.last, chunk, workers, /*leaves_out=*/skipped != nullptr);
    data::Batch batch = reader->next();
    if (batch.size() == 0) return {};
    return measure(std::move(batch));
  });
  if (skipped == nullptr) return total;
  skipped->add(reader ? reader->bad() : std::vector<data::BadSample>());
  if (total.empty()) throw DataError(data.description(), ": none of its samples can be read");
  return total;
}

}  // namespace lockstep::loop
