// What a power cut leaves of saves, at any moment and whatever part of the unsynced changes was on the disk by then.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <set>

#include "disk.h"
#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/sync_folder.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/checkpoint/files/atomic_file.h"
#include "saves.h"
#include "traced.h"

namespace lockstep::faults {
namespace {

using Kind = DiskCall::Kind;
using testing_support::TempDir;
namespace fs = std::filesystem;

constexpr int64_t kExhaustive = 6, kSamples = 40;  // the most changes of which all subsets are tried; else draws a call
constexpr const char* kBegun = "begun ";
constexpr const char* kSaved = "saved ";

// What the disk holds for a shorter name in sets.
std::string digest(const Disk::Image& image) {
  Sha256 hash;
  for (const auto& [name, entry] : image) {
    hash.update(cat(name, '\0', static_cast<int>(entry.kind), '\0', entry.content.size(), '\0'));
    hash.update(entry.content);
  }
  return hash.hex();
}

using Survives = std::function<bool(size_t)>;

// All subsets of a few changes. Of more: none, all, the names alone, the bytes alone, each change left out alone where
// it is a name's, and some by chance.
std::vector<Survives> subsets(const Disk& disk, std::mt19937_64& draw) {
  const size_t count = disk.unsettled(), names = disk.unsettled_names();
  std::vector<Survives> all;
  if (count <= kExhaustive) {
    for (uint64_t mask = 0; mask < uint64_t{1} << count; ++mask) {
      all.push_back([mask](size_t change) { return (mask >> change & 1) != 0; });
    }
    return all;
  }
  all.push_back([](size_t) { return false; });
  all.push_back([](size_t) { return true; });
  all.push_back([names](size_t change) { return change < names; });
  all.push_back([names](size_t change) { return change >= names; });
  for (size_t lost = 0; lost < names; ++lost) all.push_back([lost](size_t change) { return change != lost; });
  for (int64_t i = 0; i < kSamples * samples_factor(); ++i) {
    const uint64_t key = draw(), share = draw() % 4;  // in three of four some, in one hardly anything is lost
    all.push_back([key, share](size_t change) {
      std::mt19937_64 own(key + change);
      return share == 0 ? own() % 64 != 0 : own() % 2 == 0;
    });
  }
  return all;
}

// The folder after each power cut that can be, with the steps of which the newest checkpoint must be one.
class PowerCuts {
 public:
  PowerCuts(Disk disk, int64_t saved) : disk_(std::move(disk)), saved_(saved), begun_(saved), draw_(seed()) {}

  // What is wrong after the first power cut that does harm; "" if none does.
  std::string first_harm(const std::vector<DiskCall>& calls) {
    for (const DiskCall& call : calls) {
      if (call.kind == Kind::kNote) take_note(call.name);
      disk_.apply(call);
      for (const Survives& survives : subsets(disk_, draw_)) {
        const std::string wrong = look(disk_.after_power_cut(survives));
        if (!wrong.empty()) return cat("after ", text_of(call), ": ", wrong);
      }
    }
    return "";
  }
  size_t images() const { return seen_.size(); }

 private:
  void take_note(const std::string& text) {
    if (text.starts_with(kBegun)) begun_ = std::stoll(text.substr(std::string_view(kBegun).size()));
    if (text.starts_with(kSaved)) saved_ = std::stoll(text.substr(std::string_view(kSaved).size()));
  }

  std::string look(const Disk::Image& image) {
    if (!seen_.insert(cat(saved_, ' ', begun_, ' ', digest(image))).second) return "";
    const TempDir dir;
    const std::string run = dir / "run";
    lay_out(image, run);
    if (saved_ == 0 && store_in(run).list().empty()) return "";  // nothing has been promised yet
    return wrong_in(run, std::max<int64_t>(saved_, 1), begun_, Size::kSmall);
  }

