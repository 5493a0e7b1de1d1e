#include "lockstep/amp/op_lists.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function.h>

#include <array>
#include <fstream>
#include <map>

#include "lockstep/amp/autocast.h"
#include "lockstep/amp/op_tables.h"
#include "lockstep/base/error.h"

namespace lockstep::amp {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const Policy kO1 = {.level = OptLevel::kO1};

std::string refusal(const char* name) {
  try {
    register_half_function(name);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

at::Tensor narrow(at::ScalarType dtype = at::kBFloat16) { return at::ones({2, 2}, dtype); }

TEST(OpLists, ARegisteredOperatorFollowsItsRuleAndIsPutBack) {
  const AutocastScope scope(kO1);
  ASSERT_EQ(at::softmax(narrow(), 0).scalar_type(), at::kBFloat16);
  register_float_function("softmax");
  EXPECT_EQ(at::softmax(narrow(), 0).scalar_type(), at::kFloat);
  register_half_function("aten::softmax");
  EXPECT_EQ(at::softmax(at::ones({2, 2}), 0).scalar_type(), at::kBFloat16);
  unregister_function("softmax");
  EXPECT_EQ(at::softmax(at::ones({2, 2}), 0).scalar_type(), at::kFloat);
  EXPECT_EQ(at::softmax(narrow(), 0).scalar_type(), at::kBFloat16);
}

TEST(OpLists, LibtorchsOwnRuleIsReplacedAndPutBack) {
  const AutocastScope scope(kO1);
  register_float_function("mm");
  EXPECT_EQ(at::mm(narrow(), narrow()).scalar_type(), at::kFloat);
  unregister_function("mm");
  EXPECT_EQ(at::mm(at::ones({2, 2}), at::ones({2, 2})).scalar_type(), at::kBFloat16);
}

TEST(OpLists, PromoteTakesTheWidest) {
  register_promote_function("dot");
  {
    const AutocastScope scope(kO1);
    const at::Tensor wide = at::ones({2}), half = at::ones({2}, at::kBFloat16);
    EXPECT_EQ(at::dot(wide, half).scalar_type(), at::kFloat);
    EXPECT_EQ(at::dot(half, half).scalar_type(), at::kBFloat16);
    EXPECT_EQ(at::dot(half, at::ones({2}, at::kHalf)).scalar_type(), at::kFloat);
  }
  unregister_function("dot");
}

TEST(OpLists, ListsOfTensorsAreCast) {
  register_half_function("cat");
  {
    const AutocastScope scope(kO1);
    const at::Tensor wide = at::ones({2, 2});
    EXPECT_EQ(at::cat({wide, wide}).scalar_type(), at::kBFloat16);
    EXPECT_EQ(wide.scalar_type(), at::kFloat);
  }
  unregister_function("cat");
}

TEST(OpLists, IntegersAndDoublesStayAsTheyAre) {
  register_half_function("cumsum");
  {
    const AutocastScope scope(kO1);
    EXPECT_EQ(at::cumsum(at::ones({2}, at::kDouble), 0).scalar_type(), at::kDouble);
    EXPECT_EQ(at::cumsum(at::ones({2}, at::kLong), 0).scalar_type(), at::kLong);
  }
  unregister_function("cumsum");
}

TEST(OpLists, GradientsReachFp32WeightsAndLanesShareACast) {
  register_half_function("mv");
  const at::Tensor weight = at::randn({3, 3}).requires_grad_();
  {
    const CastCacheScope step;
    at::Tensor loss;
    {
      const AutocastScope scope(kO1);
      const at::Tensor y = at::mv(weight, at::ones({3}));
      EXPECT_EQ(y.scalar_type(), at::kBFloat16);
      const at::Tensor again = at::mv(weight, at::ones({3}));
      loss = y.sum() + again.sum();
      // One cast: both lead to the same node.
      EXPECT_EQ(y.grad_fn()->next_edge(0).function, again.grad_fn()->next_edge(0).function);
    }
    loss.backward();
  }
  unregister_function("mv");
  EXPECT_EQ(weight.grad().scalar_type(), at::kFloat);
  EXPECT_EQ(weight.grad().sum().item<float>(), 18);
}

TEST(OpLists, UnknownNamesAreRefused) {
  EXPECT_EQ(refusal("sofmax"), "aten::sofmax: libtorch has no such operator; did you mean aten::softmax?");
  EXPECT_THAT(refusal("zzzzzzzzzzzzzzzz"), HasSubstr("expected one as aten::softmax"));
  EXPECT_THAT(refusal("relu_"), HasSubstr("works in place"));
  EXPECT_THAT(refusal(""), HasSubstr("no such operator"));
}

TEST(OpLists, NothingIsPrinted) {
  testing::internal::CaptureStderr();
  register_float_function("conv2d");
  unregister_function("conv2d");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(OpLists, ListsAreThoseInForce) {
  EXPECT_THAT(op_lists(at::kCPU).half, Contains("conv1d.padding"));
  EXPECT_THAT(op_lists(at::kCPU).full, Not(Contains("softmax.int")));
  register_float_function("softmax");
  register_float_function("mm");
  const OpLists lists = op_lists(at::kCPU);
  EXPECT_THAT(lists.full, Contains("softmax.int"));
  EXPECT_THAT(lists.full, Contains("mm"));
  EXPECT_THAT(lists.half, Not(Contains("mm")));
  unregister_function("softmax");
  unregister_function("mm");
  EXPECT_THAT(op_lists(at::kCPU).half, Contains("mm"));
  EXPECT_THAT(op_lists(at::kCUDA).full, Contains("softmax.int"));
}

TEST(OpLists, ApexsListsFillUpTheCpus) {
  const OpLists before = op_lists(at::kCPU);
  use_apex_lists();
  {
    const AutocastScope scope(kO1);
    EXPECT_EQ(at::softmax(narrow(), 0).scalar_type(), at::kFloat);
    EXPECT_EQ(at::mv(at::ones({2, 2}), at::ones({2})).scalar_type(), at::kBFloat16);
    EXPECT_EQ(at::sum(narrow()).scalar_type(), at::kFloat);
    EXPECT_EQ(at::mm(at::ones({2, 2}), at::ones({2, 2})).scalar_type(), at::kBFloat16);
    EXPECT_TRUE(at::equal(narrow(), at::ones({2, 2})));
  }
  for (const CastRule rule : {CastRule::kHalf, CastRule::kFloat, CastRule::kPromote}) {
    for (const auto name : apex_list(rule)) unregister_function(name);
  }
  EXPECT_EQ(op_lists(at::kCPU).full, before.full);
}

// The table of docs/amp-op-lists.md: a row for each set of operators that have the same three rules.
std::string table() {
  std::map<std::string, std::array<std::string, 3>> rules;  // by operator: CPU, CUDA, Apex
  const auto add = [&rules](const auto& names, size_t column, const std::string& rule) {
    for (const auto& name : names) rules[std::string(name.substr(0, name.find('.')))][column] = rule;
  };
  for (const auto& [column, device] : {std::pair<size_t, c10::DeviceType>(0, at::kCPU), {1, at::kCUDA}}) {
    const OpLists lists = op_lists(device);
    add(lists.half, column, "16 bits");
    add(lists.full, column, "fp32");
    add(lists.promote, column, "widest");
  }
  add(apex_list(CastRule::kHalf), 2, "16 bits");
  add(apex_list(CastRule::kFloat), 2, "fp32");
  add(apex_list(CastRule::kPromote), 2, "widest");
  std::map<std::array<std::string, 3>, std::string> rows;
  for (const auto& [name, rule] : rules) rows[rule] += (rows[rule].empty() ? "`" : ", `") + name + '`';
  std::string text = "| CPU | CUDA | Apex | operators |\n|---|---|---|---|\n";
  for (const auto& [rule, names] : rows) {
    for (const auto& each : rule) text += "| " + (each.empty() ? "–" : each) + ' ';
    text += "| " + names + " |\n";
  }
  return text;
}

TEST(OpLists, TheDocsTableIsTheirs) {
  std::string page;
  std::getline(std::ifstream(LOCKSTEP_SOURCE_DIR "/docs/amp-op-lists.md"), page, '\0');
  EXPECT_NE(page.find(table()), std::string::npos) << "docs/amp-op-lists.md should have:\n" << table();
}

}  // namespace
}  // namespace lockstep::amp
