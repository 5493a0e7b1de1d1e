// A number that a device may still be computing.
#pragma once

#include <functional>
#include <memory>
#include <utility>

namespace lockstep {

// Reading it waits for the device, once; copies share what was read. One thread at a time.
class LateNumber {
 public:
  LateNumber(double value = 0) : value_(value) {}
  // `read` is called by the first who reads, and waits until the number is there.
  explicit LateNumber(std::function<double()> read) : late_(std::make_shared<Late>(Late{std::move(read), 0})) {}

  // PyTorch's name: item(), item<float>().
  template <typename Number = double>
  Number item() const {
    return static_cast<Number>(read());
  }
  operator double() const { return read(); }
  // Whether reading it waits for nothing.
  bool is_there() const { return late_ == nullptr || !late_->read; }

 private:
  double read() const {
    if (late_ == nullptr) return value_;
    if (late_->read) {
      late_->value = late_->read();
      late_->read = nullptr;  // where it throws, the next who reads is told as well
    }
    return late_->value;
  }

  struct Late {
    std::function<double()> read;  // empty once it was called
    double value;
  };
  double value_ = 0;
  std::shared_ptr<Late> late_;
};

// nlohmann::json's way to take one.
template <typename Json>
void to_json(Json& json, const LateNumber& number) {
  json = number.item();
}

}  // namespace lockstep
