#include "lockstep/checkpoint/files/page_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "lockstep/base/log.h"
#include "lockstep/base/shared_memory.h"
#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::checkpoint {
namespace {

TEST(PageCache, TellsWhatIsThereAndReadsNothing) {
  const testing_support::TempDir dir;
  const Descriptor file(open((dir / "file").c_str(), O_RDWR | O_CREAT, 0600));
  ASSERT_TRUE(write_all(file.get(), std::string(4u << 20, 'x')));
  EXPECT_TRUE(is_in_page_cache(file.get(), 0));
  EXPECT_TRUE(is_in_page_cache(file.get(), 3'000'001));
  fsync(file.get());
  posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  if (is_in_page_cache(file.get(), 2'000'000)) GTEST_SKIP() << "this folder lies in memory, not on a disk";
  for (int again = 0; again < 3; ++again) {
    usleep(10'000);
    for (const uint64_t offset : {0, 4096, 2'000'000, 4'000'000}) EXPECT_FALSE(is_in_page_cache(file.get(), offset));
  }
  char byte = 0;
  ASSERT_EQ(pread(file.get(), &byte, 1, 2'000'000), 1);
  EXPECT_TRUE(is_in_page_cache(file.get(), 2'000'000));
}

}  // namespace
}  // namespace lockstep::checkpoint
