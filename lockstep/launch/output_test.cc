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
#include "lockstep/launch/pty.h"

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
  std::string log_of(Terminal& terminal, const std::string& name) {
    EXPECT_TRUE(terminal.logs().drain(std::chrono::seconds(10)));
    return content(name);
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
  EXPECT_EQ(log_of(terminal, "rank0.log"), "100 %\ncareful\n");
  EXPECT_EQ(log_of(terminal, "rank1.log"), "hello\nno newline\n");
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

// A terminal that is `columns` wide, and what comes out of it.
class Screen {
 public:
  explicit Screen(unsigned short columns) {
    int primary = -1, secondary = -1;
    const winsize size{.ws_row = 24, .ws_col = columns};
    EXPECT_EQ(openpty(&primary, &secondary, nullptr, nullptr, &size), 0);
    master_ = Descriptor(primary);
    slave_ = Descriptor(secondary);
  }
  int fd() const { return slave_.get(); }
  // What has been written, up to and with `last`.
  std::string until(const std::string& last) const {
    std::string shown;
    while (shown.find(last) == std::string::npos) {  // a terminal hands it out in pieces, as it likes
      char piece[100];
      const ssize_t bytes = read(master_.get(), piece, sizeof piece);
      if (bytes <= 0) break;
      shown.append(piece, static_cast<size_t>(bytes));
    }
    return shown;
  }

 private:
  Descriptor master_, slave_;
};

TEST_F(Output, LinesOfOurWorkersBreakBetweenWordsOnANarrowTerminal) {
  const Screen screen(40);
  Terminal terminal(screen.fd(), screen.fd(), {.wraps = true});
  RankOutput zero({.raw_out = true, .log_path = folder_ + "/log"}, terminal);
  const std::string line = "  optimizer   sgd, lr 0.05 cosine to 0 at step 75, warm-up 15 steps";
  zero.feed(Stream::kOut,
            line + "\n[##..] a bar that no line ends\r\033[Kepoch 1, step 5: loss 0.5 on 10 samples of it\n");
  terminal.say("error: the end of it all, in more words than fit");
  EXPECT_EQ(screen.until("fit\r\n"),
            "  optimizer   sgd, lr 0.05 cosine to 0\r\n              at step 75, warm-up 15\r\n              steps\r\n"
            "[##..] a bar that no line ends\r\033[Kepoch 1, step 5: loss 0.5 on 10 samples\r\n  of it\r\n"
            "error: the end of it all, in more words\r\n  than fit\r\n");
  EXPECT_EQ(log_of(terminal, "log").substr(0, line.size() + 1), line + "\n") << "a log is for searching";
}

TEST_F(Output, LinesOfOtherProgramsStayAsTheyAre) {
  const Screen screen(20);
  Terminal terminal(screen.fd(), screen.fd());
  terminal.raw("one two three four five six\n");
  terminal.line(Stream::kErr, "one two three four five six seven");
  EXPECT_EQ(screen.until("seven\r\n"), "one two three four five six\r\none two three four five six seven\r\n");
}

TEST_F(Output, SilentRanksStillHaveLogsAndLastLines) {
  Terminal terminal(out_.get(), err_.get());
  RankOutput quiet({.raw_out = true, .silent = true, .log_path = folder_ + "/log"}, terminal);
  for (int i = 0; i < 9; ++i) quiet.feed(Stream::kOut, cat(i, '\n'));
  quiet.note("end");
  EXPECT_EQ(content("out"), "");
  EXPECT_EQ(log_of(terminal, "log"), "0\n1\n2\n3\n4\n5\n6\n7\n8\nend\n");
  std::vector<std::string> last;
  for (const auto& line : quiet.last_lines()) {
    last.push_back(line.text);
    EXPECT_FALSE(line.seen);
  }
  EXPECT_THAT(last, ElementsAre("4", "5", "6", "7", "8"));
}

TEST_F(Output, AStreamMayHaveAFileOfItsOwnAndBeHidden) {
  Terminal terminal(out_.get(), err_.get());
  const auto filter = std::make_shared<LineFilter>(LineFilter{{"loss", "rank"}, LogWriter::open(folder_ + "/some")});
  RankOutput redirected(
      {.prefix = "[default0]:", .streams = {{{.hidden = true, .path = folder_ + "/redirected"}, {.filter = filter}}}},
      terminal);
  redirected.feed(Stream::kOut, "a loss\n\033[33mof mine\033[0m\n");
  redirected.feed(Stream::kErr, "a loss\nno matter\n");
  redirected.note("error: the end");
  EXPECT_EQ(content("out"), "");
  EXPECT_EQ(content("err"), "[default0]:a loss\n[default0]:no matter\n");
  EXPECT_EQ(log_of(terminal, "redirected"), "a loss\n\033[33mof mine\033[0m\n");
  EXPECT_EQ(log_of(terminal, "some"), "[default0]:a loss\n");
  EXPECT_EQ(redirected.log_path(), "") << "standard error is not in a file";
}

TEST_F(Output, ALogHasNoRedrawsAndNoEscapeCodes) {
  Terminal terminal(out_.get(), err_.get());
  RankOutput zero({.raw_out = true, .log_path = folder_ + "/log"}, terminal);
  zero.feed(Stream::kOut, "header\n\r\033[K[##..] step 1\r\033[K[####] step 2\r\033[Kstep 2: loss 0.5\n");
  zero.feed(Stream::kErr, "\033[33mwarning: careful\033[0m\n");
  EXPECT_EQ(log_of(terminal, "log"), "header\nstep 2: loss 0.5\nwarning: careful\n");
}

TEST_F(Output, LinesThatAreOnTheLaunchersOwnErrorStreamAreSeen) {
  Terminal apart(out_.get(), err_.get()), together(out_.get(), out_.get());
  RankOutput one({}, apart), other({}, together);
  for (RankOutput* const output : {&one, &other}) {
    output->feed(Stream::kOut, "out\n");
    output->feed(Stream::kErr, "err\n");
  }
  using Last = RankOutput::LastLine;
  EXPECT_THAT(one.last_lines(), ElementsAre(Last{"out", false}, Last{"err", true}));
  EXPECT_THAT(other.last_lines(), ElementsAre(Last{"out", true}, Last{"err", true}));
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
  EXPECT_TRUE(sink.holds_up());
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

// A terminal says that it is writable, and a write of more than it has room for blocks.
TEST(Sink, ATerminalThatStandsStillBlocksNobodyAndLosesNothing) {
  constexpr unsigned kMostSeconds = 20;
  const auto pty = open_pty(80);
  ASSERT_TRUE(pty.has_value());
  Sink sink(pty->slave.get());
  std::string text;
  alarm(kMostSeconds);  // a write that blocks is never heard of again
  for (int i = 0; !sink.holds_up(); ++i) {
    const std::string line = cat(i, std::string(3000, 'x'), '\n');
    sink.write(line);
    text += line;
  }
  EXPECT_EQ(fcntl(pty->slave.get(), F_GETFL) & O_NONBLOCK, 0) << "others who write there may block";
  std::string got;
  while (got.size() < text.size()) {
    char buffer[65536];
    const ssize_t bytes = read(pty->master.get(), buffer, sizeof buffer);
    ASSERT_GT(bytes, 0);
    got.append(buffer, static_cast<size_t>(bytes));
    sink.pump();
  }
  alarm(0);
  EXPECT_EQ(got, text);
  EXPECT_FALSE(sink.waiting() || sink.rests());
}

// As Ctrl-S, or a pager that nobody pages on.
TEST(Sink, AReaderThatStandsStillMissesOutputAndIsToldHowMuch) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Descriptor reader(ends[0]), writer(ends[1]);
  Sink sink(writer.get(), /*leaves_out=*/true);
  const std::string line(999, 'x');
  for (int i = 0; i < 1000; ++i) {
    sink.write(line + '\n');
    EXPECT_FALSE(sink.holds_up());
  }
  sink.write_all("error: kept\n");
  std::string got;
  char buffer[65536];
  while (sink.waiting() || got.find("kept") == std::string::npos) {
    const ssize_t bytes = read(reader.get(), buffer, sizeof buffer);
    ASSERT_GT(bytes, 0);
    got.append(buffer, static_cast<size_t>(bytes));
    sink.pump();
  }
  EXPECT_LT(got.size(), 200'000u);
  EXPECT_NE(got.find(" KiB of output left out here; the logs have it]\nerror: kept\n"), std::string::npos);
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
