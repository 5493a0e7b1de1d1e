// The backend of a world of one rank: every collective has its right result without any communication.
#pragma once

#include <map>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::comm {

class SingleCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const char* backend() const override { return "single"; }
  bool shares(const at::Tensor&) const override { return true; }
  bool has_views() const override { return true; }
  std::vector<at::Tensor> views_of(int, const std::vector<at::Tensor>& mine) override { return mine; }
  void progress() override {}
  void abort(const std::string&) noexcept override {}

 protected:
  std::shared_ptr<Work> begin(Call call) override;
  std::unique_ptr<Communicator> group(const std::vector<int>& members) override;

 private:
  struct Receive;
  class ReceiveWork;

  void begin_send(const Call& call);
  std::shared_ptr<Work> begin_receive(const Call& call);
  void deliver(const at::Tensor& message, const Call& call) const;

  std::multimap<int, at::Tensor> sent_;                         // by tag: messages to itself that wait for a receive
  std::multimap<int, std::shared_ptr<Receive>> receives_ = {};  // by tag: receives that wait for a message
};

}  // namespace lockstep::comm
