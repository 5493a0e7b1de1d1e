#include "lockstep/checkpoint/tensor_difference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "lockstep/checkpoint/contents/numbers.h"

namespace lockstep::checkpoint {
namespace {

constexpr long double kInfinity = std::numeric_limits<long double>::infinity();

bool is_nan(const Numbers& numbers, int64_t i) {
  return std::isnan(numbers.real(i)) || std::isnan(numbers.imaginary(i));
}

bool is_same_number(const Numbers& a, const Numbers& b, int64_t i) {
  if (is_nan(a, i) || is_nan(b, i)) return is_nan(a, i) && is_nan(b, i);
  return a.real(i) == b.real(i) && a.imaginary(i) == b.imaginary(i);
}

long double distance(const Numbers& a, const Numbers& b, int64_t i) {
  if (is_same_number(a, b, i)) return 0;
  const long double real = a.real(i) - b.real(i), imaginary = a.imaginary(i) - b.imaginary(i);
  const long double apart = imaginary == 0 ? std::abs(real) : std::hypot(real, imaginary);
  return std::isnan(apart) ? kInfinity : apart;
}

long double to_larger(const Numbers& a, const Numbers& b, int64_t i, long double apart) {
  if (apart == 0 || std::isinf(apart)) return apart;
  return apart / std::max(std::abs(a.magnitude(i)), std::abs(b.magnitude(i)));
}

std::vector<int64_t> index_of(int64_t position, at::IntArrayRef sizes) {
  std::vector<int64_t> index(sizes.size());
  for (size_t i = sizes.size(); i > 0; --i) {
    index[i - 1] = position % sizes[i - 1];
    position /= sizes[i - 1];
  }
  return index;
}

// Two tensors, compared part by part.
class Parts {
 public:
  Parts(const at::Tensor& a, const at::Tensor& b)
      : a_(flattened(a)), b_(flattened(b)), sizes_(a.sizes()), same_type_(a.scalar_type() == b.scalar_type()) {}

  TensorDifference compare() {
    for (int64_t begin = 0; begin < a_.numel(); begin += Numbers::kAtOnce) {
      compare_part(begin, std::min(Numbers::kAtOnce, a_.numel() - begin));
    }
    return std::move(found_);
  }

 private:
  const char* bytes(const at::Tensor& flat, int64_t element) const {
    return static_cast<const char*>(flat.const_data_ptr()) + static_cast<size_t>(element) * flat.element_size();
  }
  bool has_same_bytes(int64_t begin, int64_t count) const {
    return std::memcmp(bytes(a_, begin), bytes(b_, begin), static_cast<size_t>(count) * a_.element_size()) == 0;
  }

  void compare_part(int64_t begin, int64_t count) {
    if (same_type_ && has_same_bytes(begin, count)) return;
    const Numbers a(a_, begin, count), b(b_, begin, count);
    for (int64_t i = 0; i < count; ++i) {
      if (same_type_ ? has_same_bytes(begin + i, 1) : is_same_number(a, b, i)) continue;
      ++found_.differing;
      const long double apart = distance(a, b, i);
      raise(found_.absolute, apart, begin + i, a, b, i);
      raise(found_.relative, to_larger(a, b, i, apart), begin + i, a, b, i);
    }
  }

  void raise(std::optional<LargestDifference>& largest, long double difference, int64_t position, const Numbers& a,
             const Numbers& b, int64_t i) const {
    const auto measured = static_cast<double>(difference);
    if (largest && measured <= largest->difference) return;
    largest = {.difference = measured,
               .index = index_of(position, sizes_),
               .a = static_cast<double>(a.real(i)),
               .b = static_cast<double>(b.real(i))};
  }

  at::Tensor a_, b_;
  at::IntArrayRef sizes_;
  bool same_type_;
  TensorDifference found_;
};

}  // namespace

TensorDifference difference_of(const at::Tensor& a, const at::Tensor& b) { return Parts(a, b).compare(); }

}  // namespace lockstep::checkpoint
