#include "lockstep/track/event_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/file_size_limit.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/track/testing/read_events.h"

namespace lockstep::track {
namespace {

using testing_support::read_events;

class EventFileTest : public testing::Test {
 protected:
  lockstep::testing_support::TempDir dir_;
  std::string folder_ = dir_ / "tensorboard";
};

// The bytes that TensorBoard's own RecordWriter writes.
TEST_F(EventFileTest, FramesRecordsAsTFRecord) {
  const std::string frame = framed("abc");
  EXPECT_EQ(frame, std::string("\x03\0\0\0\0\0\0\0\xb0\x99I\x0e"
                               "abcnW\xf1!",
                               19));
}

TEST_F(EventFileTest, BeginsWithItsVersionAndAStart) {
  EventFile file(folder_, 8);
  file.summary(9, 12.5, ProtoWriter().text(1, "value"));
  const auto events = read_events(file.path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].text(3), "brain.Event:2");
  EXPECT_EQ(events[1].whole(2), 8);
  EXPECT_EQ(events[1].message(7).whole(1), 1) << "SessionLog::START";
  EXPECT_EQ(events[2].real(1), 12.5);
  EXPECT_EQ(events[2].whole(2), 9);
  EXPECT_EQ(events[2].message(5).text(1), "value");
}

TEST_F(EventFileTest, LaterFilesSortBehindEarlierOnes) {
  const std::string first = EventFile(folder_, 1).path(), second = EventFile(folder_, 1).path();
  EXPECT_LT(first, second);
  EXPECT_TRUE(first.ends_with(".lockstep"));
}

TEST_F(EventFileTest, OnlyItsOwnFilesAreRemoved) {
  EXPECT_FALSE(has_event_files(folder_));
  EXPECT_FALSE(remove_event_files(folder_));
  const std::string own = EventFile(folder_, 1).path(), other = folder_ + "/events.out.tfevents.1.host";
  std::ofstream(other) << "x";
  EXPECT_TRUE(has_event_files(folder_));
  EXPECT_TRUE(remove_event_files(folder_));
  struct stat status {};
  EXPECT_EQ(stat(other.c_str(), &status), 0);
  EXPECT_NE(stat(own.c_str(), &status), 0);
}

TEST_F(EventFileTest, AFullDiskIsAnError) {
  EventFile file(folder_, 1);
  const lockstep::testing_support::FileSizeLimit limit(100);
  try {
    file.summary(1, 1, ProtoWriter().text(1, std::string(100, 'x')));
    FAIL() << "nothing was thrown";
  } catch (const IoError& error) {
    EXPECT_EQ(error.what(),
              file.path() + ": can't be written: File too large (errno 27); free some space, then --resume");
  }
}

TEST_F(EventFileTest, AFolderThatCantBeMadeIsAnError) {
  std::ofstream(folder_) << "a file";
  EXPECT_THROW(EventFile(folder_, 1), IoError);
}

}  // namespace
}  // namespace lockstep::track
