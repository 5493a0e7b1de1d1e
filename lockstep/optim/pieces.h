// How kernels reach a parameter's memory: in blocks, dealt to libtorch's intra-op threads, which appear as fp32 or fp64
// whatever they are stored in. Which elements are a block depends on nothing but the parameter's size.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/optim/kernels.h"
#include "lockstep/optim/narrow.h"

namespace lockstep::optim {

constexpr int64_t kBlock = 4096;      // elements
constexpr int64_t kBlocksApiece = 8;  // that are worth a thread
constexpr size_t kPiece = 1024;       // that stay in the nearest cache in fp32

// What a pass has to do with, beside reading weights and state, and the average.
struct Touches {
  bool gradient = true;
  bool weight = true;  // written
  bool state = true;   // written
};

template <typename T>
T* data_of(const at::Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->mutable_data_ptr<T>();
}

template <typename T>
Elements<T> slice(const Elements<T>& all, size_t begin, size_t end) {
  const auto from = [begin](auto* data) { return data == nullptr ? nullptr : data + begin; };
  return {.parameter = from(all.parameter),
          .gradient = from(all.gradient),
          .state = {from(all.state[0]), from(all.state[1]), from(all.state[2])},
          .size = end - begin,
          .average = from(all.average)};
}

// The operands but for the gradient, which may be of another type.
template <typename T>
Elements<T> elements_of(const Operands& o) {
  return {.parameter = o.parameter.mutable_data_ptr<T>(),
          .gradient = nullptr,
          .state = {data_of<T>(o.state[0]), data_of<T>(o.state[1]), data_of<T>(o.state[2])},
          .size = static_cast<size_t>(o.parameter.numel()),
          .average = data_of<T>(o.average)};
}

// All in one wide type.
template <typename T>
class Plain {
 public:
  Plain(const Operands& o, Touches touches) : all_(elements_of<T>(o)) {
    if (touches.gradient) all_.gradient = o.gradient.template const_data_ptr<T>();
  }

  template <typename Work>
  void visit(size_t begin, size_t end, const Extras&, const Work& work) const {
    work(slice(all_, begin, end));
  }

 private:
  Elements<T> all_;
};

// All in fp16 or bf16: fp32 copies of a piece, which are rounded when they are stored. The average is that of the
// weights as they are stored.
template <typename T>
class Narrow {
 public:
  Narrow(const Operands& o, Touches touches) : all_(elements_of<T>(o)), touches_(touches) {
    if (touches.gradient) all_.gradient = o.gradient.template const_data_ptr<T>();
  }

  template <typename Work>
  void visit(size_t begin, size_t end, const Extras& extras, const Work& work) const {
    const Elements<T> part = slice(all_, begin, end);
    float buffer[6][kPiece];
    size_t used = 0;
    const auto widened = [&](const T* data) -> float* {
      if (data == nullptr) return nullptr;
      widen(data, part.size, buffer[used]);
      return buffer[used++];
    };
    Elements<float> wide{.parameter = widened(part.parameter),
                         .gradient = widened(part.gradient),
                         .state = {widened(part.state[0]), widened(part.state[1]), widened(part.state[2])},
                         .size = part.size};
    work(wide);
    if (touches_.weight) narrow(wide.parameter, part.size, part.parameter);
    for (size_t k = 0; k < part.state.size(); ++k) {
      if (touches_.state && part.state[k] != nullptr) narrow(wide.state[k], part.size, part.state[k]);
    }
    if (part.average == nullptr) return;
    widen(part.parameter, part.size, wide.parameter);
    wide.average = widened(part.average);
    run_average(extras.average_share, wide);
    narrow(wide.average, part.size, part.average);
  }

 private:
  Elements<T> all_;
  Touches touches_;
};

// An fp32 master: its gradient and its rounded copy are fp16 or bf16, all else is fp32.
template <typename T>
class Mastered {
 public:
  Mastered(const Operands& o, Touches touches)
      : all_(elements_of<float>(o)),
        gradient_(touches.gradient ? o.gradient.template const_data_ptr<T>() : nullptr),
        rounded_(touches.weight ? data_of<T>(o.rounded) : nullptr) {}

  template <typename Work>
  void visit(size_t begin, size_t end, const Extras&, const Work& work) const {
    Elements<float> part = slice(all_, begin, end);
    float buffer[kPiece];
    if (gradient_ != nullptr) {
      widen(gradient_ + begin, part.size, buffer);
      part.gradient = buffer;
    }
    work(part);
    if (rounded_ != nullptr) narrow(part.parameter, part.size, rounded_ + begin);
  }

 private:
  Elements<float> all_;
  const T* gradient_;
  T* rounded_;
};

// Calls act with the operands' memory, of its types.
template <typename Act>
void with_memory(const Operands& o, Touches touches, const Act& act) {
  const at::ScalarType weight = o.parameter.scalar_type(), gradient = o.gradient.scalar_type();
  if (weight == at::kFloat && gradient == at::kBFloat16) return act(Mastered<at::BFloat16>(o, touches));
  if (weight == at::kFloat && gradient == at::kHalf) return act(Mastered<at::Half>(o, touches));
  switch (weight) {
    case at::kFloat:
      return act(Plain<float>(o, touches));
    case at::kDouble:
      return act(Plain<double>(o, touches));
    case at::kBFloat16:
      return act(Narrow<at::BFloat16>(o, touches));
    case at::kHalf:
      return act(Narrow<at::Half>(o, touches));
    default:
      throw BugError("an optimizer's step on a parameter of ", o.parameter.toString());
  }
}

inline int64_t blocks_of(const at::Tensor& parameter) { return (parameter.numel() + kBlock - 1) / kBlock; }

// Calls work(elements, block) for pieces of each block, in their order; the blocks in any order, by several threads.
template <typename Work>
void for_each_piece(const Operands& o, const Extras& extras, Touches touches, const Work& work) {
  with_memory(o, touches, [&](const auto& memory) {
    const auto size = static_cast<size_t>(o.parameter.numel());
    at::parallel_for(0, blocks_of(o.parameter), kBlocksApiece, [&](int64_t first, int64_t last) {
      const auto end = std::min(static_cast<size_t>(last * kBlock), size);
      for (auto at = static_cast<size_t>(first * kBlock); at < end; at += kPiece) {
        const auto block = at / static_cast<size_t>(kBlock);
        memory.visit(at, std::min(at + kPiece, end), extras, [&](const auto& part) { work(part, block); });
      }
    });
  });
}

}  // namespace lockstep::optim
