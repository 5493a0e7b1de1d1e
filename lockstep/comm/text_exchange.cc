#include "lockstep/comm/text_exchange.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

namespace lockstep::comm {

std::vector<std::string> gather_texts(Communicator& comm, const std::string& text) {
  const at::Tensor lengths = comm.all_gather(at::full({1}, static_cast<int64_t>(text.size()), at::kLong));
  int64_t longest = 0;
  for (int k = 0; k < comm.size(); ++k) longest = std::max(longest, lengths.const_data_ptr<int64_t>()[k]);
  const at::Tensor mine = at::zeros({longest}, at::kByte);
  std::copy(text.begin(), text.end(), static_cast<char*>(mine.mutable_data_ptr()));
  const at::Tensor all = comm.all_gather(mine);
  std::vector<std::string> texts;
  for (int k = 0; k < comm.size(); ++k) {
    const auto* row = static_cast<const char*>(all.const_data_ptr()) + k * longest;
    texts.emplace_back(row, static_cast<size_t>(lengths.const_data_ptr<int64_t>()[k]));
  }
  return texts;
}

std::string text_of_rank(Communicator& comm, int rank, const std::string& text) {
  const at::Tensor length = at::full({1}, static_cast<int64_t>(text.size()), at::kLong);
  comm.broadcast(length, rank);
  const at::Tensor bytes = at::zeros({length.const_data_ptr<int64_t>()[0]}, at::kByte);
  if (comm.rank() == rank) std::copy(text.begin(), text.end(), static_cast<char*>(bytes.mutable_data_ptr()));
  if (bytes.numel() > 0) comm.broadcast(bytes, rank);
  return {static_cast<const char*>(bytes.const_data_ptr()), static_cast<size_t>(bytes.numel())};
}

bool holds_on(Communicator& comm, int rank, bool own) {
  const at::Tensor answer = at::full({1}, own ? 1 : 0, at::kLong);
  comm.broadcast(answer, rank);
  return answer.const_data_ptr<int64_t>()[0] != 0;
}

bool holds_on_all(Communicator& comm, bool own) {
  const at::Tensor answers = comm.all_gather(at::full({1}, own ? 1 : 0, at::kLong));
  const auto* const first = answers.const_data_ptr<int64_t>();
  return std::all_of(first, first + comm.size(), [](int64_t each) { return each != 0; });
}

}  // namespace lockstep::comm
