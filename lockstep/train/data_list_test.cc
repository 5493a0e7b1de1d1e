#include "lockstep/train/data_list.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

const std::vector<Listed> kFiles = {{"cats/1.jpg", 800}, {"cats/2.jpg", 5}, {"dogs/1.jpg", 0}};

DataFiles files(std::vector<Listed> train, std::vector<Listed> validation = {}, std::vector<Listed> test = {}) {
  return {std::move(train), std::move(validation), std::move(test)};
}

TEST(DataList, ComesBack) {
  EXPECT_EQ(files_in(to_text(files(kFiles))), files(kFiles));
  EXPECT_EQ(files_in(to_text(files(kFiles, {{"eels/1.jpg", 7}}, {{"cats/1.jpg", 3}}))),
            files(kFiles, {{"eels/1.jpg", 7}}, {{"cats/1.jpg", 3}}));
  EXPECT_EQ(files_in(to_text(files({}, {}, kFiles))), files({}, {}, kFiles));
  const std::vector<Listed> odd = {{"a b\nc", 1}, {"back\\slash\\n", 18446744073709551615u}, {" blank ", 2}};
  EXPECT_EQ(files_in(to_text(files(odd))), files(odd));
  EXPECT_EQ(to_text(files({})), "") << "data that lie in no files";
}

TEST(DataList, OfAnOlderVersionHasTheTrainingPartAlone) {
  const DataFiles older = files_in("rubbish\n12\n7 x\n");
  EXPECT_EQ(of(older, Part::kTrain), (std::vector<Listed>{{"x", 7}}));
  EXPECT_FALSE(of(older, Part::kTest));
  EXPECT_FALSE(of(older, Part::kValidation));
}

TEST(DataList, WithoutOneNothingIsKnown) {
  for (const Part part : kParts) EXPECT_FALSE(of(read_data_list("/no/such/run"), part));
}

TEST(DataList, TheFirstDifferenceIsNamed) {
  EXPECT_EQ(changed_file(kFiles, kFiles), "");
  std::vector<Listed> now = kFiles;
  now.insert(now.begin() + 1, {"cats/10.jpg", 1});
  EXPECT_EQ(changed_file(kFiles, now), "cats/10.jpg was added");
  EXPECT_EQ(changed_file(now, kFiles), "cats/10.jpg is gone");
  now = kFiles;
  now[0].bytes = 812;
  EXPECT_EQ(changed_file(kFiles, now), "cats/1.jpg has 812 bytes, and had 800");
  now = kFiles;
  now.pop_back();
  EXPECT_EQ(changed_file(kFiles, now), "dogs/1.jpg is gone");
  EXPECT_EQ(changed_file(now, kFiles), "dogs/1.jpg was added");
}

TEST(DataList, ADifferenceIsOneLine) {
  const std::vector<Listed> old = {{"a\nb", 1}}, larger = {{"a\nb", 2}};
  EXPECT_EQ(changed_file(old, {}), "a\\nb is gone");
  EXPECT_EQ(changed_file({}, old), "a\\nb was added");
  EXPECT_EQ(changed_file(old, larger), "a\\nb has 2 bytes, and had 1");
}

}  // namespace
}  // namespace lockstep::train
