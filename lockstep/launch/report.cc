#include "lockstep/launch/report.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/file_content.h"
#include "lockstep/base/shown.h"

namespace lockstep::launch {
namespace {

bool failed_by_itself(const RankOutcome& outcome) {
  return !outcome.status.ok() && !outcome.stopped && outcome.status.exit_code() != kExitStoppedOnRequest;
}

// The rank that an error's text begins with: 0 of "rank 0: no such file"; nothing for any other text.
std::optional<int> rank_named_in(const std::string& error) {
  constexpr std::string_view kPrefix = "rank ";
  if (!error.starts_with(kPrefix)) return std::nullopt;
  int rank = 0;
  const char* const end = error.data() + error.size();
  const auto [after, failed] = std::from_chars(error.data() + kPrefix.size(), end, rank);
  if (failed != std::errc() || after == end || *after != ':') return std::nullopt;
  return rank;
}

// The error without the rank's own name, which a report gives itself.
std::string own_error(const RankOutcome& outcome) {
  if (rank_named_in(outcome.error) != outcome.rank) return outcome.error;
  return outcome.error.substr(std::min(outcome.error.size(), cat("rank ", outcome.rank, ": ").size()));
}

std::string tenths(double seconds) { return cat(std::round(seconds * 10) / 10, " s"); }

// "step 1204, fold of bucket 2/5 (layer3.conv1.weight …)"; before the first step what it was doing, if it said so.
std::string when(const RankOutcome& root) {
  if (root.step == 0) return root.doing;
  return cat("step ", root.step, root.doing.empty() ? "" : ", ", root.doing);
}

// How long after the failure a rank ended.
double stop_seconds(const Report& report, const RankOutcome& outcome) {
  return std::max(0.0, outcome.ended - report.failed);
}

// The longest time of the ranks that the launcher has stopped as this one: at once, or when they had time to save.
double stop_seconds_together(const Report& report, const RankOutcome& outcome) {
  double longest = 0;
  for (const RankOutcome& other : report.outcomes) {
    if (other.stopped && other.spared == outcome.spared) longest = std::max(longest, stop_seconds(report, other));
  }
  return longest;
}

// The end of a rank that is not the root cause, in words.
std::string fate(const Report& report, const RankOutcome& outcome) {
  if (outcome.stopped) {
    return cat(outcome.halted ? "stood still (SIGSTOP), killed" : "healthy, stopped", " by the launcher in ",
               tenths(stop_seconds_together(report, outcome)));
  }
  if (outcome.status.exit_code() == CommError::kExitCode) return "noticed it and ended";
  if (outcome.status.exit_code() == kExitStoppedOnRequest) return "stopped on request";
  return outcome.status.ok() ? "had finished" : outcome.status.text();
}

// "ranks 0-1, 3 healthy, stopped by the launcher in 0.4 s; rank 2 had finished", the largest group first.
std::string others(const Report& report) {
  std::map<std::string, std::vector<int>> ranks_by_fate;
  for (const auto& outcome : report.outcomes) {
    if (outcome.rank == report.outcomes[report.root].rank) continue;
    ranks_by_fate[fate(report, outcome)].push_back(outcome.rank);
  }
  std::vector<std::pair<std::string, std::vector<int>>> groups(ranks_by_fate.begin(), ranks_by_fate.end());
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  std::string out;
  for (const auto& [text, ranks] : groups) {
    out += cat(out.empty() ? "" : "; ", named_ranks(ranks), ' ', text);
  }
  return out;
}

std::string next_attempt(const Report& report) {
  return cat(report.saved.empty() ? "starts anew" : "resumes", " by itself (", report.restart, ')');
}

nlohmann::json to_json_value(const RankOutcome& outcome) {
  return {{"rank", outcome.rank},
          {"pid", outcome.pid},
          {"exit_code", outcome.status.exit_code()},
          {"signal", outcome.status.signal},
          {"seconds", outcome.ended},
          {"stopped_by_launcher", outcome.stopped},
          {"step", outcome.step},
          {"doing", outcome.doing},
          {"error", outcome.error},
          {"overflow", outcome.overflow},
          {"role", outcome.role}};
}

}  // namespace

ExitStatus status_of(const BoardRank& said, const ExitStatus& status) {
  return status.lost && said.ended.load() != 0 ? ExitStatus{.code = said.exit_code.load()} : status;
}

bool note_end(BoardRank& said, const ExitStatus& status) {
  said.saving.store(0);
  const bool failed = !status.ok() && status.exit_code() != kExitStoppedOnRequest;
  if (said.state.load() != RankState::kFailed) {
    if (failed) said.fail(status.exit_code(), status.text());
    // The peers must not wait for a rank that has finished.
    if (!failed) said.state.store(RankState::kFinished);
  }
  said.command_ended.store(1);
  return failed;
}

RankOutcome outcome_on(const BoardRank& said, const ExitStatus& status) {
  const std::string error = said.error.get();
  return {.status = status,
          .step = said.step.load(),
          .doing = said.doing.get(),
          .error = error == status.text() ? "" : error,
          .role = said.role.get(),
          .overflow = said.overflow.get(),
          .remedy = said.remedy.get()};
}

bool tells_of_lost_peer(const std::deque<RankOutput::LastLine>& lines) {
  constexpr std::array<std::string_view, 9> kPhrases = {
      "Connection closed by peer", "Connection reset by peer",     "Broken pipe",
      "remote process exited",     "ConnectionResetError",         "ncclRemoteError",
      "Timed out waiting",         "collective operation timeout", "NCCL communicator was aborted"};
  const auto last = std::find_if(lines.rbegin(), lines.rend(), [](const auto& line) { return !line.text.empty(); });
  return last != lines.rend() && std::any_of(kPhrases.begin(), kPhrases.end(), [&](std::string_view phrase) {
           return last->text.find(phrase) != std::string::npos;
         });
}

std::optional<size_t> root_cause(std::span<const RankOutcome> outcomes) {
  std::optional<size_t> root;
  const auto rank_of_cause = [&](size_t i) {
    const bool missed_a_peer = outcomes[i].status.exit_code() == CommError::kExitCode || outcomes[i].lost_peer;
    return std::pair(missed_a_peer, outcomes[i].ended);
  };
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (failed_by_itself(outcomes[i]) && (!root || rank_of_cause(i) < rank_of_cause(*root))) root = i;
  }
  if (!root) return root;
  const std::string& error = outcomes[*root].error;
  const auto teller = rank_named_in(error);
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].rank == teller && outcomes[i].error == error && failed_by_itself(outcomes[i])) return i;
  }
  return root;
}

