#include "bench_replicas.h"

#include <algorithm>

#include "lockstep/train/setup.h"

namespace lockstep::worker {

BenchReplicas::BenchReplicas(const apps::BenchOptions& options, const BenchNetwork& net)
    : replicas_(net.module,
                [&](const at::Device&) {
                  copies_.push_back(make_bench_network(options));
                  copies_.back().images.reset(), copies_.back().labels.reset();
                  train::set_memory_format(*copies_.back().module, options.channels_last);
                  return copies_.back().module;
                },
                {.device_ids = parallel::on_cpu(static_cast<size_t>(options.replicas))}) {}

at::Tensor BenchReplicas::forward(const at::Tensor& images) {
  using Tensors = std::vector<at::Tensor>;
  return replicas_.run({images}, [this](torch::nn::Module& replica, const Tensors& own) {
    const auto is_it = [&](const BenchNetwork& copy) { return copy.module.get() == &replica; };
    return Tensors{std::ranges::find_if(copies_, is_it)->forward(own[0])};
  })[0];
}

}  // namespace lockstep::worker
