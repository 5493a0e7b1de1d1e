#include "lockstep/optim/kernels.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <type_traits>

#include "lockstep/base/error.h"
#include "lockstep/optim/device_pass.h"

namespace lockstep::optim {
namespace {

constexpr int64_t kGrain = 32768;  // elements that are worth a thread

template <typename T>
T* data_of(const at::Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->mutable_data_ptr<T>();
}

template <typename T>
Elements<T> elements_of(const Operands& o) {
  return {.parameter = o.parameter.mutable_data_ptr<T>(),
          .gradient = o.gradient.const_data_ptr<T>(),
          .state = {data_of<T>(o.state[0]), data_of<T>(o.state[1]), data_of<T>(o.state[2])},
          .size = static_cast<size_t>(o.parameter.numel()),
          .average = data_of<T>(o.average)};
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

// fp32 copies of a piece that stays in the nearest cache.
template <typename T>
class Widened {
 public:
  static constexpr size_t kPiece = 512;

  explicit Widened(const Elements<T>& narrow) : narrow_(narrow) {
    wide_ = {.parameter = widen(narrow.parameter, 0),
             .gradient = widen(narrow.gradient, 1),
             .state = {widen(narrow.state[0], 2), widen(narrow.state[1], 3), widen(narrow.state[2], 4)},
             .size = narrow.size,
             .average = widen(narrow.average, 5)};
  }

  // The average is that of the weights as they are stored.
  void step(const Rule& rule, const Extras& extras) {
    Elements<float> weights = wide_;
    weights.average = nullptr;
    run_pass(rule, weights, extras);
    std::copy_n(wide_.parameter, narrow_.size, narrow_.parameter);
    for (size_t k = 0; k < narrow_.state.size(); ++k) {
      if (narrow_.state[k] != nullptr) std::copy_n(wide_.state[k], narrow_.size, narrow_.state[k]);
    }
    if (narrow_.average == nullptr) return;
    std::copy_n(narrow_.parameter, narrow_.size, wide_.parameter);
    average(extras.average_share);
  }
  void average(double share) {
    run_average(share, wide_);
    std::copy_n(wide_.average, narrow_.size, narrow_.average);
  }

 private:
  float* widen(const T* data, size_t k) {
    if (data == nullptr) return nullptr;
    std::copy_n(data, narrow_.size, buffer_[k]);
    return buffer_[k];
  }

  Elements<T> narrow_;
  Elements<float> wide_;
  float buffer_[6][kPiece];
};

template <typename T>
constexpr bool kIsWide = std::is_same_v<T, float> || std::is_same_v<T, double>;

// Calls `work` on parts of the elements with libtorch's threads: with Widened<T>s of pieces for the narrow types.
template <typename T, typename Work>
void run_parts(const Elements<T>& all, const Work& work) {
  at::parallel_for(0, static_cast<int64_t>(all.size), kGrain, [&](int64_t first, int64_t last) {
    const auto begin = static_cast<size_t>(first), end = static_cast<size_t>(last);
    if constexpr (kIsWide<T>) {
      const Elements<T> part = slice(all, begin, end);
      work(part);
    } else {
      for (size_t at = begin; at < end; at += Widened<T>::kPiece) {
        Widened<T> piece(slice(all, at, std::min(at + Widened<T>::kPiece, end)));
        work(piece);
      }
    }
  });
}

template <typename T>
void step_all(const Rule& rule, const Extras& extras, const Elements<T>& all) {
  run_parts(all, [&](auto& part) {
    if constexpr (kIsWide<T>) {
      run_pass(rule, part, extras);
    } else {
      part.step(rule, extras);
    }
  });
}

template <typename T>
void average_all(double share, const Elements<T>& all) {
  run_parts(all, [&](auto& part) {
    if constexpr (kIsWide<T>) {
      run_average(share, part);
    } else {
      part.average(share);
    }
  });
}

// Calls visit(T()) with the parameter's element type.
template <typename Visit>
void with_type(const at::Tensor& parameter, const Visit& visit) {
  switch (parameter.scalar_type()) {
    case at::kFloat:
      return visit(float());
    case at::kDouble:
      return visit(double());
    case at::kBFloat16:
      return visit(at::BFloat16());
    case at::kHalf:
      return visit(at::Half());
    default:
      throw BugError("an optimizer's step on a parameter of ", parameter.toString());
  }
}

}  // namespace

void step_parameter(const Rule& rule, const Operands& operands, const Extras& extras) {
  if (!operands.parameter.is_cpu()) return step_on_device(rule, operands, extras);
  with_type(operands.parameter, [&](auto type) { step_all(rule, extras, elements_of<decltype(type)>(operands)); });
}

void average_parameter(const at::Tensor& parameter, const at::Tensor& average, double share) {
  if (!parameter.is_cpu()) return average_on_device(parameter, average, share);
  with_type(parameter, [&](auto type) {
    using T = decltype(type);
    average_all(share, Elements<T>{.parameter = parameter.mutable_data_ptr<T>(),
                                   .gradient = nullptr,
                                   .state = {},
                                   .size = static_cast<size_t>(parameter.numel()),
                                   .average = average.mutable_data_ptr<T>()});
  });
}

}  // namespace lockstep::optim
