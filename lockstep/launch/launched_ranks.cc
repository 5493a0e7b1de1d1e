#include "lockstep/launch/launched_ranks.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/base/lease.h"
#include "lockstep/base/log.h"
#include "lockstep/base/split_list.h"
#include "lockstep/config/values.h"
#include "lockstep/launch/environment.h"

namespace lockstep::launch {
namespace {

using Stream = Terminal::Stream;

int bits_of(const std::map<int, int>& streams, int local_rank) {
  for (const int key : {local_rank, LogLayout::kOthers}) {
    if (const auto found = streams.find(key); found != streams.end()) return found->second;
  }
  return kNoStream;
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw IoError("--log-dir: can't make the folder ", path, ": ", errno_text(error.value()));
}

std::vector<std::string> visible_devices() { return split_list(env("CUDA_VISIBLE_DEVICES").value_or("")); }

}  // namespace

std::string with_local_rank(std::string word, int local_rank) {
  constexpr std::string_view kMacro = "${local_rank}";
  for (size_t at = word.find(kMacro); at != std::string::npos; at = word.find(kMacro, at)) {
    word.replace(at, kMacro.size(), std::to_string(local_rank));
  }
  return word;
}

LaunchedRanks::LaunchedRanks(const RankLayout& layout, int nproc, int attempt, int first_port)
    : layout_(layout),
      nproc_(nproc),
      attempt_(layout.restarts + std::max(attempt, 0)),
      port_(layout.master_port > 0 ? layout.master_port : first_port),
      world_size_(layout.size_with(nproc)),
      endpoints_(layout.endpoints) {
  if (endpoints_.empty()) {
    for (const int port : free_ports(nproc)) endpoints_.push_back(cat(layout.master_addr, ':', port));
  }
  make_folders();
}

void LaunchedRanks::make_folders() {
  const LogLayout& logs = layout_.logs;
  if (logs.folder.empty()) return;
  make_folder(logs.folder);
  if (logs.kind != LogLayout::Kind::kTorchrun) return;
  folder_ = cat(logs.folder, "/attempt_", attempt_);
  for (int rank = 0; rank < nproc_; ++rank) make_folder(cat(folder_, '/', rank));
  const auto open = [&](const std::vector<std::string>& texts, const char* name) -> std::shared_ptr<const LineFilter> {
    if (texts.empty()) return nullptr;
    return std::make_shared<LineFilter>(LineFilter{texts, LogWriter::open(folder_ + name)});
  };
  filters_[0] = open(logs.stdout_filters, "/filtered_stdout.log");
  filters_[1] = open(logs.stderr_filters, "/filtered_stderr.log");
}

void LaunchedRanks::complete(int local_rank, SpawnRequest& request, RankOutput::Options& output) const {
  set_variables(local_rank, request.environment);
  for (auto& word : request.command) word = with_local_rank(word, local_rank);
  if (!layout_.local_rank_option.empty()) {
    const auto place = static_cast<ptrdiff_t>(std::min(layout_.option_place, request.command.size()));
    request.command.insert(request.command.begin() + place, cat(layout_.local_rank_option, '=', local_rank));
  }
  if (!layout_.cpus.empty()) {
    request.cpus = layout_.cpus[static_cast<size_t>(local_rank)];
    set_variable(request.environment, kNodeCores, usable_cores());
  }
  set_output(local_rank, output);
  if (bits_of(layout_.logs.teed, local_rank) == kNoStream) return;
  unset_variable(request.environment, Logger::kNamed);  // torchrun's prefix has the local rank alone
}

std::string LaunchedRanks::error_file(int local_rank) const {
  return folder_.empty() ? "" : cat(folder_, '/', local_rank, "/error.json");
}

void LaunchedRanks::set_variables(int local_rank, std::vector<std::string>& variables) const {
  set_torchruns(local_rank, variables);
  set_paddles(local_rank, variables);
  set_gpus(local_rank, variables);
}

void LaunchedRanks::set_torchruns(int local_rank, std::vector<std::string>& variables) const {
  const int rank = layout_.first_rank + local_rank;
  set_variable(variables, "RANK", rank);
  set_variable(variables, "LOCAL_RANK", local_rank);
  set_variable(variables, "WORLD_SIZE", world_size_);
  set_variable(variables, "LOCAL_WORLD_SIZE", nproc_);
  set_variable(variables, "GROUP_RANK", layout_.node);
  set_variable(variables, "GROUP_WORLD_SIZE", layout_.nodes);
  set_variable(variables, "ROLE_NAME", layout_.role);
  set_variable(variables, "ROLE_RANK", rank);
  set_variable(variables, "ROLE_WORLD_SIZE", world_size_);
  set_variable(variables, "MASTER_ADDR", layout_.master_addr);
  set_variable(variables, "MASTER_PORT", port_);
  set_variable(variables, "TORCHELASTIC_RUN_ID", layout_.run_id);
  set_variable(variables, "TORCHELASTIC_RESTART_COUNT", attempt_);
  unset_variable(variables, kJobVariable);
  if (!layout_.job.empty()) set_variable(variables, kJobVariable, layout_.job);
  if (layout_.max_restarts >= 0) set_variable(variables, "TORCHELASTIC_MAX_RESTARTS", layout_.max_restarts);
  set_variable(variables, "TORCHELASTIC_SIGNALS_TO_HANDLE", layout_.signals);
  unset_variable(variables, "TORCHELASTIC_ERROR_FILE");  // another launcher's, around this one
  if (!folder_.empty()) set_variable(variables, "TORCHELASTIC_ERROR_FILE", error_file(local_rank));
  if (!has_variable(variables, "TORCH_NCCL_ASYNC_ERROR_HANDLING")) {
    set_variable(variables, "TORCH_NCCL_ASYNC_ERROR_HANDLING", 1);
  }
}

void LaunchedRanks::set_paddles(int local_rank, std::vector<std::string>& variables) const {
  const int rank = layout_.first_rank + local_rank;
  set_variable(variables, "PADDLE_MASTER", cat(layout_.master_addr, ':', port_));
  set_variable(variables, "PADDLE_GLOBAL_SIZE", world_size_);
  set_variable(variables, "PADDLE_LOCAL_SIZE", nproc_);
  set_variable(variables, "PADDLE_GLOBAL_RANK", rank);
  set_variable(variables, "PADDLE_LOCAL_RANK", local_rank);
  set_variable(variables, "PADDLE_RANK_IN_NODE", local_rank);
  set_variable(variables, "PADDLE_NNODES", layout_.nodes);
  set_variable(variables, "PADDLE_TRAINER_ID", rank);
  set_variable(variables, "PADDLE_TRAINERS_NUM", world_size_);
  set_variable(variables, "PADDLE_TRAINER_ENDPOINTS", config::joined(endpoints_, ","));
  set_variable(variables, "PADDLE_CURRENT_ENDPOINT", endpoints_.at(static_cast<size_t>(rank)));
  set_variable(variables, "PADDLE_AUTO_CLUSTER", 0);
  unset_variable(variables, "PADDLE_LOG_DIR");
  if (layout_.logs.kind == LogLayout::Kind::kWorker && !layout_.logs.folder.empty()) {
    set_variable(variables, "PADDLE_LOG_DIR", std::filesystem::absolute(layout_.logs.folder).string());
  }
}

void LaunchedRanks::set_gpus(int local_rank, std::vector<std::string>& variables) const {
  for (const char* name : {"FLAGS_selected_gpus", "PADDLE_DISTRI_BACKEND"}) unset_variable(variables, name);
  if (layout_.on_cpu) return set_variable(variables, "PADDLE_DISTRI_BACKEND", "gloo");
  const std::vector<std::string> chosen = layout_.devices.empty() ? visible_devices() : layout_.devices;
  if (!layout_.devices.empty()) set_variable(variables, "CUDA_VISIBLE_DEVICES", config::joined(layout_.devices, ","));
  if (layout_.virtual_local_rank) {
    const auto at = static_cast<size_t>(local_rank);
    set_variable(variables, "CUDA_VISIBLE_DEVICES", at < chosen.size() ? chosen[at] : std::to_string(local_rank));
    set_variable(variables, "LOCAL_RANK", 0);
    set_variable(variables, "LOCKSTEP_LOCAL_RANK", local_rank);  // our workers share the memory of a node
    return set_variable(variables, "FLAGS_selected_gpus", 0);
  }
  std::string selected = std::to_string(local_rank);  // by its number among the visible ones
  if (nproc_ == 1) {
    for (size_t more = 1; more < layout_.devices.size(); ++more) selected += cat(',', more);
  }
  set_variable(variables, "FLAGS_selected_gpus", selected);
}

void LaunchedRanks::set_output(int local_rank, RankOutput::Options& output) const {
  const LogLayout& logs = layout_.logs;
  const int rank = layout_.first_rank + local_rank;
  output.prefix = world_size_ > 1 ? cat("[rank ", rank, "] ") : "";
  output.raw_out = rank == 0;
  const bool hidden =
      !logs.shown.empty() && std::find(logs.shown.begin(), logs.shown.end(), local_rank) == logs.shown.end();
  if (!logs.folder.empty() && logs.kind == LogLayout::Kind::kRank)
    output.log_path = cat(logs.folder, "/rank", rank, ".log");
  if (!logs.folder.empty() && logs.kind == LogLayout::Kind::kWorker) {
    output.log_path = cat(logs.folder, "/workerlog.", local_rank);
  }
  const int teed = bits_of(logs.teed, local_rank), redirected = bits_of(logs.redirected, local_rank);
  const char* const names[] = {"stdout.log", "stderr.log"};
  for (const int stream : {0, 1}) {
    const int bit = 1 << stream;
    auto& to = output.streams[static_cast<size_t>(stream)];
    to.hidden = hidden || ((redirected & bit) != 0 && (teed & bit) == 0);
    if (!folder_.empty() && ((redirected | teed) & bit) != 0)
      to.path = cat(folder_, '/', local_rank, '/', names[stream]);
    if ((teed & bit) != 0 && !hidden) to.filter = filters_[stream];  // torchrun's filters see what it tees
  }
  if (teed == kNoStream) return;
  output.prefix = cat('[', layout_.role, local_rank, "]:");
  output.raw_out = false;
}

}  // namespace lockstep::launch
