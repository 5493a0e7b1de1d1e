#include "lockstep/loop/board_watch.h"

namespace lockstep::loop {
namespace {

// This rank alone writes its part, so that nothing is lost between load and store.
void add(std::atomic<int64_t>& sum, int64_t more) {
  sum.store(sum.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

class BoardWatch final : public data::LoaderWatch {
 public:
  explicit BoardWatch(BoardRank& self) : self_(self) {}
  void wait_begins() override { self_.doing.set("waiting for data"); }
  void wait_ends(int64_t wait_ns, const data::ReadStats& stats) override {
    self_.doing.set("");
    add(self_.data_wait_ns, wait_ns);
    add(self_.data_read_ns, stats.read_ns);
    add(self_.data_decode_ns, stats.decode_ns);
    add(self_.data_transform_ns, stats.transform_ns);
  }

 private:
  BoardRank& self_;
};

}  // namespace

std::shared_ptr<data::LoaderWatch> board_watch(BoardRank& self) { return std::make_shared<BoardWatch>(self); }

}  // namespace lockstep::loop
