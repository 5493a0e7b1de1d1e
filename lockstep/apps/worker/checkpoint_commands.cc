// verify and diff.
#include "lockstep/apps/commands/checkpoint_commands.h"

#include <filesystem>

#include "commands.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/shown.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/config/inputs.h"
#include "lockstep/train/continuation.h"
#include "lockstep/train/inspection/run_check.h"
#include "lockstep/train/inspection/run_comparison.h"

namespace lockstep::worker {
namespace {

using train::FileCheck;

// Names of files and tensors are not always UTF-8.
constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;

checkpoint::Value read(const std::string& file) { return checkpoint::read_checkpoint(file); }

std::string newest_in(const std::string& path) {
  const auto [file, warnings] = train::find_any_checkpoint("diff", path);
  for (const auto& warning : warnings) Logger::from_environment("").warning(warning);
  return file;
}

bool is_link(const FileCheck& check) { return std::filesystem::is_symlink(check.file); }

// Throws what a script needs to know beside the lines.
void tell_damage(const std::vector<FileCheck>& checks) {
  const size_t damaged = train::count(checks, FileCheck::State::kDamaged);
  const size_t unreadable = train::count(checks, FileCheck::State::kUnreadable);
  const auto of_all = [&](size_t number) {
    return cat(number, " of ", checks.size(), checks.size() == 1 ? " file" : " files");
  };
  const auto first = [&](FileCheck::State state) {
    const FileCheck* found = nullptr;  // a file before a link, which may lead to it
    for (const FileCheck& check : checks) {
      if (check.state != state || (found != nullptr && !is_link(*found))) continue;
      if (found == nullptr || !is_link(check)) found = &check;
    }
    return cat("; the first: ", shown(found->file), ": ", found->about);
  };
  if (damaged > 0)
    throw DataError(of_all(damaged), damaged == 1 ? " is" : " are", " damaged", first(FileCheck::State::kDamaged));
  if (unreadable > 0) throw IoError(of_all(unreadable), " can't be read", first(FileCheck::State::kUnreadable));
}

template <typename Comparison>
int report(const Comparison& found, bool equal, const apps::DiffOptions& options) {
  print(options.json ? train::json_of(found, options.listed()).dump(1, ' ', false, kReplace) + '\n'
                     : train::text_of(found, options.listed()));
  return equal ? 0 : apps::kExitDiffers;
}

}  // namespace

int verify(const Arguments& args) {
  apps::Command<apps::VerifyOptions> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  const apps::VerifyOptions& options = command.options();
  for (const std::string& path : options.paths) config::require_there("verify", path);
  std::vector<FileCheck> checks;
  for (const std::string& path : options.paths) {
    for (FileCheck& check : train::check_files(path)) {
      if (!options.json) print(train::text_of(check) + '\n');
      checks.push_back(std::move(check));
    }
  }
  if (options.json) print(train::json_of(checks).dump(1, ' ', false, kReplace) + '\n');
  tell_damage(checks);
  return 0;
}

int diff(const Arguments& args) {
  apps::Command<apps::DiffOptions> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  const apps::DiffOptions& options = command.options();
  for (const std::string& path : {options.a, options.b}) config::require_there("diff", path);
  if (train::is_run(options.a) && train::is_run(options.b)) {
    const auto found = train::compare_runs(options.a, options.b, read);
    return report(found, found.equal(), options);
  }
  const auto found = train::compare_checkpoints(newest_in(options.a), newest_in(options.b), read);
  return report(found, found.found.differences.empty(), options);
}

}  // namespace lockstep::worker
