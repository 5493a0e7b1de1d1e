// A plain ring all-reduce in place of the fold, for comparison and for users who do not need equal bits: the order of
// the additions depends on the number of ranks. Patarasuk & Yuan, "Bandwidth optimal all-reduce algorithms for clusters
// of workstations" (2009).
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::comm {

class RingWork;

// Wraps another communicator. Folds and all_reduces go around a ring of that communicator's messages: each of N ranks
// sends 2(N-1) messages of 1/N of the data. All other calls are forwarded.
class RingCommunicator final : public Communicator {
 public:
  explicit RingCommunicator(std::unique_ptr<Communicator> below);

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
  std::shared_ptr<Work> begin(Call call) override;
  std::unique_ptr<Communicator> group(const std::vector<int>& members) override;

 private:
  std::unique_ptr<Communicator> below_;
  int calls_ = 0;
  std::deque<std::shared_ptr<RingWork>> under_way_;
};

}  // namespace lockstep::comm