int exit_code(std::span<const RankOutcome> outcomes) {
  const auto root = root_cause(outcomes);
  if (root) return outcomes[*root].status.exit_code();
  const bool on_request = std::any_of(outcomes.begin(), outcomes.end(), [](const RankOutcome& outcome) {
    return outcome.status.exit_code() == kExitStoppedOnRequest;
  });
  return on_request ? kExitStoppedOnRequest : 0;
}

bool is_plain_mistake(const RankOutcome& outcome) {
  const int code = outcome.status.exit_code();
  const bool kind = code == ConfigError::kExitCode || code == DataError::kExitCode || code == IoError::kExitCode;
  return kind && !outcome.trained && !outcome.error.empty();
}

std::string headline(const Report& report) {
  const RankOutcome& root = report.outcomes[report.root];
  const std::string who = cat("rank ", root.rank, " (pid ", root.pid, root.role.empty() ? "" : "; ", root.role, ") ");
  if (root.status.signal != 0) return cat(who, root.status.text(), report.oom.empty() ? "" : ": ", report.oom);
  return root.error.empty() ? who + root.status.text() : cat(who, "failed: ", own_error(root));
}

std::string to_text(const Report& report) {
  const RankOutcome& root = report.outcomes[report.root];
  const std::string next = report.saved.empty() || report.resume_command.empty()
                               ? ""
                               : cat(report.resume_command, root.remedy.empty() ? "" : " ", root.remedy);
  if (is_plain_mistake(root)) {
    // Options are the same on all ranks; data are not.
    const std::string error = own_error(root);
    const bool names_rank =
        root.status.exit_code() == DataError::kExitCode && report.outcomes.size() > 1 && !error.starts_with("rank ");
    return cat("error: ", names_rank ? cat("rank ", root.rank, ": ") : "", error, '\n',
               root.remedy.empty() || next.empty() ? "" : cat("  next: ", next, '\n'));
  }
  std::string out = cat("error: ", headline(report), '\n');
  const auto add = [&out](const char* name, const std::string& text) {
    if (!text.empty()) out += cat("  ", name, ": ", text, '\n');
  };
  add("when", when(root));
  add("others", others(report));
  add("saved", report.saved);
  std::vector<std::string> lines;  // that the reader has not seen yet
  for (const auto& line : report.last_lines) {
    if (!line.seen) lines.push_back(line.text);
  }
  const bool has_lines = !lines.empty();
  if (!report.log_path.empty()) add("log", report.log_path + (has_lines ? " (last lines below)" : ""));
  if (!report.restarts) add("restarts", report.restart);
  add("next", report.restarts ? cat(next_attempt(report), next.empty() ? "" : " | ", next) : next);
  if (has_lines && report.log_path.empty()) out += "  its last lines:\n";
  for (const auto& line : lines) out += cat("    ", line, '\n');
  return out;
}

void read_recorded_error(const std::string& path, Report& report) {
  const auto record = nlohmann::json::parse(file_content(path).value_or(""), nullptr, /*allow_exceptions=*/false);
  const auto text_at = [&record](const char* place) {
    const auto found = nlohmann::json::json_pointer(place);
    return record.is_object() && record.contains(found) && record[found].is_string() ? record[found].get<std::string>()
                                                                                     : "";
  };
  const std::string error = text_at("/message/message");
  if (error.empty()) return;
  if (report.outcomes[report.root].error.empty()) report.outcomes[report.root].error = first_line(error);
  std::istringstream traceback(text_at("/message/extraInfo/py_callstack"));
  std::deque<RankOutput::LastLine> lines;
  for (std::string line; std::getline(traceback, line);) lines.push_back({.text = shown(line), .seen = false});
  if (!lines.empty()) report.last_lines = std::move(lines);
}

std::string to_json(const Report& report) {
  nlohmann::json value = to_json_value(report.outcomes[report.root]);
  value["headline"] = headline(report);
  double last = 0;
  for (const auto& outcome : report.outcomes) last = std::max(last, stop_seconds(report, outcome));
  value["stop_seconds"] = last;
  value["saved"] = report.saved;
  value["restart"] = report.restart;
  value["log"] = report.log_path;
  value["last_lines"] = nlohmann::json::array();
  for (const auto& line : report.last_lines) value["last_lines"].push_back(line.text);
  value["ranks"] = nlohmann::json::array();
  for (const auto& outcome : report.outcomes) value["ranks"].push_back(to_json_value(outcome));
  return value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace lockstep::launch
