#include "lockstep/dash/html.h"

#include <gtest/gtest.h>

namespace lockstep::dash {
namespace {

TEST(Escaped, LeavesNothingToHtml) {
  EXPECT_EQ(escaped("<a href='x' b=\"y\">&"), "&lt;a href=&#39;x&#39; b=&quot;y&quot;&gt;&amp;");
  EXPECT_EQ(escaped("größer\n"), "größer\n");
}

TEST(Escaped, ShowsWhatIsNoText) {
  EXPECT_EQ(escaped(std::string("\0\x1b\xff\x7f", 4)), "\\x00\\x1b\\xff\\x7f");
  EXPECT_EQ(escaped("\xc3"), "\\xc3");
}

}  // namespace
}  // namespace lockstep::dash
