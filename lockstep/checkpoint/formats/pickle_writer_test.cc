#include "lockstep/checkpoint/formats/pickle_writer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "lockstep/checkpoint/contents/describe.h"
#include "lockstep/checkpoint/formats/pickle_reader.h"

namespace lockstep::checkpoint {
namespace {

using namespace std::string_view_literals;

std::string written(const Value& value) { return write_pickle(value, StoragePlan(value)); }

std::string read_back(const Value& value) {
  return describe(read_pickle(written(value), {.name = "pickle"}).value).dump();
}

TEST(PickleWriter, WritesProtocolTwo) {
  EXPECT_EQ(written(Dict{{"a", 5}}),
            "\x80\x02}(X\x01\x00\x00\x00"
            "aK\x05u."sv);
  EXPECT_EQ(written(List{}), "\x80\x02](e."sv);
  EXPECT_EQ(written(Tuple{{true, Value()}}), "\x80\x02(\x88Nt."sv);
}

TEST(PickleWriter, EveryValueComesBack) {
  const Value value = Dict{{"text", "na\xc3\xafve"},
                           {3, Value()},
                           {-4, false},
                           {"bytes", Bytes{std::string("\0\x7f\x80\xff", 4)}},
                           {"numbers", List{0.1, -0.0, 1e300, std::numeric_limits<double>::infinity()}},
                           {"tuple", Tuple{{1, Tuple{{Dict{{"deep", "er"}}}}}}}};
  EXPECT_EQ(read_back(value), describe(value).dump());
}

TEST(PickleWriter, EveryWholeNumberComesBack) {
  List numbers;
  for (const int64_t edge : {int64_t{0}, int64_t{255}, int64_t{65536}, int64_t{1} << 31, int64_t{1} << 40}) {
    for (const int64_t near : {-1, 0, 1}) {
      numbers.emplace_back(edge + near);
      numbers.emplace_back(-edge + near);
    }
  }
  numbers.emplace_back(std::numeric_limits<int64_t>::min());
  numbers.emplace_back(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(read_back(numbers), describe(numbers).dump());
}

TEST(PickleWriter, TensorsNameTheirStorage) {
  const std::string pickle = written(at::zeros({2, 3}, at::kHalf));
  EXPECT_NE(pickle.find("ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nHalfStorage\n"sv),
            std::string::npos);
  EXPECT_NE(pickle.find("K\x06tQK\x00(K\x02K\x03t(K\x03K\x01t\x89"sv), std::string::npos);
}

}  // namespace
}  // namespace lockstep::checkpoint
