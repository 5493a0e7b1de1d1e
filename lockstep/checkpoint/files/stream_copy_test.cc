#include "lockstep/checkpoint/files/stream_copy.h"

#include <gtest/gtest.h>
#include <libdeflate.h>

#include <string>

namespace lockstep::checkpoint {
namespace {

TEST(StreamCopy, CopiesTheBytesAndNoOthers) {
  std::string from;
  for (int i = 0; i < 600; ++i) from += static_cast<char>(i * 31 % 251 + 1);
  for (size_t at = 0; at < 70; ++at) {
    for (const size_t bytes : {0, 1, 15, 16, 63, 64, 65, 127, 128, 300}) {
      std::string to(600, '\0');
      stream_copy(to.data() + at, from.data() + 3, bytes);
      std::string expected(600, '\0');
      expected.replace(at, bytes, from, 3, bytes);
      EXPECT_EQ(to, expected) << at << ' ' << bytes;
    }
  }
}

TEST(StreamCopy, SumsWhatItCopies) {
  std::string from;
  for (int i = 0; i < 40000; ++i) from += static_cast<char>(i * 31 % 251 + 1);
  for (const size_t bytes : {0, 1, 63, 64, 16383, 16384, 16385, 32768, 39000}) {
    for (const size_t at : {0, 5, 64}) {
      std::string to(40100, '\0');
      EXPECT_EQ(stream_copy_summed(to.data() + at, from.data() + 3, bytes),
                libdeflate_crc32(0, from.data() + 3, bytes));
      EXPECT_EQ(to.substr(at, bytes), from.substr(3, bytes)) << at << ' ' << bytes;
      EXPECT_EQ(to[at + bytes], '\0');
    }
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
