// The blocks of a parameter's memory that libtorch's intra-op threads process. The parameter's size alone decides which
// elements are a block.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/optim/kernels/elements.h"
#include "lockstep/optim/kernels/operands.h"

namespace lockstep::optim {

constexpr int64_t kBlock = 4096;      // elements
constexpr int64_t kBlocksApiece = 8;  // so many blocks are worth a thread

template <typename T>
T* data_of(const at::Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->mutable_data_ptr<T>();
}

template <typename W, typename G>
Elements<W, G> typed_elements(const Operands& o) {
  return {.parameter = o.parameter.mutable_data_ptr<W>(),
          .gradient = o.gradient.const_data_ptr<G>(),
          .state = {data_of<W>(o.state[0]), data_of<W>(o.state[1]), data_of<W>(o.state[2])},
          .size = static_cast<size_t>(o.parameter.numel()),
          .average = data_of<Computed<W>>(o.average),
          .rounded = data_of<G>(o.rounded)};
}

// Throws BugError for a dtype that Operands does not name.
inline AnyElements elements_of(const Operands& o) {
  const at::ScalarType weight = o.parameter.scalar_type(), gradient = o.gradient.scalar_type();
  if (weight == at::kFloat && gradient == at::kBFloat16) return typed_elements<float, at::BFloat16>(o);
  if (weight == at::kFloat && gradient == at::kHalf) return typed_elements<float, at::Half>(o);
  switch (weight) {
    case at::kFloat:
      return typed_elements<float, float>(o);
    case at::kDouble:
      return typed_elements<double, double>(o);
    case at::kBFloat16:
      return typed_elements<at::BFloat16, at::BFloat16>(o);
    case at::kHalf:
      return typed_elements<at::Half, at::Half>(o);
    default:
      throw BugError("an optimizer's step on a parameter of ", o.parameter.toString());
  }
}

template <typename W, typename G>
Elements<W, G> slice(const Elements<W, G>& all, size_t begin, size_t end) {
  const auto from = [begin](auto* data) { return data == nullptr ? nullptr : data + begin; };
  return {.parameter = from(all.parameter),
          .gradient = from(all.gradient),
          .state = {from(all.state[0]), from(all.state[1]), from(all.state[2])},
          .size = end - begin,
          .average = from(all.average),
          .rounded = from(all.rounded)};
}

inline int64_t blocks_of(const at::Tensor& parameter) { return (parameter.numel() + kBlock - 1) / kBlock; }

// Calls work(elements, block) for each block, in any order, by several threads.
template <typename Work>
void for_each_block(const Operands& o, const Work& work) {
  const AnyElements all = elements_of(o);
  const auto size = static_cast<size_t>(o.parameter.numel());
  at::parallel_for(0, blocks_of(o.parameter), kBlocksApiece, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      const auto begin = static_cast<size_t>(block * kBlock), end = std::min(begin + kBlock, size);
      work(std::visit([&](const auto& e) -> AnyElements { return slice(e, begin, end); }, all),
           static_cast<size_t>(block));
    }
  });
}

// Adds up work(elements) of all blocks, in the order of the blocks.
template <typename Sum, typename Work>
Sum sum_over_blocks(const Operands& o, const Work& work) {
  std::vector<Sum> blocks(static_cast<size_t>(blocks_of(o.parameter)));
  for_each_block(o, [&](const AnyElements& elements, size_t block) { blocks[block] = work(elements); });
  Sum all{};
  for (const Sum& block : blocks) all += block;
  return all;
}

}  // namespace lockstep::optim
