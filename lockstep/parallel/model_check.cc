#include "lockstep/parallel/model_check.h"

#include <sstream>

#include "lockstep/base/error.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/parallel/gradients/divided_weights.h"

namespace lockstep::parallel {
namespace {

std::string describe(const char* kind, const std::string& name, const at::Tensor& tensor) {
  const WeightPart part = part_of(tensor);
  return lockstep::cat(kind, ' ', name, ' ', tensor.sizes(), ' ', tensor.dtype().name(),
                       tensor.requires_grad() ? "" : ", no gradient",
                       tensor.is_contiguous() ? "" : cat(", strides ", tensor.strides()),
                       part.parts == 1 ? "" : cat(", part ", part.number, " of ", part.parts));
}

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + '\n';
  return text;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

std::vector<std::string> describe_model(const torch::nn::Module& module, const std::vector<std::string>& options) {
  std::vector<std::string> lines;
  for (const auto& item : module.named_parameters()) lines.push_back(describe("parameter", item.key(), item.value()));
  for (const auto& item : module.named_buffers()) lines.push_back(describe("buffer", item.key(), item.value()));
  for (const auto& option : options) lines.push_back("option " + option);
  return lines;
}

std::string first_difference(const std::vector<std::vector<std::string>>& by_rank) {
  const auto& reference = by_rank[0];
  for (size_t rank = 1; rank < by_rank.size(); ++rank) {
    const auto& mine = by_rank[rank];
    for (size_t i = 0; i < std::max(mine.size(), reference.size()); ++i) {
      const std::string here = i < mine.size() ? mine[i] : "nothing more";
      const std::string there = i < reference.size() ? reference[i] : "nothing more";
      if (here != there) return lockstep::cat("rank ", rank, " has ", here, " where rank 0 has ", there);
    }
  }
  return "";
}

void check_same_lines(const std::string& what, const std::vector<std::string>& lines, comm::Communicator& comm) {
  std::vector<std::vector<std::string>> by_rank;
  for (const auto& text : comm::gather_texts(comm, join(lines))) by_rank.push_back(split(text));
  const std::string difference = first_difference(by_rank);
  if (!difference.empty()) throw ConfigError(what, ": ", difference);
}

void check_same_model(const torch::nn::Module& module, const std::vector<std::string>& options,
                      comm::Communicator& comm) {
  check_same_lines("the ranks hold different models", describe_model(module, options), comm);
}

}  // namespace lockstep::parallel
