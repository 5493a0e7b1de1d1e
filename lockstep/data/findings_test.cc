#include "lockstep/data/findings.h"

#include <gtest/gtest.h>

namespace lockstep::data {
namespace {

// Counts the looks at files.
struct Looks {
  int count = 0;
  Findings::Look at(const std::string& what) {
    return [this, what] { return ++count, what; };
  }
};

TEST(Findings, AreLookedForOnceWhileTheFilesAreTheSame) {
  Looks looks;
  Findings findings;
  EXPECT_EQ(findings.find("masks", "a1", looks.at("0 255")), "0 255");
  EXPECT_EQ(findings.find("masks", "a1", looks.at("0 7")), "0 255");
  EXPECT_EQ(looks.count, 1);
  EXPECT_EQ(findings.find("images", "a1", looks.at("1 64 48")), "1 64 48") << "another question";
  EXPECT_EQ(findings.find("masks", "b2", looks.at("0 7")), "0 7") << "other files";
  EXPECT_EQ(findings.find("masks", "a1", looks.at("0 9")), "0 9") << "those of the former ones are gone";
  EXPECT_EQ(looks.count, 4);
}

TEST(Findings, OfFilesThatCantBeToldFromOthersAreNotKept) {
  Looks looks;
  Findings findings;
  findings.find("masks", "a1", looks.at("0 255"));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(findings.find("masks", "", looks.at("0 7")), "0 7");
  EXPECT_EQ(looks.count, 3);
  EXPECT_EQ(findings.text(), "");
}

TEST(Findings, AreReadAgainFromTheirText) {
  Looks looks;
  Findings findings;
  EXPECT_EQ(findings.text(), "");
  findings.find("masks", "a1", looks.at("0 255"));
  findings.find("images", "a1", looks.at(""));
  EXPECT_EQ(findings.text(), "images a1 \nmasks a1 0 255\n");
  Findings again("no finding\n\n" + findings.text() + "masks");
  EXPECT_EQ(again.find("masks", "a1", looks.at("else")), "0 255");
  EXPECT_EQ(looks.count, 2);
}

}  // namespace
}  // namespace lockstep::data
