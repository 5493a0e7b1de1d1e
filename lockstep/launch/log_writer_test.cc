#include "lockstep/launch/log_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"

namespace lockstep::launch {
namespace {

class LogWriterTest : public testing::Test {
 protected:
  std::string path_ = testing::TempDir() + "log." + std::to_string(getpid());
  void TearDown() override { unlink(path_.c_str()); }
};

TEST_F(LogWriterTest, LinesArriveInOrder) {
  {
    LogWriter logs;
    const LogFile file = LogWriter::open(path_);
    for (int i = 0; i < 1000; ++i) logs.write(file, std::to_string(i));
  }
  std::ifstream in(path_);
  int count = 0;
  for (std::string line; std::getline(in, line);) EXPECT_EQ(line, std::to_string(count++));
  EXPECT_EQ(count, 1000);
}

// A FIFO that nobody reads stands for a file system that hangs.
TEST_F(LogWriterTest, AFileThatHangsBlocksNobody) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  Descriptor reader(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const Stopwatch watch;
  {
    LogWriter logs;
    const LogFile file = LogWriter::open(path_);
    const std::string line(1 << 20, 'x');
    for (int i = 0; i < 100; ++i) logs.write(file, line);  // more than it keeps
    EXPECT_FALSE(logs.drain(std::chrono::milliseconds(10)));
    EXPECT_LT(watch.seconds(), 2);
  }
  EXPECT_LT(watch.seconds(), 20) << "nor does its end";
}

TEST_F(LogWriterTest, WhatIsLeftOutIsTold) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const Descriptor reader(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  LogWriter logs;
  const LogFile file = LogWriter::open(path_);
  const std::string line(1 << 20, 'x');
  // More than twice what waits at most: as much again may be in the thread's hands.
  for (int i = 0; i < 60; ++i) logs.write(file, line);
  std::string all, buffer(1 << 20, '\0');
  const auto read_on = [&] {
    for (const Stopwatch watch; !logs.drain(std::chrono::milliseconds(0)) && watch.seconds() < 100;) {
      const ssize_t got = read(reader.get(), buffer.data(), buffer.size());
      if (got > 0) all.append(buffer, 0, static_cast<size_t>(got));
    }
  };
  read_on();
  logs.write(file, "on again");
  read_on();
  for (ssize_t got = 0; (got = read(reader.get(), buffer.data(), buffer.size())) > 0;) {
    all.append(buffer, 0, static_cast<size_t>(got));
  }
  EXPECT_NE(all.find("left out: the disk did not keep up]\non again\n"), std::string::npos);
}

TEST_F(LogWriterTest, AFolderThatIsNotThereIsAnError) { EXPECT_THROW(LogWriter::open("/no/such/log"), IoError); }

}  // namespace
}  // namespace lockstep::launch
