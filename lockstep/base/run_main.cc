#include "lockstep/base/run_main.h"

#include <unistd.h>

#include <atomic>
#include <exception>
#include <optional>
#include <string>

#include "lockstep/base/board.h"
#include "lockstep/base/env.h"
#include "lockstep/base/exception_text.h"
#include "lockstep/base/log.h"
#include "lockstep/base/node_memory.h"
#include "lockstep/base/shown.h"

namespace lockstep {
namespace {

std::atomic<BoardRank*> g_world_entry = nullptr;

// This rank's entry on our launcher's board, where the launcher reads why the rank ended. There is none under another
// launcher.
class OwnEntry {
 public:
  OwnEntry() {
    const auto memory = env("LOCKSTEP_NODE_MEMORY");
    const auto rank = env_int("LOCAL_RANK", 0, kMaxLocalRanks - 1);
    if (!memory || !rank) return;
    board_ = Mapping(NodeMemory::board_in(*memory), sizeof(Board));
    self_ = &Board::attach(board_.data())->ranks[static_cast<size_t>(*rank)];
    self_->pid.store(getpid());
  }

  BoardRank* self() const { return self_; }

 private:
  Mapping board_;
  BoardRank* self_ = nullptr;
};

// "a; b" of two lines.
std::string joined_lines(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos;) text.replace(at, 1, "; ");
  return text;
}

int fail(const std::optional<OwnEntry>& entry, int code, const std::string& text) {
  const std::string line = shown(text);
  if (entry && entry->self() != nullptr) {
    entry->self()->fail(code, line);
  } else {
    if (BoardRank* const shared = g_world_entry.load()) shared->fail(code, line);
    write_all(STDERR_FILENO, "error: " + line + '\n');
  }
  return code;
}

}  // namespace

void tell_that_steps_are_counted() {
  const OwnEntry entry;
  if (entry.self() != nullptr) entry.self()->counts_steps.store(1);
}

void publish_errors_on(BoardRank* entry) { g_world_entry.store(entry); }

int run_main(const std::function<int()>& body) {
  std::optional<OwnEntry> entry;
  try {
    entry.emplace();
    const int code = body();
    // Also for a launcher that can't learn how this process ended: somebody else may have waited for it.
    if (entry->self() != nullptr && (code == 0 || code == kExitStoppedOnRequest)) entry->self()->finish(code);
    return code;
  } catch (const Error& error) {
    return fail(entry, error.exit_code(), error.what());
  } catch (const std::exception&) {
    return fail(entry, BugError::kExitCode, joined_lines(exception_text()));
  }
}

void end_process(const Error& error) noexcept {
  std::optional<OwnEntry> entry;
  try {
    entry.emplace();
  } catch (const std::exception&) {  // the error goes to standard error then
  }
  _exit(fail(entry, error.exit_code(), error.what()));
}

}  // namespace lockstep
