#include "lockstep/amp/op_tables.h"

#include <ATen/autocast_mode.h>

#include <algorithm>
#include <array>
#include <vector>

namespace lockstep::amp {
namespace {

using Names = std::vector<std::string_view>;

// libtorch's macros for the lists that CUDA has: (op) or (op, overload).
#define LOCKSTEP_NAME_OF(_1, _2, pick, ...) pick
#define LOCKSTEP_PLAIN(op) #op,
#define LOCKSTEP_OVERLOAD(op, overload) #op "." #overload,
#define LOCKSTEP_NAME(...) LOCKSTEP_NAME_OF(__VA_ARGS__, LOCKSTEP_OVERLOAD, LOCKSTEP_PLAIN, )(__VA_ARGS__)

const Names& cuda_half() {
  static const Names names = {AT_FORALL_LOWER_PRECISION_FP(LOCKSTEP_NAME) "cudnn_convolution",
                              "cudnn_convolution_transpose"};
  return names;
}
const Names& cuda_promote() {
  static const Names names = {AT_FORALL_PROMOTE(LOCKSTEP_NAME)};
  return names;
}

// The CPU's have no macro (libtorch's autocast_mode.cpp); all that is on neither list is cast to fp32.
constexpr auto kCpuHalf = std::to_array<std::string_view>({"_addmm_activation",
                                                           "_convolution.deprecated",
                                                           "_native_multi_head_attention",
                                                           "addbmm",
                                                           "addmm",
                                                           "baddbmm",
                                                           "bmm",
                                                           "conv1d",
                                                           "conv1d.padding",
                                                           "conv2d",
                                                           "conv2d.padding",
                                                           "conv3d",
                                                           "conv3d.padding",
                                                           "conv_tbc",
                                                           "conv_transpose1d",
                                                           "conv_transpose2d.input",
                                                           "conv_transpose3d.input",
                                                           "linalg_vecdot",
                                                           "linear",
                                                           "matmul",
                                                           "mkldnn_rnn_layer",
                                                           "mm",
                                                           "prelu",
                                                           "scaled_dot_product_attention"});
constexpr auto kCpuPromote = std::to_array<std::string_view>({"cat", "index_copy", "index_copy.dimname", "stack"});

// https://github.com/NVIDIA/apex, apex/amp/lists: torch_overrides, functional_overrides, tensor_overrides; and its
// rnn_compat for the cells.
constexpr auto kApexHalf = std::to_array<std::string_view>({"addbmm",
                                                            "addmm",
                                                            "addmv",
                                                            "addr",
                                                            "baddbmm",
                                                            "bmm",
                                                            "conv1d",
                                                            "conv2d",
                                                            "conv3d",
                                                            "conv_tbc",
                                                            "conv_transpose1d",
                                                            "conv_transpose2d",
                                                            "conv_transpose3d",
                                                            "gru_cell",
                                                            "linear",
                                                            "lstm_cell",
                                                            "matmul",
                                                            "mm",
                                                            "mv",
                                                            "prelu",
                                                            "rnn_relu_cell",
                                                            "rnn_tanh_cell"});
constexpr auto kApexFloat = std::to_array<std::string_view>({"acos",
                                                             "asin",
                                                             "binary_cross_entropy_with_logits",
                                                             "cosh",
                                                             "cosine_embedding_loss",
                                                             "cosine_similarity",
                                                             "cross_entropy_loss",
                                                             "cumprod",
                                                             "cumsum",
                                                             "dist",
                                                             "erfinv",
                                                             "exp",
                                                             "expm1",
                                                             "group_norm",
                                                             "hinge_embedding_loss",
                                                             "kl_div",
                                                             "l1_loss",
                                                             "layer_norm",
                                                             "log",
                                                             "log10",
                                                             "log2",
                                                             "log_softmax",
                                                             "margin_ranking_loss",
                                                             "mse_loss",
                                                             "multi_margin_loss",
                                                             "multilabel_margin_loss",
                                                             "nll_loss",
                                                             "norm",
                                                             "poisson_nll_loss",
                                                             "pow",
                                                             "prod",
                                                             "reciprocal",
                                                             "renorm",
                                                             "rsqrt",
                                                             "sinh",
                                                             "smooth_l1_loss",
                                                             "soft_margin_loss",
                                                             "softmax",
                                                             "softplus",
                                                             "std",
                                                             "sum",
                                                             "tan",
                                                             "triplet_margin_loss",
                                                             "var"});
constexpr auto kApexPromote = std::to_array<std::string_view>(
    {"addcdiv", "addcmul", "atan2", "bilinear", "cat", "cross", "dot", "equal", "stack"});

template <typename List>
bool has(const List& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

CastRule libtorch_rule(c10::DeviceType device, std::string_view name) {
  const bool cpu = device == c10::DeviceType::CPU;
  if (cpu ? has(kCpuHalf, name) : has(cuda_half(), name)) return CastRule::kHalf;
  if (cpu ? has(kCpuPromote, name) : has(cuda_promote(), name)) return CastRule::kPromote;
  return CastRule::kFloat;
}

bool refused_by_libtorch(c10::DeviceType device, std::string_view name) {
  return device == c10::DeviceType::CUDA && name == "binary_cross_entropy";
}

std::span<const std::string_view> apex_list(CastRule rule) {
  if (rule == CastRule::kHalf) return kApexHalf;
  return rule == CastRule::kFloat ? std::span<const std::string_view>(kApexFloat) : kApexPromote;
}

}  // namespace lockstep::amp
