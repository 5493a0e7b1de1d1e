#include "lockstep/parallel/ddp_options.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/parallel/gradients/named_parameter.h"

namespace lockstep::parallel {
namespace {

// The names of the parameters that close buckets, in the order of registration.
std::string names_of_bucket_ends(const torch::nn::Module& module, const DdpOptions& options) {
  std::string names;
  size_t found = 0;
  for (const auto& parameter : trainable(named_parameters(module))) {
    if (!options.closes_bucket(parameter.tensor)) continue;
    names += (names.empty() ? "" : ", ") + parameter.name;
    ++found;
  }
  if (found != options.bucket_ends.size()) {
    throw ConfigError("DistributedDataParallel: of the ", options.bucket_ends.size(), " parameters that end buckets ",
                      found, " are the module's, are trained, and are there once", found > 0 ? ": " : "", names);
  }
  return names.empty() ? "none" : names;
}

}  // namespace

void DdpOptions::check() const {
  if (comm_hook != nullptr && buckets.wire) {
    throw ConfigError("DistributedDataParallel: a wire type and the hook ", comm_hook->name(),
                      "; give only one of them");
  }
  if (comm_hook != nullptr && allreduce_always_fp32) {
    throw ConfigError("DistributedDataParallel: allreduce_always_fp32 and the hook ", comm_hook->name(),
                      "; give only one of them");
  }
  if (comm_hook != nullptr && comm_hook->divides() && (find_unused_parameters || static_graph)) {
    throw ConfigError("DistributedDataParallel: the hook ", comm_hook->name(),
                      " and find_unused_parameters or static_graph: of a parameter without a gradient no rank would "
                      "know whether its owner has one; give only one of them");
  }
  if (!(gradient_predivide_factor > 0)) {
    throw ConfigError("DistributedDataParallel: gradient_predivide_factor is ", gradient_predivide_factor,
                      "; it is above 0");
  }
  if (!(buckets.bucket_mb > 0) || !(buckets.first_bucket_mb > 0)) {
    throw ConfigError("DistributedDataParallel: buckets of ", buckets.bucket_mb, " MB, the first of ",
                      buckets.first_bucket_mb, " MB; they are above 0");
  }
}

bool DdpOptions::closes_bucket(const at::Tensor& parameter) const {
  const void* const here = parameter.const_data_ptr();  // also of a complex one's real view
  return std::any_of(bucket_ends.begin(), bucket_ends.end(),
                     [&](const auto& end) { return end.const_data_ptr() == here; });
}

std::vector<std::string> DdpOptions::describe(const torch::nn::Module& module) const {
  return {cat("bucket_ends ", names_of_bucket_ends(module, *this)),
          cat("bucket_mb ", buckets.bucket_mb),
          cat("first_bucket_mb ", buckets.first_bucket_mb),
          cat("seed ", seed),
          cat("wire ", buckets.wire ? c10::toString(*buckets.wire) : "none"),
          cat("broadcast_buffers ", broadcast_buffers),
          cat("find_unused_parameters ", find_unused_parameters),
          cat("static_graph ", static_graph),
          cat("gradient_average ", gradient_average),
          cat("delay_allreduce ", delay_allreduce),
          cat("allreduce_always_fp32 ", allreduce_always_fp32),
          cat("gradient_predivide_factor ", gradient_predivide_factor),
          cat("comm_hook ", comm_hook ? comm_hook->name() : "none")};
}

std::optional<c10::ScalarType> DdpOptions::wire() const { return comm_hook ? comm_hook->wire() : buckets.wire; }

}  // namespace lockstep::parallel
