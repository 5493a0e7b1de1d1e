// Takes values one ahead of their use, so that the next is on its way while the present one is worked with.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <utility>

namespace lockstep::train {

// One thread.
template <typename Value>
class OneAhead {
 public:
  using Take = std::function<Value()>;

  explicit OneAhead(Take take) : take_(std::move(take)) {}

  // Whether the next value was taken already.
  bool has_taken() const { return taken_ || failed_; }
  // Takes the next value. What that throws comes when the value is asked for: who never needs it never hears of it.
  void take() {
    try {
      taken_ = take_();
    } catch (...) {
      failed_ = std::current_exception();
    }
  }

  // Returns the value that was taken. Throws what taking it has thrown.
  Value next() {
    if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
    return *std::exchange(taken_, std::nullopt);
  }

  // The value that next() would return; null if there is none.
  const Value* ahead() const { return taken_ ? &*taken_ : nullptr; }

 private:
  Take take_;
  std::optional<Value> taken_;
  std::exception_ptr failed_;
};

}  // namespace lockstep::train
