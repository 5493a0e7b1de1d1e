#include "lockstep/parallel/shard_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/comm/blocks.h"
#include "lockstep/comm/text_exchange.h"

namespace lockstep::parallel {

std::vector<std::vector<int64_t>> plan_shards(std::span<const int64_t> elements, int ranks) {
  const int64_t blocks = comm::block_count(elements);
  std::vector<std::vector<int64_t>> plan;
  int64_t before = 0;  // blocks of the parameters before
  for (const int64_t n : elements) {
    std::vector<int64_t>& bounds = plan.emplace_back();
    for (int rank = 0; rank < ranks; ++rank) {
      const int64_t first = comm::slice_of(blocks, rank, ranks).first - before;
      bounds.push_back(std::clamp<int64_t>(first * comm::kBlockElements, 0, n));
    }
    bounds.push_back(n);
    before += comm::block_count(n);
  }
  return plan;
}

std::vector<std::vector<int64_t>> plan_owners(std::span<const int64_t> elements, std::span<const int> owners,
                                              int ranks) {
  std::vector<std::vector<int64_t>> bounds;
  for (size_t i = 0; i < elements.size(); ++i) {
    std::vector<int64_t>& own = bounds.emplace_back(static_cast<size_t>(ranks) + 1, 0);
    for (int rank = owners[i]; rank < ranks; ++rank) own[static_cast<size_t>(rank) + 1] = elements[i];
  }
  return bounds;
}

std::vector<int> plan_servers(std::span<const int64_t> elements, int servers, int ranks) {
  if (servers < 1 || servers > ranks) {
    throw ConfigError(servers, " parameter servers on ", ranks, ranks == 1 ? " rank" : " ranks",
                      ": each is on a rank of its own");
  }
  const auto trained = std::ranges::count_if(elements, [](int64_t count) { return count > 0; });
  const auto parameters = trained > 0 ? static_cast<size_t>(trained) : elements.size();
  if (std::cmp_greater(servers, parameters)) {
    throw ConfigError("parameter server ", parameters, " of ", servers, " would keep nothing: the network has ",
                      parameters, trained > 0 ? " trained" : "", parameters == 1 ? " parameter" : " parameters",
                      ", and each server keeps one at least");
  }
  std::vector<size_t> order(elements.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&](size_t i) { return elements[i]; });
  std::vector<int64_t> kept(static_cast<size_t>(servers), 0);
  std::vector<int> owners(elements.size());
  for (const size_t i : order) {
    const auto least = std::ranges::min_element(kept);
    *least += std::max<int64_t>(elements[i], 1);  // one without elements counts, too
    owners[i] = static_cast<int>((least - kept.begin()) * ranks / servers);
  }
  return owners;
}

void check_owners(const char* user, std::span<const int> owners, comm::Communicator& comm) {
  std::string own;
  for (const int owner : owners) own += cat(own.empty() ? "" : " ", owner);
  const std::vector<std::string> all = comm::gather_texts(comm, own);
  const auto other = std::ranges::find_if(all, [&](const std::string& text) { return text != all.front(); });
  if (other != all.end()) {
    throw ConfigError(user, ": rank ", other - all.begin(), " names other owners of parameters than rank 0");
  }
  for (const int owner : owners) {
    if (owner < 0 || owner >= comm.size()) {
      throw ConfigError(user, ": an owner ", owner, " of a parameter; the ranks are 0 to ", comm.size() - 1);
    }
  }
}

}  // namespace lockstep::parallel
