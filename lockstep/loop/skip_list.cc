#include "lockstep/loop/skip_list.h"

#include <ATen/ops/full.h>

#include "lockstep/comm/text_exchange.h"

namespace lockstep::loop {

// Nearly always no rank has anything to tell: a number, and no texts.
std::shared_ptr<data::SkippedSamples> skip_list(const World& world, int64_t most) {
  if (most == 0) return nullptr;
  return std::make_shared<data::SkippedSamples>(most, [&comm = world.communicator()](const std::string& own) {
    const at::Tensor any = at::full({1}, own.empty() ? 0 : 1, at::TensorOptions(at::kLong));
    comm.all_reduce(any, comm::ReduceOp::kMax);
    return any.item<int64_t>() == 0 ? std::vector<std::string>() : comm::gather_texts(comm, own);
  });
}

}  // namespace lockstep::loop
