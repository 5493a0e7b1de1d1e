#include "lockstep/checkpoint/formats/pickle_machine.h"

#include <gtest/gtest.h>

namespace lockstep::checkpoint {
namespace {

constexpr auto kList = Container::Kind::kList;
constexpr auto kDict = Container::Kind::kDict;

std::string fault_of(const std::function<void(PickleMachine&)>& action, std::string_view bytes = "") {
  MemoryBudget budget(1 << 20);
  const PickleBytes read(bytes);
  PickleMachine machine(read, nullptr, budget);
  try {
    action(machine);
  } catch (const Fault& fault) {
    return fault.text;
  }
  return "no fault";
}

TEST(PickleMachine, OperandsBelowAMarkAreOutOfReach) {
  EXPECT_EQ(fault_of([](auto& m) { m.pop(); }), "an operation without its operands");
  EXPECT_EQ(fault_of([](auto& m) { m.push(true), m.mark(), m.pop(); }), "an operation without its operands");
  EXPECT_EQ(fault_of([](auto& m) { m.push(true), m.pop_to_mark(); }), "an operation without its mark");
  EXPECT_EQ(fault_of([](auto& m) { m.push(true), m.push_marked(kList); }), "an operation without its mark");
  EXPECT_EQ(fault_of([](auto& m) { m.push(true), m.push_tuple(2); }), "an operation without its operands");
  EXPECT_EQ(fault_of([](auto& m) { m.memoize(0); }), "an operation without its operands");
}

TEST(PickleMachine, MarksNest) {
  MemoryBudget budget(1 << 20);
  const PickleBytes none("");
  PickleMachine machine(none, nullptr, budget);
  const auto size_of_marked = [&] {
    machine.push_marked(Container::Kind::kTuple);
    const Item tuple = machine.pop();
    return machine.heap.container(tuple, Container::Kind::kTuple)->items.size();
  };
  machine.mark();
  machine.push(int64_t{1});
  machine.mark();
  machine.push(int64_t{2});
  machine.push(int64_t{3});
  EXPECT_EQ(size_of_marked(), 2u);
  EXPECT_EQ(size_of_marked(), 1u);
  machine.check_empty();
}

TEST(PickleMachine, ContainersTakeOnlyWhatFits) {
  EXPECT_EQ(fault_of([](auto& m) { m.push_container(kDict), m.push(None{}), m.append(); }),
            "items appended to what is no list");
  EXPECT_EQ(fault_of([](auto& m) { m.push_container(kList), m.push(None{}), m.push(None{}), m.set_item(); }),
            "items set in what is no dict");
  EXPECT_EQ(fault_of([](auto& m) { m.push_container(kDict), m.mark(), m.push(None{}), m.set_marked_items(); }),
            "items set in a dict, one without its value");
  EXPECT_EQ(fault_of([](auto& m) { m.mark(), m.push(None{}), m.push_marked(kDict); }),
            "a dict of a key without its value");
}

TEST(PickleMachine, ContainersBelowAMarkAreOutOfReach) {
  constexpr const char* kNone = "an operation without its operands";
  EXPECT_EQ(fault_of([](auto& m) { m.append(); }), kNone);
  EXPECT_EQ(fault_of([](auto& m) { m.push(None{}), m.append(); }), kNone);
  EXPECT_EQ(fault_of([](auto& m) { m.push(None{}), m.set_item(); }), kNone);
  EXPECT_EQ(fault_of([](auto& m) { m.push_container(kList), m.mark(), m.push(None{}), m.append(); }), kNone);
  EXPECT_EQ(fault_of([](auto& m) { m.push_container(kDict), m.mark(), m.push(None{}), m.push(None{}), m.set_item(); }),
            kNone);
  EXPECT_EQ(fault_of([](auto& m) { m.push_container(kList), m.mark(), m.mark(), m.append_marked(); }), kNone);
  EXPECT_EQ(fault_of([](auto& m) { m.mark(), m.reduce_marked(); }), kNone);
}

TEST(PickleMachine, TheStackIsCharged) {
  EXPECT_EQ(fault_of([](auto& m) {
              for (int i = 0; i < 1 << 20; ++i) m.push(None{});
            }),
            "would take more than 1 MiB of memory besides its tensors");
  EXPECT_EQ(fault_of([](auto& m) {
              for (int i = 0; i < 1 << 20; ++i) m.mark();
            }),
            "would take more than 1 MiB of memory besides its tensors");
  EXPECT_EQ(fault_of([](auto& m) {
              for (int i = 0; i < 1 << 20; ++i) m.push(None{}), m.pop();
            }),
            "no fault");
}

TEST(PickleMachine, RecallsOnlyWhatWasStored) {
  MemoryBudget budget(1 << 20);
  const PickleBytes none("");
  PickleMachine machine(none, nullptr, budget);
  machine.push(int64_t{7});
  machine.memoize(4'000'000'000);
  machine.pop();
  machine.recall(4'000'000'000);
  EXPECT_EQ(std::get<int64_t>(machine.pop()), 7);
  EXPECT_EQ(fault_of([](auto& m) { m.recall(3); }), "recalls value 3, which was never stored");
}

TEST(PickleMachine, IntegersOfUpTo64Bits) {
  const auto read = [](std::string_view bytes) {
    MemoryBudget budget(1 << 20);
    const PickleBytes read(bytes);
    PickleMachine machine(read, nullptr, budget);
    machine.push_integer(bytes.size());
    return std::get<int64_t>(machine.pop());
  };
  using namespace std::string_view_literals;
  EXPECT_EQ(read(""), 0);
  EXPECT_EQ(read("\xff"), -1);
  EXPECT_EQ(read("\xff\x00"sv), 255);
  EXPECT_EQ(read("\x00\x80"sv), -32768);
  EXPECT_EQ(read("\x00\x00\x00\x00\x00\x00\x00\x80"sv), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(fault_of([](auto& m) { m.push_integer(9); }, "123456789"), "a whole number of 9 bytes, more than 64 bits");
  EXPECT_EQ(fault_of([](auto& m) { m.push_integer(9); }, "1"), "announces 9 bytes, but only 1 are left");
}

TEST(PickleMachine, TextMustBeUtf8) {
  const auto text = [](std::string_view bytes) { return fault_of([&](auto& m) { m.push_text(bytes.size()); }, bytes); };
  for (const char* good : {"", "abc", "na\xc3\xafve", "\xe2\x82\xac", "\xf0\x9f\x98\x80"})
    EXPECT_EQ(text(good), "no fault");
  for (const char* bad : {"\x80", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xff"}) {
    EXPECT_EQ(text(bad), "a string that is not UTF-8") << bad;
  }
}

TEST(PickleMachine, OnlyDictsMayHaveAttributes) {
  EXPECT_EQ(fault_of([](auto& m) { m.push_container(kDict), m.push_container(kDict), m.build(); }), "no fault");
  EXPECT_EQ(fault_of([](auto& m) { m.push_container(kList), m.push_container(kDict), m.build(); }),
            "an object with a state of its own, which is not supported");
}

}  // namespace
}  // namespace lockstep::checkpoint
