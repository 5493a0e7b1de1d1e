#include "bench_feed.h"

#include "bench_source.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"

namespace lockstep::worker {

BenchFeed::BenchFeed(const apps::BenchOptions& options, const World& world, const BenchNetwork& network,
                     c10::Device device)
    : device_(device) {
  apps::BenchDataOptions source = options.loading;
  source.size = options.size;
  source.channels_last = options.channels_last;
  const bool encoded = options.decode == train::DecodeOn::kDevice;
  const int local_size = world.place().local_size;
  const auto dataset = open_bench_source(source, std::max(1, usable_cores() / std::max(1, local_size)),
                                         /*as_bytes=*/!device.is_cpu() || encoded, encoded);
  if (encoded && !data::has_encoded(dataset->fields())) {
    throw ConfigError("--decode device: ", source.path, " has no files of pictures (", dataset->description(), ")");
  }
  const std::vector<int64_t> shape = dataset->sample_shape(), wanted = network.images.sizes().slice(1).vec();
  if (shape != wanted || dataset->classes() > network.classes) {
    throw ConfigError("--data ", source.path, ": its samples are ", at::IntArrayRef(shape), " of ", dataset->classes(),
                      " classes, and ", options.model, " takes ", at::IntArrayRef(wanted), " of at most ",
                      network.classes);
  }
  const data::LaneSampler sampler({.dataset_size = dataset->size(),
                                   .lanes = world.size(),
                                   .batch_size = options.batch_size,
                                   .seed = 1,
                                   .drop_last = true});
  const int workers = source.workers.value_or(data::usual_workers(*dataset, usable_cores(), local_size));
  loader_.emplace(dataset, sampler,
                  data::LoaderOptions{.first_lane = world.rank(),
                                      .last_lane = world.rank() + 1,
                                      .workers = workers,
                                      .memory = train::batch_memory(device)});
  if (options.prefetch) {
    ahead_.emplace(*loader_, device);
  } else {
    tables_ = data::ByteTables(dataset->fields(), device);
  }
}

// Without --prefetch the host waits for the copy, and the device for the host.
data::StepBatch BenchFeed::next() {
  if (ahead_) return ahead_->next();
  data::StepBatch step = loader_->next();
  for (auto& lane : step.lanes) {
    lane.for_each_tensor([this](at::Tensor& tensor) { tensor = tensor.to(device_); });
    tables_.apply(lane);
  }
  return step;
}

void BenchFeed::fill(BenchNetwork& network) {
  const data::StepBatch step = next();
  wait_ns_ += step.wait_ns;
  network.images = step.lanes[0].data();
  network.labels = step.lanes[0].target();
}

}  // namespace lockstep::worker
