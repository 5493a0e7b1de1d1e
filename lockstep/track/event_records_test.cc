#include "lockstep/track/event_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/track/event_file.h"
#include "lockstep/track/testing/read_events.h"

namespace lockstep::track {
namespace {

using ::lockstep::testing_support::refusal;
using ::testing::HasSubstr;

class EventRecordsTest : public testing::Test {
 protected:
  // A start of a run that goes on to step `last`.
  std::string started(int64_t first, int64_t last) const {
    EventFile file(folder_, first);
    for (int64_t step = first; step <= last; ++step) file.summary(step, 1.0, ProtoWriter().text(1, "value"));
    return file.path();
  }
  static std::string content_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::vector<int64_t> steps_in(const std::string& path) {
    std::vector<int64_t> steps;
    for (const EventRecord& each : read_event_records(path).whole) steps.push_back(each.step);
    return steps;
  }

  lockstep::testing_support::TempDir dir_;
  std::string folder_ = dir_ / "run";
};

TEST_F(EventRecordsTest, AreThoseThatWereWritten) {
  const std::string path = started(1, 3);
  EXPECT_EQ(steps_in(path), (std::vector<int64_t>{0, 1, 1, 2, 3}));
  EXPECT_EQ(read_event_records(path).whole.back().end, std::filesystem::file_size(path));
  EXPECT_FALSE(read_event_records(path).has_half);
}

TEST_F(EventRecordsTest, AHalfOneIsToldFromADamagedOne) {
  const std::string path = started(1, 3), whole = content_of(path);
  for (size_t size = 0; size <= whole.size(); ++size) {
    std::filesystem::resize_file(path, size);
    const EventRecords records = read_event_records(path);
    const uint64_t end = records.whole.empty() ? 0 : records.whole.back().end;
    EXPECT_EQ(records.has_half, end < size) << size;
    std::ofstream(path, std::ios::binary) << whole;
  }
  std::string damaged = whole;
  damaged[damaged.size() - 6] ^= 1;
  std::ofstream(path, std::ios::binary) << damaged;
  EXPECT_THAT(refusal<DataError>([&] { read_event_records(path); }), HasSubstr("record 5, at byte"));
}

TEST_F(EventRecordsTest, AreCutBackToAStep) {
  const std::string first = started(1, 4), second = started(3, 6), third = started(6, 7);
  EXPECT_FALSE(cut_event_files(folder_, 7));
  EXPECT_TRUE(cut_event_files(folder_, 4));
  EXPECT_EQ(steps_in(first), (std::vector<int64_t>{0, 1, 1, 2, 3, 4}));
  EXPECT_EQ(steps_in(second), (std::vector<int64_t>{0, 3, 3, 4}));
  EXPECT_FALSE(std::filesystem::exists(third)) << "it says nothing of steps up to 4";
}

TEST_F(EventRecordsTest, ADamagedFileIsLeft) {
  const std::string path = started(1, 3);
  std::string damaged = content_of(path);
  damaged[30] ^= 1;
  std::ofstream(path, std::ios::binary) << damaged;
  EXPECT_FALSE(cut_event_files(folder_, 1));
  EXPECT_EQ(content_of(path), damaged);
}

}  // namespace
}  // namespace lockstep::track
