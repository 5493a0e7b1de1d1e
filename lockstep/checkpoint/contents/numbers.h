// The elements of a tensor of any type as numbers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace lockstep::checkpoint {

// The tensor's elements in row-major order, on the CPU, as one dimension. It borrows the tensor's memory where it can.
at::Tensor flattened(const at::Tensor& tensor);

// Some elements of a flattened tensor, copied. A long double holds every number of 64 bits and every double exactly;
// true is 1.
class Numbers {
 public:
  static constexpr int64_t kAtOnce = 1 << 18;  // a count of elements whose copies stay in the cache

  Numbers(const at::Tensor& flat, int64_t begin, int64_t count);

  int64_t count() const { return count_; }
  bool complex() const { return kind_ == Kind::kComplex; }
  long double real(int64_t i) const {
    switch (kind_) {
      case Kind::kReal:
        return reals_[i];
      case Kind::kComplex:
        return reals_[2 * i];
      case Kind::kSigned:
        return static_cast<long double>(wholes_[i]);
      case Kind::kUnsigned:
        return static_cast<long double>(static_cast<uint64_t>(wholes_[i]));
    }
    return 0;
  }
  long double imaginary(int64_t i) const { return complex() ? reals_[2 * i + 1] : 0; }
  // The number itself; of a complex one the magnitude, which is NaN where a part is.
  long double magnitude(int64_t i) const {
    if (!complex()) return real(i);
    if (std::isnan(real(i)) || std::isnan(imaginary(i))) return std::numeric_limits<long double>::quiet_NaN();
    return std::hypot(real(i), imaginary(i));
  }

 private:
  enum class Kind { kReal, kComplex, kSigned, kUnsigned };

  at::Tensor wide_;  // float64, complex128 or int64
  Kind kind_;
  int64_t count_;
  const double* reals_ = nullptr;
  const int64_t* wholes_ = nullptr;
};

}  // namespace lockstep::checkpoint
