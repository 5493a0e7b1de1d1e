#include "lockstep/base/terminal.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

namespace lockstep {
namespace {

TEST(Terminal, LongLinesBreakBetweenWords) {
  EXPECT_EQ(wrap_line("error: one two three", 12), "error: one\n  two three");
  EXPECT_EQ(wrap_line("error: one two three", 20), "error: one two three");
  EXPECT_EQ(wrap_line("error: one two three", 0), "error: one two three");
  EXPECT_EQ(wrap_line("", 10), "");
}

TEST(Terminal, WhatFollowsALabelStaysBesideIt) {
  EXPECT_EQ(wrap_line("  options     --lr 0.1 --ema 0.99 --clip 1", 32),
            "  options     --lr 0.1 --ema\n              0.99 --clip 1");
}

TEST(Terminal, WordsLongerThanALineStayWhole) {
  EXPECT_EQ(wrap_line("see /a/very/long/path/to/something now", 16), "see\n  /a/very/long/path/to/something\n  now");
}

TEST(Terminal, CharactersAreCountedAndNotBytes) { EXPECT_EQ(wrap_line("ääää ööö", 8), "ääää ööö"); }

TEST(Terminal, EscapesAreTakenOut) {
  EXPECT_EQ(without_escapes("\033[Ksaved \033[1;31mred\033[0m"), "saved red");
  EXPECT_EQ(without_escapes("\033]0;title\ahere\033]8;;x\033\\ and"), "here and");
  EXPECT_EQ(without_escapes("plain\033"), "plain");
  EXPECT_EQ(without_escapes("cut \033[3"), "cut ");
}

TEST(Terminal, KnowsTheWidth) {
  int primary = -1, secondary = -1;
  winsize size{.ws_row = 24, .ws_col = 57};
  ASSERT_EQ(openpty(&primary, &secondary, nullptr, nullptr, &size), 0);
  EXPECT_EQ(terminal_columns(secondary), 57);
  close(primary);
  close(secondary);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(terminal_columns(ends[1]), 0);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace lockstep
