// Objects that are used again and again, by one thread at a time each.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace lockstep::datasets {

// As many objects are made as threads work at once. Any thread.
template <typename T>
class FreeList {
 public:
  // Returns an object that nobody else has. It comes back when the pointer goes, and the list outlives that.
  auto take() {
    const auto give_back = [this](T* object) {
      const std::lock_guard lock(mutex_);
      free_.emplace_back(object);  // there is room
    };
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      free_.reserve(++made_);
      return std::unique_ptr<T, decltype(give_back)>(new T, give_back);
    }
    std::unique_ptr<T> last = std::move(free_.back());
    free_.pop_back();
    return std::unique_ptr<T, decltype(give_back)>(last.release(), give_back);
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> free_;
  size_t made_ = 0;
};

}  // namespace lockstep::datasets
