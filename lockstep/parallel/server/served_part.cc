#include "lockstep/parallel/server/served_part.h"

#include <c10/core/GradMode.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/fnv.h"
#include "lockstep/base/text.h"

namespace lockstep::parallel {

ServedPart::ServedPart(const std::vector<at::Tensor>& parameters, int server, int servers) {
  int64_t total = 0;
  uint64_t hash = kFnvSeed;
  for (const at::Tensor& parameter : parameters) {
    if (parameter.requires_grad() && parameter.is_complex()) {
      throw ConfigError("parameter server: a parameter of complex numbers, ", parameter.sizes(),
                        "; servers keep real ones, such as at::view_as_real()'s");
    }
    total += parameter.requires_grad() ? parameter.numel() : 0;
    for (const int64_t size : parameter.sizes()) hash = fnv1a(hash, static_cast<uint64_t>(size));
    hash = fnv1a(hash, uint64_t{parameter.requires_grad() ? 1U : 2U});
  }
  const int64_t first = total * server / servers, last = total * (server + 1) / servers;
  if (first == last) {
    throw ConfigError("parameter server ", server, " of ", servers, ": there are ", total,
                      " weights that are trained, and none is left for it; use fewer servers");
  }
  int64_t begin = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].requires_grad()) continue;
    const int64_t end = begin + parameters[i].numel();
    const int64_t from = std::max(first, begin), to = std::min(last, end);
    if (from < to) pieces_.push_back({.parameter = i, .from = from - begin, .count = to - from, .at = from - first});
    begin = end;
  }
  elements_ = last - first;
  text_ = cat("server ", server, " of ", servers, ", ", parameters.size(), " parameters of ", total,
              " weights, their shapes ", hash);
}

std::vector<at::Tensor> ServedPart::pieces_of(const at::Tensor& flat) const {
  std::vector<at::Tensor> pieces;
  for (const Piece& piece : pieces_) pieces.push_back(flat.narrow(0, piece.at, piece.count));
  return pieces;
}

void ServedPart::take(const std::vector<at::Tensor>& parameters, const at::Tensor& flat) const {
  const c10::AutoGradMode no_grad(false);
  for (const Piece& piece : pieces_) {
    flat.narrow(0, piece.at, piece.count)
        .copy_(parameters[piece.parameter].detach().reshape(-1).narrow(0, piece.from, piece.count));
  }
}

std::string ServedPart::take_gradients(const std::vector<at::Tensor>& parameters, const at::Tensor& flat) const {
  const c10::AutoGradMode no_grad(false);
  std::string present;
  for (const Piece& piece : pieces_) {
    const at::Tensor own = flat.narrow(0, piece.at, piece.count), gradient = parameters[piece.parameter].grad();
    present += gradient.defined() ? '\1' : '\0';
    if (!gradient.defined()) {
      own.zero_();
    } else if (gradient.is_sparse()) {
      throw ConfigError("parameter server: the gradient of parameter ", piece.parameter, " is sparse; send dense ones");
    } else {
      own.copy_(gradient.reshape(-1).narrow(0, piece.from, piece.count));
    }
  }
  return present;
}

void ServedPart::give(const std::vector<at::Tensor>& parameters, const at::Tensor& flat) const {
  const c10::AutoGradMode no_grad(false);
  for (const Piece& piece : pieces_) {
    const at::Tensor& parameter = parameters[piece.parameter];
    const at::Tensor values = flat.narrow(0, piece.at, piece.count);
    if (parameter.is_contiguous()) {
      parameter.view(-1).narrow(0, piece.from, piece.count).copy_(values);
      continue;
    }
    at::Tensor whole = parameter.detach().contiguous();  // such as channels_last
    whole.view(-1).narrow(0, piece.from, piece.count).copy_(values);
    parameter.copy_(whole);
  }
}

}  // namespace lockstep::parallel
