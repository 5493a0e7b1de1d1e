#include "lockstep/amp/op_tables.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <algorithm>

#include "lockstep/base/text.h"

namespace lockstep::amp {
namespace {

constexpr auto kWatch = c10::DispatchKey::TESTING_ONLY_GenericMode;

// Thrown where an autocast kernel has cast its arguments and calls the operator: with their dtypes.
struct Cast {
  std::vector<at::ScalarType> dtypes;
};

// Lets casts happen, and stops the operator itself before it computes.
void stop_at_operator(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard guard(kWatch);
  if (op.schema().name() == "aten::to" || op.schema().name() == "aten::_to_copy") return op.callBoxed(stack);
  Cast cast;
  for (const c10::IValue& argument : *stack) {
    if (argument.isTensor()) cast.dtypes.push_back(argument.toTensor().scalar_type());
    if (!argument.isTensorList()) continue;
    for (const at::Tensor& each : argument.toTensorVector()) cast.dtypes.push_back(each.scalar_type());
  }
  throw cast;
}

// Some value of an argument's type: never used.
c10::IValue any_value(const c10::Argument& argument, const at::Tensor& tensor) {
  if (argument.default_value()) return *argument.default_value();
  const c10::TypeKind kind = argument.type()->kind();
  if (kind == c10::TypeKind::TensorType) return tensor;
  if (kind == c10::TypeKind::BoolType) return true;
  if (kind == c10::TypeKind::FloatType) return 1.0;
  if (kind == c10::TypeKind::StringType) return std::string("nuc");
  if (kind == c10::TypeKind::OptionalType) return c10::IValue();
  if (kind != c10::TypeKind::ListType) return int64_t{1};
  const c10::TypeKind of = argument.type()->expectRef<c10::ListType>().getElementType()->kind();
  if (of == c10::TypeKind::TensorType) return std::vector<at::Tensor>{tensor};
  if (of == c10::TypeKind::BoolType) return c10::List<bool>({true});
  return of == c10::TypeKind::FloatType ? c10::IValue(std::vector<double>{1}) : c10::IValue(std::vector<int64_t>{1});
}

// What the CPU's autocast kernel of an operator makes of tensors of `dtype`.
at::ScalarType dtype_from(const c10::OperatorHandle& op, at::ScalarType dtype) {
  torch::jit::Stack stack;
  for (const auto& argument : op.schema().arguments()) stack.push_back(any_value(argument, at::ones({1}, dtype)));
  const c10::impl::IncludeDispatchKeyGuard watch(kWatch);
  try {
    op.callBoxedForDispatchKey(c10::DispatchKey::AutocastCPU, stack);
  } catch (const Cast& cast) {
    return cast.dtypes.empty() ? at::ScalarType::Undefined : cast.dtypes.front();
  }
  return at::ScalarType::Undefined;
}

std::string name_of(const c10::OperatorName& op) {
  return op.name.substr(6) + (op.overload_name.empty() ? "" : "." + op.overload_name);
}

bool has_dimnames(const c10::OperatorHandle& op) {
  return cat(op.schema()).find("Dimname") != std::string::npos ||
         name_of(op.operator_name()).find("imname") != std::string::npos;
}

// Every kernel that libtorch has for the CPU is called, and tells its rule by what it casts.
TEST(OpTables, TheCpusRulesAreLibtorchs) {
  torch::Library all(torch::Library::IMPL, "_", kWatch, __FILE__, __LINE__);
  all.fallback(torch::CppFunction::makeFromBoxedFunction<&stop_at_operator>());
  int counts[3] = {};
  for (const auto& op : c10::Dispatcher::singleton().getRegistrationsForDispatchKey(c10::DispatchKey::AutocastCPU)) {
    const auto handle = c10::Dispatcher::singleton().findSchema(op);
    ASSERT_TRUE(handle);
    if (has_dimnames(*handle)) continue;  // of the rule that the other overloads have
    const CastRule rule = libtorch_rule(at::kCPU, name_of(op));
    ++counts[static_cast<int>(rule)];
    const at::ScalarType from_wide = dtype_from(*handle, at::kFloat), from_half = dtype_from(*handle, at::kBFloat16);
    EXPECT_EQ(from_wide, rule == CastRule::kHalf ? at::kBFloat16 : at::kFloat) << op;
    EXPECT_EQ(from_half, rule == CastRule::kFloat ? at::kFloat : at::kBFloat16) << op;
  }
  EXPECT_EQ(counts[0], 24);
  EXPECT_EQ(counts[2], 3);
  EXPECT_GE(counts[1], 90);
}

// CUDA's tables are libtorch's own macros: every name in them has a kernel, and every kernel is in them, apart from
// three that have none.
TEST(OpTables, CudasRulesAreOfKernelsThatThereAre) {
  int half = 0, full = 0, promote = 0;
  for (const auto& op : c10::Dispatcher::singleton().getRegistrationsForDispatchKey(c10::DispatchKey::AutocastCUDA)) {
    const CastRule rule = libtorch_rule(at::kCUDA, name_of(op));
    half += rule == CastRule::kHalf;
    full += rule == CastRule::kFloat && !refused_by_libtorch(at::kCUDA, name_of(op));
    promote += rule == CastRule::kPromote;
  }
#define LOCKSTEP_ONE(...) +1
  EXPECT_EQ(half, 2 AT_FORALL_LOWER_PRECISION_FP(LOCKSTEP_ONE));
  EXPECT_EQ(full, 0 AT_FORALL_FP32(LOCKSTEP_ONE) AT_FORALL_FP32_SET_OPT_DTYPE(LOCKSTEP_ONE)
                      AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(LOCKSTEP_ONE));
  EXPECT_EQ(promote, 0 AT_FORALL_PROMOTE(LOCKSTEP_ONE));
  EXPECT_EQ(libtorch_rule(at::kCUDA, "conv_transpose2d.input"), CastRule::kHalf);
}

TEST(OpTables, ApexsNamesAreOperators) {
  const auto all = c10::Dispatcher::singleton().getAllOpNames();
  for (const CastRule rule : {CastRule::kHalf, CastRule::kFloat, CastRule::kPromote}) {
    for (const auto name : apex_list(rule)) {
      EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const auto& op) { return op.name == cat("aten::", name); }))
          << name;
    }
  }
}

}  // namespace
}  // namespace lockstep::amp
