#include "lockstep/comm/call.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::comm {
namespace {

TEST(Signature, SaysWhatMustBeEqual) {
  const at::Tensor a = at::ones({10}), b = at::ones({11});
  EXPECT_NE(signature_of(calls::all_reduce(a)), signature_of(calls::all_reduce(at::zeros({2, 5}))));
  EXPECT_NE(signature_of(calls::all_gather(a, at::ones({2, 10}), 2)),
            signature_of(calls::all_gather(at::ones({2, 5}), at::ones({2, 10}), 2)));
  EXPECT_NE(signature_of(calls::all_reduce(at::ones({}))), signature_of(calls::all_reduce(at::ones({1}))));
  EXPECT_EQ(signature_of(calls::broadcast(a, 0)), signature_of(calls::broadcast(at::ones({2, 5}), 0)))
      << "a broadcast copies elements, as PyTorch's";
  EXPECT_NE(signature_of(calls::all_reduce(a)), signature_of(calls::all_reduce(b)));
  EXPECT_NE(signature_of(calls::all_reduce(a)), signature_of(calls::all_reduce(a, ReduceOp::kMax)));
  EXPECT_NE(signature_of(calls::all_reduce(a)), signature_of(calls::all_reduce(a.to(at::kDouble))));
  EXPECT_NE(signature_of(calls::broadcast(a, 0)), signature_of(calls::broadcast(a, 1)));
  EXPECT_NE(signature_of(calls::fold({a, b}, {.label = "x"})), signature_of(calls::fold({b, a}, {.label = "x"})));
  EXPECT_NE(signature_of(calls::fold({a}, {.label = "x"})), signature_of(calls::fold({a}, {.label = "y"})));
  EXPECT_NE(signature_of(calls::fold({a}, {.label = "x", .step = 1})),
            signature_of(calls::fold({a}, {.label = "x", .step = 2})));
  EXPECT_NE(signature_of(calls::fold({a}, {.label = "x"})),
            signature_of(calls::fold({a}, {.label = "x", .wire = at::kBFloat16})));
  // Ranks of an uneven exchange bring different numbers.
  EXPECT_EQ(signature_of(calls::all_to_all_uneven(a, b, {4, 6}, {5, 6})),
            signature_of(calls::all_to_all_uneven(b, a, {5, 6}, {4, 6})));
  // A root and the others have tensors of their own.
  EXPECT_EQ(signature_of(calls::scatter(at::ones({2, 10}), a, 0, 2)), signature_of(calls::scatter({}, a, 0, 2)));
  EXPECT_EQ(signature_of(calls::gather(a, at::ones({2, 10}), 0, 2)), signature_of(calls::gather(a, {}, 0, 2)));
}

TEST(Signature, AFoldsLayoutsMustBeEqual) {
  const auto of = [](const at::Tensor& tensor) { return signature_of(calls::fold({tensor}, {.label = "x"})); };
  const at::Tensor image = at::ones({2, 3, 4, 5});
  EXPECT_NE(of(image), of(image.contiguous(at::MemoryFormat::ChannelsLast)));
  EXPECT_NE(of(image), of(image.view({6, 4, 5})));
  // Where only one order is possible strides may differ, as libtorch's do after some operations.
  const at::Tensor kernel = at::ones({8, 3, 1, 1});
  EXPECT_EQ(of(kernel), of(kernel.as_strided({8, 3, 1, 1}, {3, 1, 24, 24})));
  EXPECT_EQ(of(at::ones({1}).as_strided({1, 1}, {5, 7})), of(at::ones({1, 1})));
}

TEST(Signature, IsToldInWords) {
  const at::Tensor a = at::ones({64});
  EXPECT_EQ(text_of(signature_of(calls::broadcast(a, 3)), 12), "broadcast #12 [64] Float from rank 3");
  EXPECT_EQ(text_of(signature_of(calls::all_reduce(a, ReduceOp::kMin)), 0), "all_reduce #0 [64] Float min");
  EXPECT_EQ(text_of(signature_of(calls::reduce(a, 2, ReduceOp::kSum)), 1), "reduce #1 [64] Float sum to rank 2");
  EXPECT_EQ(text_of(signature_of(calls::fold({a, a}, {.label = "x"})), 1), "fold #1 [128] Float in 2 tensors");
  EXPECT_EQ(text_of(signature_of(calls::barrier()), 5), "barrier #5");
  EXPECT_EQ(text_of(signature_of(calls::all_reduce(at::ones({2, 3}))), 0), "all_reduce #0 [2, 3] Float sum");
  EXPECT_EQ(text_of(signature_of(calls::all_reduce(at::ones({}))), 0), "all_reduce #0 [] Float sum");
  EXPECT_EQ(text_of(signature_of(calls::all_reduce(at::ones({1, 1, 1, 1, 1, 1, 1, 2}))), 0),
            "all_reduce #0 [2] Float sum");
  EXPECT_EQ(message_text(calls::send(a, 1, 7), 3), "send to rank 3 (tag 7)");
  EXPECT_EQ(message_text(calls::receive(a, 1), 1), "receive from rank 1 (tag 0)");
}

TEST(Signature, DifferencesAreToldByRank) {
  const Signature barrier = signature_of(calls::barrier()), sum = signature_of(calls::all_reduce(at::ones({3})));
  EXPECT_EQ(
      difference_text({sum, barrier, sum, std::nullopt}, 7),
      "ranks 0, 2 called all_reduce #7 [3] Float sum, rank 1 called barrier #7; every rank must make the same calls "
      "in the same order");
}

TEST(Signature, AFoldBesideAnotherCallIsProbablyAnotherLoopsEnd) {
  const Signature fold = signature_of(calls::fold({at::ones({3})}, {.label = "bucket 1/1 (w)"}));
  EXPECT_NE(difference_text({fold, signature_of(calls::barrier())}, 7).find("run the loop in ddp.join()"),
            std::string::npos);
  EXPECT_EQ(difference_text({fold, signature_of(calls::fold({at::ones({3})}, {.label = "other"}))}, 7).find("join"),
            std::string::npos);
}

TEST(CheckCall, RefusesWhatCantBe) {
  const at::Tensor a = at::ones({4});
  EXPECT_THROW(check_call(calls::broadcast(a, 2), 2), BugError);
  EXPECT_THROW(check_call(calls::send(a, -1), 2), BugError);
  EXPECT_THROW(check_call(calls::all_reduce(at::ones({1}, at::kComplexFloat)), 2), BugError);
  EXPECT_THROW(check_call(calls::all_reduce(a, ReduceOp::kBitOr), 2), BugError);
  EXPECT_THROW(check_call(calls::reduce_scatter(a, at::ones({2})), 2), BugError);
  EXPECT_THROW(check_call(calls::all_to_all_uneven(a, a, {1, 2}, {2, 2}), 2), BugError);
  EXPECT_THROW(check_call(calls::all_to_all_uneven(a, a, {5, -1}, {2, 2}), 2), BugError);
  EXPECT_THROW(check_call(calls::all_gather(a, at::ones({2, 4}, at::kInt), 2), 2), BugError);
  EXPECT_THROW(check_call(calls::fold({}, {}), 2), BugError);
  EXPECT_THROW(check_call(calls::fold({at::ones({2}, at::kDouble)}, {.label = "x", .wire = at::kHalf}), 2), BugError);
  EXPECT_NO_THROW(check_call(calls::all_to_all(a, a, 2), 2));
}

}  // namespace
}  // namespace lockstep::comm
