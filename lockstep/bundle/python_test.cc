#include "lockstep/bundle/python.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/bundle/testing/places.h"

namespace lockstep::bundle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Python : Places {};

TEST_F(Python, ThoseOfPathAreListedInItsOrderAndEachFolderOnce) {
  for (const char* folder : {"one", "two"}) make_python(dir_ / folder, "");
  std::filesystem::create_directories(dir_ / "three/python3");
  std::filesystem::create_directory_symlink(dir_ / "two", dir_ / "second");
  set("PATH", cat(dir_ / "two", ':', dir_ / "none", ':', dir_ / "second", ':', dir_ / "three", ':', dir_ / "one"));
  EXPECT_THAT(pythons_of_path(), ElementsAre(dir_ / "two/python3", dir_ / "one/python3"));
  set("PATH", dir_ / "none");
  EXPECT_THAT(pythons_of_path(), IsEmpty());
}

TEST_F(Python, AnswersWithTheFolderWhateverElseItSays) {
  make_python(dir_ / "bin", "echo hello; echo torch=/a b/torch/__init__.py; echo >&2 bye");
  EXPECT_EQ(torch_of(dir_ / "bin/python3"), "/a b/torch");
}

TEST_F(Python, MaySayMuchBesidesAndLeaveAChildBehind) {
  make_python(
      dir_ / "bin",
      "/bin/sleep 1000 & head -c 300000 /dev/zero >&2; echo 'of x-torch=/no'; echo torch=/a/torch=b/__init__.py");
  EXPECT_EQ(torch_of(dir_ / "bin/python3"), "/a/torch=b");
}

TEST_F(Python, WithoutTorchOrBrokenIsPassedOver) {
  make_python(dir_ / "bin", "exit 0");
  EXPECT_EQ(torch_of(dir_ / "bin/python3"), "");
  make_python(dir_ / "bin", "echo torch=; exit 1");
  EXPECT_EQ(torch_of(dir_ / "bin/python3"), "");
  write(dir_ / "bin/python3", "#!/no/such/program\n");
  EXPECT_EQ(torch_of(dir_ / "bin/python3"), "");
}

TEST_F(Python, ThatDoesNotAnswerIsAnErrorAndNotWaitedFor) {
  make_python(dir_ / "bin", "exec /bin/sleep 1000");
  const auto error =
      testing_support::refusal([this] { torch_of(dir_ / "bin/python3", std::chrono::milliseconds(50)); });
  EXPECT_THAT(error, HasSubstr("bin/python3: has not said for 0.05 s where its torch is"));
}

// A real one, with a package of that name and a folder of that name where it runs.
TEST_F(Python, IsAskedForThePackageAndImportsNothing) {
  const std::string real = "/usr/bin/python3";
  write(dir_ / "site/torch/__init__.py", "raise SystemExit('imported')\n");
  write(dir_ / "here/torch/__init__.py", "");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(dir_ / "here");
  EXPECT_EQ(torch_of(real), "");
  set("PYTHONPATH", dir_ / "site");
  EXPECT_EQ(torch_of(real), dir_ / "site/torch");
  std::filesystem::remove(dir_ / "site/torch/__init__.py");
  EXPECT_EQ(torch_of(real), "") << "of a folder that is no package";
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace lockstep::bundle
