#include "lockstep/launch/output.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "lockstep/base/error.h"

namespace lockstep::launch {
namespace {

using testing::ElementsAre;
using Stream = Terminal::Stream;

std::vector<std::string> split(const std::vector<std::string>& pieces) {
  LineSplitter splitter;
  std::vector<std::string> lines;
  const auto take = [&lines](std::string_view line) { lines.emplace_back(line); };
  for (const auto& piece : pieces) splitter.feed(piece, take);
  splitter.finish(take);
  return lines;
}

TEST(LineSplitter, CutsAnywhere) {
  EXPECT_THAT(split({"one\ntw", "o\n", "\nthree"}), ElementsAre("one", "two", "", "three"));
  EXPECT_THAT(split({}), ElementsAre());
  EXPECT_THAT(split({std::string("a\0b\n", 4)}), ElementsAre(std::string("a\0b", 3)));
}

TEST(LineSplitter, KeepsWhatATerminalWouldShow) {
  EXPECT_THAT(split({"\r10 %\r20 %", "\r30 %\n"}), ElementsAre("30 %"));
  EXPECT_THAT(split({"windows\r", "\nline\r\n"}), ElementsAre("windows", "line"));
  EXPECT_THAT(split({"left\r"}), ElementsAre("left"));
}

TEST(LineSplitter, VeryLongLinesComeInPieces) {
  const std::string longest(LineSplitter::kMostLineBytes, 'x');
  EXPECT_THAT(split({longest + "\n"}), ElementsAre(longest));
  EXPECT_THAT(split({longest + longest + "yz\n"}), ElementsAre(longest, longest, "yz"));
}

class Output : public testing::Test {
 protected:
  Output() {
    std::string folder = testing::TempDir() + "/output-XXXXXX";
    folder_ = mkdtemp(folder.data());
    out_ = Descriptor(open((folder_ + "/out").c_str(), O_RDWR | O_CREAT | O_APPEND, 0600));
    err_ = Descriptor(open((folder_ + "/err").c_str(), O_RDWR | O_CREAT | O_APPEND, 0600));
  }
  std::string content(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(folder_ + "/" + name).rdbuf();
    return text.str();
  }

  std::string folder_;
  Descriptor out_, err_;
};

TEST_F(Output, Rank0GoesThroughUntouchedAndOthersArePrefixed) {
  Terminal terminal(out_.get(), err_.get());
  RankOutput zero({.prefix = "[rank 0] ", .raw_out = true, .log_path = folder_ + "/rank0.log"}, terminal);
  RankOutput one({.prefix = "[rank 1] ", .log_path = folder_ + "/rank1.log"}, terminal);
  zero.feed(Stream::kOut, "50 %\r");
  EXPECT_EQ(content("out"), "50 %\r") << "at once, not at the end of the line";
  zero.feed(Stream::kOut, "100 %\n");
  zero.feed(Stream::kErr, "careful\n");
  one.feed(Stream::kOut, "hel");
  one.feed(Stream::kOut, "lo\nno newline");
  one.finish(Stream::kOut);
  EXPECT_EQ(content("out"), "50 %\r100 %\n[rank 1] hello\n[rank 1] no newline\n");
  EXPECT_EQ(content("err"), "[rank 0] careful\n");
  EXPECT_EQ(content("rank0.log"), "100 %\ncareful\n");
  EXPECT_EQ(content("rank1.log"), "hello\nno newline\n");
}

TEST_F(Output, MachineReadableOutputIsRank0sAlone) {
  Terminal terminal(out_.get(), err_.get());
  RankOutput zero({.prefix = "[rank 0] ", .raw_out = true, .out_to_err = true}, terminal);
  RankOutput one({.prefix = "[rank 1] ", .out_to_err = true}, terminal);
  zero.feed(Stream::kOut, "{");
  one.feed(Stream::kOut, "chatter\n");
  zero.feed(Stream::kOut, "}\n");
  EXPECT_EQ(content("out"), "{}\n");
  EXPECT_EQ(content("err"), "[rank 1] chatter\n");
}

TEST_F(Output, AHalfLineIsEndedBeforeAnothersLine) {
  Terminal terminal(out_.get(), out_.get());
  terminal.raw("half");
  terminal.line(Stream::kErr, "[rank 1] other");
  terminal.line(Stream::kErr, "[rank 1] more");
  EXPECT_EQ(content("out"), "half\n[rank 1] other\n[rank 1] more\n");
}

TEST_F(Output, AProgressBarIsRubbedOut) {
  int primary = -1, secondary = -1;
  ASSERT_EQ(openpty(&primary, &secondary, nullptr, nullptr, nullptr), 0);
  const Descriptor master(primary), slave(secondary);
  Terminal terminal(slave.get(), slave.get());
  terminal.raw("\r50 %");
  terminal.line(Stream::kErr, "[rank 1] other");
  const std::string expected = "\r50 %\r\033[K[rank 1] other\r\n";
  std::string shown;
  while (shown.size() < expected.size()) {  // a terminal hands it out in pieces, as it likes
    char piece[100];
    const ssize_t bytes = read(master.get(), piece, sizeof piece);
    ASSERT_GT(bytes, 0);
    shown.append(piece, static_cast<size_t>(bytes));
  }
  EXPECT_EQ(shown, expected);
}

TEST_F(Output, SilentRanksStillHaveLogsAndLastLines) {
  Terminal terminal(out_.get(), err_.get());
  RankOutput quiet({.raw_out = true, .silent = true, .log_path = folder_ + "/log"}, terminal);
  for (int i = 0; i < 9; ++i) quiet.feed(Stream::kOut, cat(i, '\n'));
  quiet.note("end");
  EXPECT_EQ(content("out"), "");
  EXPECT_EQ(content("log"), "0\n1\n2\n3\n4\n5\n6\n7\n8\nend\n");
  EXPECT_THAT(quiet.last_lines(), ElementsAre("4", "5", "6", "7", "8"));
}

TEST_F(Output, ALogThatCantBeWritten) {
  Terminal terminal(out_.get(), err_.get());
  EXPECT_THROW(RankOutput({.log_path = "/no/such/folder/rank0.log"}, terminal), IoError);
}

TEST(Sink, ASlowReaderBlocksNobodyAndLosesNothing) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Descriptor reader(ends[0]), writer(ends[1]);
  Sink sink(writer.get());
  const std::string text(300'000, 'x');
  sink.write(text);
  EXPECT_TRUE(sink.clogged());
  std::string got;
  while (got.size() < text.size()) {
    char buffer[65536];
    const ssize_t bytes = read(reader.get(), buffer, sizeof buffer);
    ASSERT_GT(bytes, 0);
    got.append(buffer, static_cast<size_t>(bytes));
    sink.pump();
  }
  EXPECT_EQ(got, text);
  EXPECT_FALSE(sink.waiting());
}

TEST(Sink, AReaderThatIsGoneIsForgotten) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  const Descriptor writer(ends[1]);
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  Sink sink(writer.get());
  sink.write("nobody hears this");
  EXPECT_FALSE(sink.waiting());
  sink.write("nor this");
  sink.flush();
  EXPECT_FALSE(sink.waiting());
  ::signal(SIGPIPE, before);
}

}  // namespace
}  // namespace lockstep::launch
