#include "lockstep/comm/plugins/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "lockstep/base/error.h"

namespace lockstep::comm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class PluginTest : public ::testing::Test {
 protected:
  PluginTest() {
    std::string folder = ::testing::TempDir() + "plugin-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("mkdtemp");
    folder_ = folder;
    setenv("LOCKSTEP_PLUGIN_PATH", ("/nowhere::" + folder).c_str(), 1);
  }
  ~PluginTest() override {
    unsetenv("LOCKSTEP_PLUGIN_PATH");
    std::filesystem::remove_all(folder_);
  }

  // A plug-in made of this C, opened.
  void* open(const std::string& text, const char* symbol = "entry") {
    std::ofstream(folder_ / "x.c") << text;
    const std::string command =
        "cc -shared -fPIC -o '" + (folder_ / name_.library).string() + "' '" + (folder_ / "x.c").string() + "' 2>&1";
    if (std::system(command.c_str()) != 0) throw std::runtime_error(command);
    return plugin_symbol(name_, symbol);
  }
  static std::string build_text(const std::string& build) {
    return "const char* lockstep_plugin_build(void) { return \"" + build + "\"; }\n";
  }

  PluginName name_{"mpi", "liblockstep_test_only.so", "install it"};
  std::filesystem::path folder_;
};

TEST_F(PluginTest, LooksInTheVariablesFoldersThenBesideTheProgram) {
  const auto folders = plugin_folders();
  ASSERT_EQ(folders.size(), 4u);
  EXPECT_EQ(folders[0], "/nowhere");
  EXPECT_EQ(folders[1], folder_);
  EXPECT_EQ(folders[2], std::filesystem::read_symlink("/proc/self/exe").parent_path());
  EXPECT_EQ(folders[3], std::filesystem::path(folders[2]).parent_path() / "lib");
}

TEST_F(PluginTest, AMissingOneSaysWhatToDo) {
  EXPECT_THAT([&] { plugin_symbol(name_, "entry"); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("backend mpi: this build has no liblockstep_test_only.so"),
                                               HasSubstr("install it"))));
}

TEST_F(PluginTest, GivesTheFunctionOfOneOfThisBuild) {
  auto* entry = reinterpret_cast<int (*)()>(open(build_text(plugin_build()) + "int entry(void) { return 42; }"));
  EXPECT_EQ(entry(), 42);
}

TEST_F(PluginTest, RefusesOneOfAnotherBuild) {
  EXPECT_THAT([&] { open(build_text("0.0.1-Debug-abc") + "int entry(void) { return 42; }"); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("is of build 0.0.1-Debug-abc"), HasSubstr(plugin_build()))));
}

TEST_F(PluginTest, RefusesALibraryThatIsNone) {
  EXPECT_THAT([&] { open("int entry(void) { return 42; }"); },
              ThrowsMessage<ConfigError>(HasSubstr("has no lockstep_plugin_build")));
}

TEST_F(PluginTest, RefusesAFileThatIsNoLibrary) {
  std::ofstream(folder_ / name_.library) << "no library";
  EXPECT_THAT([&] { plugin_symbol(name_, "entry"); }, ThrowsMessage<ConfigError>(HasSubstr("can't be opened")));
}

}  // namespace
}  // namespace lockstep::comm
