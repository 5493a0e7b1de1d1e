#include "lockstep/checkpoint/files/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "lockstep/base/shared_memory.h"
#include "lockstep/base/testing/file_size_limit.h"
#include "lockstep/checkpoint/formats/testing/files.h"

namespace {

std::vector<std::string> g_disk_calls;  // "fsync PATH" and "rename FROM TO", in order

std::string path_of(int fd) {
  std::array<char, 4096> path{};
  const ssize_t size = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path.data(), path.size());
  return std::string(path.data(), static_cast<size_t>(std::max<ssize_t>(size, 0)));
}

}  // namespace

// The program's own come before the C library's.
extern "C" int fsync(int fd) {
  g_disk_calls.push_back("fsync " + path_of(fd));
  return static_cast<int>(syscall(SYS_fsync, fd));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  g_disk_calls.push_back(std::string("rename ") + from + ' ' + to);
  return static_cast<int>(syscall(SYS_rename, from, to));
}

namespace lockstep::checkpoint {
namespace {

using namespace testing_support;
using testing::HasSubstr;
namespace fs = std::filesystem;

void write_text(const std::string& path, std::string_view text) {
  write_atomically(path, [&](ByteSink& sink) { sink.write(text); });
}

class AtomicFileTest : public testing::Test {
 protected:
  void expect_untouched(const std::string& content) {
    EXPECT_EQ(read_file(path_), content);
    EXPECT_FALSE(fs::exists(temporary_name(path_)));
  }
  TempDir dir_;
  std::string path_ = dir_ / "file";
};

TEST_F(AtomicFileTest, ReplacesAFile) {
  write_text(path_, "old");
  write_text(path_, "new");
  expect_untouched("new");
}

TEST_F(AtomicFileTest, KeepsPiecesOfAllSizesInOrder) {
  const std::string large(3u << 20, 'L');
  write_atomically(path_, [&](ByteSink& sink) {
    for (const std::string_view piece : {std::string_view("a"), std::string_view(large), std::string_view("b")}) {
      sink.write(piece);
    }
  });
  EXPECT_EQ(read_file(path_), "a" + large + "b");
}

// Whole parts go past the page cache on a disk, and as ever on a file system in memory.
TEST_F(AtomicFileTest, WritesFilesOfAllSizes) {
  constexpr size_t kPart = 2u << 20;
  std::string bytes(3 * kPart, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 % 251);
  for (const std::string& path : {path_, "/dev/shm/" + fs::path(dir_.path()).filename().string()}) {
    for (const size_t size : {size_t{0}, kPart - 1, kPart, kPart + 1, 2 * kPart, 2 * kPart + 4096, 3 * kPart - 5}) {
      write_atomically(path, [&](ByteSink& sink) {
        sink.write({bytes.data(), size / 3});
        sink.write({bytes.data() + size / 3, size - size / 3});
      });
      EXPECT_TRUE(read_file(path) == bytes.substr(0, size)) << path << ' ' << size;
    }
    fs::remove(path);
  }
}

// Past the page cache on a disk, and as ever on a file system in memory.
TEST_F(AtomicFileTest, WritesPagesOfMemory) {
  constexpr size_t kPages = 5u << 20;
  void* const memory = mmap(nullptr, kPages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const std::span<char> pages(static_cast<char*>(memory), kPages);
  for (size_t i = 0; i < kPages; ++i) pages[i] = static_cast<char>(i * 7 % 251);
  for (const std::string& path : {path_, "/dev/shm/" + fs::path(dir_.path()).filename().string()}) {
    for (const size_t bytes : {kPages, kPages - 1, size_t{4097}, size_t{1}}) {
      const size_t whole = (bytes + 4095) / 4096 * 4096;
      write_atomically(path, pages.first(whole), bytes);
      EXPECT_TRUE(read_file(path) == std::string(pages.data(), bytes)) << path << ' ' << bytes;
    }
    fs::remove(path);
  }
  munmap(memory, kPages);
}

TEST_F(AtomicFileTest, AnErrorOfTheWriterLeavesTheOldFile) {
  write_text(path_, "old");
  const auto failing = [](ByteSink& sink) {
    sink.write("half");
    throw DataError("no more");
  };
  EXPECT_THROW(write_atomically(path_, failing), DataError);
  expect_untouched("old");
}

TEST_F(AtomicFileTest, AFullDiskLeavesTheOldFileAndSaysHowFarItCame) {
  write_text(path_, "old");
  std::string line;
  {
    const ::lockstep::testing_support::FileSizeLimit limit(2u << 20);
    line = error_of<IoError>([&] { write_text(path_, std::string(5u << 20, 'x')); });
  }
  EXPECT_THAT(line, HasSubstr("file: can't write beyond 2 MiB: File too large"));
  EXPECT_THAT(line, HasSubstr("ulimit -f"));
  expect_untouched("old");
}

TEST_F(AtomicFileTest, AFolderThatIsNotThere) {
  EXPECT_THAT(error_of<IoError>([&] { write_text(dir_ / "no/file", "x"); }), HasSubstr("make the folder first"));
}

TEST_F(AtomicFileTest, AFolderInTheFilesPlace) {
  fs::create_directory(path_);
  EXPECT_THAT(error_of<IoError>([&] { write_text(path_, "x"); }), HasSubstr("can't be replaced"));
  EXPECT_FALSE(fs::exists(temporary_name(path_)));
}

TEST_F(AtomicFileTest, OverwritesWhatAKilledWriterLeft) {
  write_file(temporary_name(path_), "a long rest of an unfinished file");
  write_text(path_, "new");
  expect_untouched("new");
}

TEST_F(AtomicFileTest, ASecondWriterIsTurnedAway) {
  const Descriptor first(open(temporary_name(path_).c_str(), O_WRONLY | O_CREAT, 0600));
  ASSERT_EQ(flock(first.get(), LOCK_EX), 0);
  EXPECT_THAT(error_of<IoError>([&] { write_text(path_, "x"); }), HasSubstr("another process is writing"));
  EXPECT_TRUE(fs::exists(temporary_name(path_)));  // the first one's
}

TEST_F(AtomicFileTest, LinksAreReplacedAtOnce) {
  write_file(dir_ / "a", "A");
  write_file(dir_ / "b", "B");
  link_atomically("a", dir_ / "last");
  EXPECT_EQ(read_file(dir_ / "last"), "A");
  link_atomically("b", dir_ / "last");
  EXPECT_EQ(read_file(dir_ / "last"), "B");
  EXPECT_EQ(fs::read_symlink(dir_ / "last"), "b");
  EXPECT_THROW(link_atomically("a", dir_ / "no/last"), IoError);
}

// A power failure after the rename must find the file's bytes on the disk, and one after the call the new name too.
TEST_F(AtomicFileTest, TheBytesAreOnTheDiskBeforeTheNameAndTheNameBeforeTheReturn) {
  const std::string folder = fs::canonical(dir_.path());
  g_disk_calls.clear();
  write_text(path_, "new");
  EXPECT_THAT(g_disk_calls, testing::ElementsAre("fsync " + folder + "/file.tmp", "rename " + path_ + ".tmp " + path_,
                                                 "fsync " + folder));
  g_disk_calls.clear();
  link_atomically("file", dir_ / "last");
  EXPECT_THAT(g_disk_calls, testing::ElementsAre(testing::StartsWith("rename "), "fsync " + folder));
}

}  // namespace
}  // namespace lockstep::checkpoint
