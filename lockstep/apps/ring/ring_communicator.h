// A plain ring all-reduce in place of the fold, for `bench allreduce` to compare the two: the order of the additions
// depends on the number of ranks. Patarasuk & Yuan, "Bandwidth optimal all-reduce algorithms for clusters
// of workstations" (2009).
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::apps {

class RingWork;

// Wraps another communicator. Folds and all_reduces go around a ring of that communicator's messages: each of N ranks
// sends 2(N-1) messages of 1/N of the data. All other calls are forwarded.
class RingCommunicator final : public comm::Communicator {
 public:
  explicit RingCommunicator(std::unique_ptr<comm::Communicator> below);

  int rank() const override { return below_->rank(); }
  int size() const override { return below_->size(); }
  const char* backend() const override { return below_->backend(); }
  std::string describe() const override { return below_->describe() + ", all-reduce by a ring"; }
  bool same_bits() const override { return false; }
  bool shares(const at::Tensor& tensor) const override { return below_->shares(tensor); }
  bool has_views() const override { return below_->has_views(); }
  std::vector<at::Tensor> views_of(int root, const std::vector<at::Tensor>& mine) override {
    return below_->views_of(root, mine);
  }
  void progress() override;
  void abort(const std::string& reason) noexcept override { below_->abort(reason); }

 protected:
  std::shared_ptr<comm::Work> begin(comm::Call call) override;
  std::unique_ptr<comm::Communicator> group(const std::vector<int>& members) override;

 private:
  std::unique_ptr<comm::Communicator> below_;
  int calls_ = 0;
  std::deque<std::shared_ptr<RingWork>> under_way_;
};

}  // namespace lockstep::apps