  Disk disk_;
  int64_t saved_, begun_;
  std::mt19937_64 draw_;
  std::set<std::string> seen_;
};

// Saves steps, and notes when each begins and when save() has returned.
std::string save_steps(Writer writer, const std::string& run, int64_t first, int64_t last) {
  for (int64_t step = first; step <= last; ++step) {
    note(cat(kBegun, step));
    const std::string said = try_save(run, step, Size::kSmall, writer);
    if (said != "saved") return said;
    note(cat(kSaved, step));
  }
  return "saved";
}

const auto kLetAllPass = [](size_t, const DiskCall&) { return kPass; };

class PowerCut : public ::testing::TestWithParam<Writer> {};
INSTANTIATE_TEST_SUITE_P(Writers, PowerCut, ::testing::Values(Writer::kRank, Writer::kKeeper),
                         [](const auto& each) { return name_of(each.param); });

TEST_P(PowerCut, OfARunThatGoesOnLosesNoSave) {
  if (!can_trace()) GTEST_SKIP() << "processes can't be traced here (ptrace)";
  const TempDir dir;
  const std::string run = dir / "run";
  copy_two_saves(run, Size::kSmall);
  PowerCuts cuts(Disk(run), 2);
  const Traced traced = run_traced(
      run,
      [&] {
        const std::string said = save_steps(GetParam(), run, 3, 4);
        store_in(run).mark_best(4);
        return said == "saved" ? save_steps(GetParam(), run, 5, 5) : said;
      },
      kLetAllPass);
  ASSERT_EQ(traced.said, "saved");
  EXPECT_EQ(cuts.first_harm(traced.calls), "");
  EXPECT_GE(cuts.images(), 75u) << "the model sees too little";
}

TEST_P(PowerCut, OfARunsFirstSavesLosesNoSave) {
  if (!can_trace()) GTEST_SKIP() << "processes can't be traced here (ptrace)";
  const TempDir dir;
  PowerCuts cuts(Disk(dir.path()), 0);
  const Traced traced = run_traced(
      dir.path(), [&] { return save_steps(GetParam(), dir.path(), 1, 2); }, kLetAllPass);
  ASSERT_EQ(traced.said, "saved");
  EXPECT_EQ(cuts.first_harm(traced.calls), "");
}

// Writers that forget a sync, which the model must notice.
std::string harm_of(const std::function<void(const std::string& path, const std::string& content)>& write) {
  const TempDir dir;
  const std::string run = dir / "run", path = folder_in(run) + "/step-000003.pt";
  copy_two_saves(run, Size::kSmall);
  PowerCuts cuts(Disk(run), 2);
  const std::string content = file_of(3, Size::kSmall);
  const Traced traced = run_traced(
      run,
      [&] {
        note(cat(kBegun, 3));
        write(path, content);
        note(cat(kSaved, 3));
        return std::string("saved");
      },
      kLetAllPass);
  EXPECT_EQ(traced.said, "saved");
  return cuts.first_harm(traced.calls);
}

TEST(PowerCutModel, SeesAWriterThatForgetsASync) {
  if (!can_trace()) GTEST_SKIP() << "processes can't be traced here (ptrace)";
  const auto write_plainly = [](const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  };
  EXPECT_NE(harm_of(write_plainly), "") << "a file that is written in its place";
  const auto rename_unsynced = [&](const std::string& path, const std::string& content) {
    write_plainly(path + ".tmp", content);
    fs::rename(path + ".tmp", path);
    sync_folder(fs::path(path).parent_path());
  };
  EXPECT_NE(harm_of(rename_unsynced), "") << "a name that is on the disk before its bytes";
  const auto whole = [](const std::string& path, const std::string& content) {
    checkpoint::write_atomically(path, [&](checkpoint::ByteSink& sink) { sink.write(content); });
  };
  EXPECT_EQ(harm_of(whole), "");
}

}  // namespace
}  // namespace lockstep::faults
