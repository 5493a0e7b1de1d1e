// A world of one rank: the right results of every collective, with nobody to talk to.
#pragma once

#include "lockstep/comm/communicator.h"

namespace lockstep::comm {

class SingleCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const char* backend() const override { return "single"; }
  bool shares(const at::Tensor&) const override { return true; }

  std::shared_ptr<Work> fold(std::vector<at::Tensor> tensors, FoldOptions options) override;
  void progress() override {}
  void all_reduce(const at::Tensor& tensor, ReduceOp op) override;
  void broadcast(const at::Tensor& tensor, int root) override;
  at::Tensor all_gather(const at::Tensor& tensor) override;
  at::Tensor reduce_scatter(const at::Tensor& tensor, ReduceOp op) override;
  void barrier() override {}
  void abort(const std::string&) noexcept override {}
};

}  // namespace lockstep::comm
