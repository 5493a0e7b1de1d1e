#include "lockstep/optim/kernels.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <type_traits>

#include "lockstep/base/error.h"

namespace lockstep::optim {
namespace {

constexpr int64_t kGrain = 32768;  // elements that are worth a thread

template <typename T>
Elements<T> elements_of(const Operands& operands) {
  Elements<T> all{.parameter = operands.parameter.mutable_data_ptr<T>(),
                  .gradient = operands.gradient.const_data_ptr<T>(),
                  .state = {},
                  .size = static_cast<size_t>(operands.parameter.numel())};
  for (size_t k = 0; k < all.state.size(); ++k) {
    if (operands.state[k] != nullptr) all.state[k] = operands.state[k]->mutable_data_ptr<T>();
  }
  return all;
}

template <typename T>
Elements<T> slice(const Elements<T>& all, size_t begin, size_t end) {
  Elements<T> part{
      .parameter = all.parameter + begin, .gradient = all.gradient + begin, .state = {}, .size = end - begin};
  for (size_t k = 0; k < all.state.size(); ++k) {
    if (all.state[k] != nullptr) part.state[k] = all.state[k] + begin;
  }
  return part;
}

// Through fp32, a piece at a time that stays in the nearest cache.
template <typename T>
void run_widened(const Rule& rule, const Elements<T>& narrow) {
  constexpr size_t kPiece = 512;
  float buffer[5][kPiece];
  for (size_t begin = 0; begin < narrow.size; begin += kPiece) {
    const Elements<T> piece = slice(narrow, begin, std::min(begin + kPiece, narrow.size));
    Elements<float> wide{.parameter = buffer[0], .gradient = buffer[1], .state = {}, .size = piece.size};
    std::copy_n(piece.parameter, piece.size, buffer[0]);
    std::copy_n(piece.gradient, piece.size, buffer[1]);
    for (size_t k = 0; k < piece.state.size(); ++k) {
      if (piece.state[k] == nullptr) continue;
      wide.state[k] = buffer[2 + k];
      std::copy_n(piece.state[k], piece.size, wide.state[k]);
    }
    run_pass(rule, wide);
    std::copy_n(wide.parameter, piece.size, piece.parameter);
    for (size_t k = 0; k < piece.state.size(); ++k) {
      if (piece.state[k] != nullptr) std::copy_n(wide.state[k], piece.size, piece.state[k]);
    }
  }
}

template <typename T>
void run_all(const Rule& rule, const Operands& operands) {
  const Elements<T> all = elements_of<T>(operands);
  at::parallel_for(0, static_cast<int64_t>(all.size), kGrain, [&](int64_t begin, int64_t end) {
    const Elements<T> part = slice(all, static_cast<size_t>(begin), static_cast<size_t>(end));
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      run_pass(rule, part);
    } else {
      run_widened(rule, part);
    }
  });
}

}  // namespace

void step_parameter(const Rule& rule, const Operands& operands) {
  switch (operands.parameter.scalar_type()) {
    case at::kFloat:
      return run_all<float>(rule, operands);
    case at::kDouble:
      return run_all<double>(rule, operands);
    case at::kBFloat16:
      return run_all<at::BFloat16>(rule, operands);
    case at::kHalf:
      return run_all<at::Half>(rule, operands);
    default:
      throw BugError("an optimizer's step on a parameter of ", operands.parameter.toString());
  }
}

}  // namespace lockstep::optim
