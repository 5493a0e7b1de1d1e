// Gloo's headers are Debian's, its code is libtorch's: nothing of Gloo's may be compiled into our programs, where its
// weak symbols could take the place of libtorch's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <regex>
#include <sstream>

#include "program.h"

namespace lockstep::e2e {
namespace {

using ::testing::HasSubstr;

// Version of the headers that this was tested with. Another may be as good: run lockstep_network_test, then change it.
constexpr const char* kGlooHeaders = "0.0~git20220518.5b14351-3";

// A tool's output; empty if this machine lacks the tool.
std::string output_of(const std::string& tool, const std::vector<std::string>& arguments) {
  const std::string path = "/usr/bin/" + tool;
  if (access(path.c_str(), X_OK) != 0) return "";
  Program::Options options{.command = {path}};
  options.command.insert(options.command.end(), arguments.begin(), arguments.end());
  return Program(options).wait().out;
}

// Our programs that contain lockstep::comm, and were built.
std::vector<std::string> programs() {
  std::vector<std::string> found;
  for (const char* name : {"lockstep-worker", "example_data_parallel", "example_single_process"}) {
    const std::string path = bin_folder() + '/' + name;
    if (std::filesystem::exists(path)) found.push_back(path);
  }
  return found;
}

// Functions, tables and data of Gloo's, and of c10d's classes around it. A std::shared_ptr of such a type, and c10's
// intrusive_ptr, are instantiated by whoever uses them, and look alike everywhere.
std::string symbols_of_gloo(const std::string& names) {
  static const std::regex kOurs(R"(^[0-9a-f]+ \S ((vtable|typeinfo|typeinfo name|VTT|guard variable) for )?)"
                                R"((gloo::|c10d::ProcessGroupGloo|c10d::GlooStore).*$)");
  std::string found;
  std::istringstream lines(names);
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, kOurs)) found += line + '\n';
  }
  return found;
}

TEST(Symbols, OfGlooAreRecognised) {
  EXPECT_NE(symbols_of_gloo("0000000014ea7df0 V vtable for c10d::ProcessGroupGloo::GlooStore\n"), "");
  EXPECT_NE(symbols_of_gloo("00000000000003f0 W gloo::rendezvous::Store::~Store()\n"), "");
  EXPECT_EQ(symbols_of_gloo("00000000000003f0 W std::__shared_ptr<gloo::transport::Device>::~__shared_ptr()\n"), "");
  EXPECT_EQ(symbols_of_gloo("00000000000003f0 t lockstep::comm::GlooMesh::abort()\n"), "");
}

TEST(Symbols, OfGlooAreNotInOurPrograms) {
  ASSERT_FALSE(programs().empty());
  for (const auto& program : programs()) {
    const std::string names = output_of("nm", {"-C", "--defined-only", program});
    if (names.empty()) GTEST_SKIP() << "no nm (Debian: binutils)";
    ASSERT_THAT(names, HasSubstr(" main\n")) << program << " is stripped";
    EXPECT_EQ(symbols_of_gloo(names), "") << program;
  }
}

TEST(Symbols, DebiansGlooIsNotLinked) {
  for (const auto& program : programs()) {
    const std::string dynamic = output_of("readelf", {"-d", program});
    if (dynamic.empty()) GTEST_SKIP() << "no readelf (Debian: binutils)";
    EXPECT_THAT(dynamic, HasSubstr("libtorch_cpu.so")) << program;
    EXPECT_THAT(dynamic, ::testing::Not(HasSubstr("libgloo"))) << program;
  }
}

TEST(Symbols, GloosHeadersAreTheOnesThatWereTested) {
  const std::string version = output_of("dpkg-query", {"-W", "-f", "${Version}", "libgloo-dev"});
  if (version.empty()) GTEST_SKIP() << "libgloo-dev is no package here";
  EXPECT_EQ(version, kGlooHeaders);
}

}  // namespace
}  // namespace lockstep::e2e
