#include "lockstep/apps/ring/ring_communicator.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/comm/blocks.h"
#include "lockstep/comm/flat_fold.h"

namespace lockstep::apps {

using comm::Call;
using comm::Communicator;
using comm::OpKind;
using comm::ReduceOp;
using comm::Slice;
using comm::Work;

namespace {

// A ring's messages have tags of their own, apart from the users' tags.
constexpr int kFirstTag = 1 << 24, kTags = 1 << 16;

}  // namespace

// One all-reduce under way. In round i < N-1 rank r sends slice r-i and adds what comes to slice r-i-1; in the N-1
// rounds after that the finished slices go around.
class RingWork final : public Work {
 public:
  // `earlier` is the all-reduce begun before this one, or null.
  RingWork(Communicator& below, Call call, int tag, std::shared_ptr<RingWork> earlier)
      : below_(below), call_(std::move(call)), earlier_(std::move(earlier)), tag_(tag), began_ns_(monotonic_ns()) {
    if (call_.kind == OpKind::kFold) {
      flat_.emplace(call_);
      values_ = flat_->values();
    } else {
      values_ = call_.output.view({-1});
    }
    if (size() == 1) finish();
    next_round();
  }

  bool done() override {
    if (earlier_ && !earlier_->done()) return false;
    advance();
    return ended_ns_ != 0;
  }
  bool wait_for(std::chrono::nanoseconds time) override {
    const Deadline deadline(time);
    if (earlier_ && !earlier_->wait_for(time)) return false;
    while (ended_ns_ == 0 && receive_->wait_for(std::max(deadline.left(), std::chrono::nanoseconds(0))) &&
           send_->wait_for(std::max(deadline.left(), std::chrono::nanoseconds(0)))) {
      advance();
    }
    return ended_ns_ != 0;
  }
  // All-reduces run in the order of their calls on every rank, whatever the order of the waits. Otherwise a rank could
  // wait for a message that another rank sends only after a different wait.
  void wait() override {
    if (earlier_) earlier_->wait();
    while (ended_ns_ == 0) {
      receive_->wait();
      send_->wait();
      advance();
    }
  }
  std::chrono::nanoseconds elapsed() const override {
    return std::chrono::nanoseconds((ended_ns_ != 0 ? ended_ns_ : monotonic_ns()) - began_ns_);
  }

  bool ended() const { return ended_ns_ != 0; }
  // Makes progress without waiting.
  void advance() {
    while (ended_ns_ == 0 && receive_->done() && send_->done()) {
      if (round_ < size() - 1) add_received();
      ++round_;
      next_round();
    }
  }

 private:
  int size() const { return below_.size(); }
  int slice_number(int behind) const { return ((below_.rank() - behind) % size() + size()) % size(); }
  at::Tensor slice(int number) const {
    const Slice s = comm::slice_of(values_.numel(), number, size());
    return values_.slice(0, s.first, s.last);
  }

  // The slice that this rank receives in a round; rounds are numbered over both phases.
  int incoming() const { return round_ < size() - 1 ? slice_number(round_ + 1) : slice_number(round_ - size() + 1); }
  int outgoing() const { return round_ < size() - 1 ? slice_number(round_) : slice_number(round_ - size()); }

  void next_round() {
    if (ended_ns_ != 0) return;
    if (round_ == 2 * (size() - 1)) return finish();
    const at::Tensor coming = slice(incoming());
    received_ = round_ < size() - 1 ? at::empty(coming.sizes(), coming.options()) : coming;
    Call receive = comm::calls::receive(received_, slice_number(1), tag_);
    Call send = comm::calls::send(slice(outgoing()), slice_number(-1), tag_);
    receive.timeout = send.timeout = call_.timeout;
    receive.what = send.what = call_.label() + " (ring)";
    receive_ = below_.start(std::move(receive));
    send_ = below_.start(std::move(send));
  }

  void add_received() {
    const at::Tensor own = slice(incoming());
    comm::combine_block(own.scalar_type(), call_.op, received_.const_data_ptr(), own.const_data_ptr(), own.data_ptr(),
                        own.numel());
  }

  void finish() {
    if (call_.op == ReduceOp::kMean && size() > 1)
      comm::divide_block(values_.scalar_type(), values_.data_ptr(), size(), values_.numel());
    if (flat_) flat_->finish();
    ended_ns_ = monotonic_ns();
    earlier_.reset();
    flat_.reset();
    call_ = Call();
    values_.reset();
    received_.reset();
  }

  Communicator& below_;
  Call call_;
  std::shared_ptr<RingWork> earlier_;
  std::optional<comm::FlatFold> flat_;
  at::Tensor values_, received_;
  int tag_;
  int round_ = 0;
  std::shared_ptr<Work> receive_, send_;
  int64_t began_ns_, ended_ns_ = 0;
};

RingCommunicator::RingCommunicator(std::unique_ptr<Communicator> below) : below_(std::move(below)) {}

std::shared_ptr<Work> RingCommunicator::begin(Call call) {
  if (call.kind != OpKind::kFold && call.kind != OpKind::kAllReduce) return below_->start(std::move(call));
  while (!under_way_.empty() && under_way_.front()->ended()) under_way_.pop_front();
  auto work = std::make_shared<RingWork>(*below_, std::move(call), kFirstTag + calls_++ % kTags,
                                         under_way_.empty() ? nullptr : under_way_.back());
  under_way_.push_back(work);
  return work;
}

void RingCommunicator::progress() {
  below_->progress();
  for (const auto& work : under_way_) work->advance();
  while (!under_way_.empty() && under_way_.front()->done()) under_way_.pop_front();
}

std::unique_ptr<Communicator> RingCommunicator::group(const std::vector<int>& members) {
  auto group = below_->make_group(members);
  return group ? std::make_unique<RingCommunicator>(std::move(group)) : nullptr;
}

}  // namespace lockstep::apps
