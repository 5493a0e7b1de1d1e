#include "bench_networks.h"

#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include "lockstep/models/alexnet.h"
#include "lockstep/models/lenet.h"
#include "lockstep/models/mobilenet_v2.h"
#include "lockstep/models/resnet.h"
#include "lockstep/models/unet.h"

namespace lockstep::worker {
namespace {

struct Kind {
  const char* name;
  int64_t channels, classes;
  bool labels_pixels;
  int64_t fixed_size;  // 0: any
  void (*build)(BenchNetwork& network);
};

template <typename Net, typename Options>
void build(BenchNetwork& network) {
  Net net(Options{}, /*seed=*/1);
  network.module = net.ptr();
  network.forward = [net](const at::Tensor& images) mutable { return net->forward(images); };
  network.layers = [net] { return net->layers(); };
}

// The networks that apps::kBenchModels names.
constexpr Kind kKinds[] = {
    {"alexnet", 3, 1000, false, 0, build<models::AlexNet, models::AlexNetOptions>},
    {"lenet", 1, 10, false, 28, build<models::LeNet, models::LeNetOptions>},
    {"resnet18", 3, 1000, false, 0, build<models::ResNet18, models::ResNetOptions>},
    {"resnet50", 3, 1000, false, 0, build<models::ResNet50, models::ResNetOptions>},
    {"unet", 3, 2, true, 0, build<models::UNet, models::UNetOptions>},
    {"mobilenet_v2", 3, 1000, false, 0, build<models::MobileNetV2, models::MobileNetV2Options>},
};

const Kind& kind_of(const std::string& name) {
  for (const Kind& kind : kKinds) {
    if (kind.name == name) return kind;
  }
  throw BugError("bench step knows no network ", name);
}

}  // namespace

BenchNetwork make_bench_network(const apps::BenchOptions& options) {
  const Kind& kind = kind_of(options.model);
  const int64_t n = int64_t{options.batch_size} * options.replicas,
                side = kind.fixed_size > 0 ? kind.fixed_size : options.size;
  BenchNetwork network{.name = kind.name,
                       .module = nullptr,
                       .forward = nullptr,
                       .layers = nullptr,
                       .images = at::randn({n, kind.channels, side, side}),
                       .labels = kind.labels_pixels ? at::randint(0, kind.classes, {n, side, side}, at::kLong)
                                                    : at::randint(0, kind.classes, {n}, at::kLong),
                       .classes = kind.classes};
  kind.build(network);
  return network;
}

}  // namespace lockstep::worker
