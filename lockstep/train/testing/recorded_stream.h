// For tests: a copy stream on the CPU that writes down what is asked of it, and sees host memory that is let go of
// before the host has waited for its copy.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>
#include <c10/core/Storage.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/train/copy_stream.h"

namespace lockstep::train::testing_support {

class RecordedStream final : public CopyStream {
 public:
  struct Log {
    std::vector<std::string> calls;                                                    // "copy 4": as often in a row
    std::map<int, std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>>> read_until;  // of each event: its copies'
    std::vector<const c10::StorageImpl*> used;                                         // by the computing stream
    int events = 0;
    int copies = 0;

    void add(const std::string& call) {
      if (call != last_) times_ = 0, calls.emplace_back();
      last_ = call;
      calls.back() = ++times_ == 1 ? call : cat(call, " × ", times_);
    }
    std::vector<std::string> taken() {
      last_.clear();
      return std::exchange(calls, {});
    }

   private:
    std::string last_;
    int times_ = 0;
  };

  const std::shared_ptr<Log>& log() const { return log_; }
  int failing_copy = -1;  // the number of the copy that fails, once; counted from 0

  void run(const std::function<void()>& work) override {
    const Current current(*log_);
    work();
  }

  // Always a copy, as of memory that is not pinned.
  at::Tensor pinned(const at::Tensor& host) override {
    at::Tensor copy = host.clone();
    pinned_.insert(copy.storage().unsafeGetStorageImpl());
    return copy;
  }

  at::Tensor copy(const at::Tensor& pinned) override {
    EXPECT_EQ(Current::log, log_.get());
    EXPECT_EQ(pinned_.erase(pinned.storage().unsafeGetStorageImpl()), 1u) << "it is not pinned";
    if (log_->copies++ == failing_copy) throw IoError("the copy failed");
    log_->add("copy");
    reads_.push_back(pinned.storage().getWeakStorageImpl());
    return pinned.clone();
  }

  std::unique_ptr<Arrival> record() override {
    EXPECT_EQ(Current::log, nullptr);
    const int event = ++log_->events;
    log_->add(cat("event ", event));
    log_->read_until[event] = std::exchange(reads_, {});
    return std::make_unique<Recorded>(log_, event);
  }

  void also_used_by_compute(const at::Tensor& on_device) override {
    log_->used.push_back(on_device.storage().unsafeGetStorageImpl());
    log_->add("used");
  }

 private:
  // While it lives, the calling thread queues its work on the stream. What is looked up meanwhile is written down.
  class Current {
   public:
    explicit Current(Log& of) {
      log = &of;
      callback_ = at::addThreadLocalCallback(at::RecordFunctionCallback([](const at::RecordFunction& op) {
        if (std::string_view(op.name()) == "aten::index_select") log->add("look up");
        return std::unique_ptr<at::ObserverContext>();
      }));
    }
    ~Current() {
      at::removeCallback(callback_);
      log = nullptr;
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    static inline thread_local Log* log = nullptr;

   private:
    at::CallbackHandle callback_;
  };

  class Recorded final : public Arrival {
   public:
    Recorded(std::shared_ptr<Log> log, int event) : log_(std::move(log)), event_(event) {}
    void compute_waits() override { log_->add(cat("compute waits for ", event_)); }
    void host_waits() override {
      log_->add(cat("host waits for ", event_));
      for (const auto& memory : log_->read_until[event_]) EXPECT_FALSE(memory.expired()) << "a copy may still read it";
      log_->read_until.erase(event_);
    }

   private:
    std::shared_ptr<Log> log_;
    int event_;
  };

  std::shared_ptr<Log> log_ = std::make_shared<Log>();
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> reads_;
  std::set<const c10::StorageImpl*> pinned_;  // and not copied yet
};

}  // namespace lockstep::train::testing_support
