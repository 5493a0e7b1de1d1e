#include "lockstep/launch/environment.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/checkpoint/slots/slots.h"
#include "lockstep/train/folder/run_lock.h"

namespace lockstep::launch {
namespace {

template <typename Variables>
auto find(Variables& variables, const std::string& name) {
  return std::find_if(variables.begin(), variables.end(),
                      [start = name + "="](const std::string& each) { return each.rfind(start, 0) == 0; });
}

// How often a thread of libgomp looks whether there is work before it sleeps. libgomp's own number is ten times as
// large, and a thread that another process keeps from its core then holds up those that wait (decision 17).
constexpr int kSpins = 30000;

template <typename Value>
void set(std::vector<std::string>& variables, const std::string& name, const Value& value) {
  set_variable(variables, name, cat(value));
}

}  // namespace

void set_variable(std::vector<std::string>& variables, const std::string& name, const std::string& value) {
  unset_variable(variables, name);
  variables.push_back(cat(name, '=', value));
}

void unset_variable(std::vector<std::string>& variables, const std::string& name) {
  if (const auto found = find(variables, name); found != variables.end()) variables.erase(found);
}

bool has_variable(const std::vector<std::string>& variables, const std::string& name) {
  return find(variables, name) != variables.end();
}

std::vector<std::string> rank_environment(std::vector<std::string> base, const RankEnvironment& rank) {
  set(base, "RANK", rank.rank);
  set(base, "LOCAL_RANK", rank.rank);
  set(base, "GROUP_RANK", 0);
  set(base, "WORLD_SIZE", rank.world_size);
  set(base, "LOCAL_WORLD_SIZE", rank.world_size);
  set(base, "MASTER_ADDR", "127.0.0.1");
  set(base, "MASTER_PORT", rank.master_port);
  set(base, "TORCHELASTIC_USE_AGENT_STORE", "False");  // rank 0 serves the store
  unset_variable(base, "LOCKSTEP_LOCAL_RANK");
  unset_variable(base, Logger::kNamed);  // by a launcher around this one
  unset_variable(base, kNodeCores);
  if (rank.attempt >= 0) {
    set(base, "TORCHELASTIC_RESTART_COUNT", rank.attempt);
    set(base, "TORCHELASTIC_MAX_RESTARTS", rank.max_restarts);
  }
  // Says that nobody has asked for a number of threads, so that a program may choose it by its lanes.
  const bool asked = !rank.keep_threads || find(base, "OMP_NUM_THREADS") != base.end();
  if (!asked) set(base, "LOCKSTEP_THREADS", "auto");
  if (const auto old = find(base, "LOCKSTEP_THREADS"); !rank.keep_threads && old != base.end()) base.erase(old);
  // MKL follows OMP_NUM_THREADS where that alone is set: another number would make bits depend on the ranks of a node.
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS"}) {
    const bool stays = rank.keep_threads && (asked || find(base, name) != base.end());
    if (!stays) set(base, name, rank.threads);
  }
  const bool waits_as_told = find(base, "GOMP_SPINCOUNT") != base.end() || find(base, "OMP_WAIT_POLICY") != base.end();
  if (rank.threads > 1 && !waits_as_told) set(base, "GOMP_SPINCOUNT", kSpins);
  set(base, "LOCKSTEP_NODE_MEMORY", rank.node_memory);
  const std::pair<const char*, int> descriptors[] = {{train::kRunLockVariable, rank.run_lock},
                                                     {checkpoint::Slots::kVariable, rank.snapshots}};
  for (const auto& [name, descriptor] : descriptors) {
    if (const auto old = find(base, name); old != base.end()) base.erase(old);
    if (descriptor >= 0) set(base, name, descriptor);
  }
  set(base, "LOCKSTEP_PROGRESS", rank.columns > 0 ? "tty" : "plain");
  if (rank.columns > 0) set(base, "COLUMNS", rank.columns);
  if (rank.plain) {
    set(base, "TERM", "dumb");
    if (find(base, "NO_COLOR") == base.end()) set(base, "NO_COLOR", 1);
  }
  if (rank.by_line) {
    set(base, "LOCKSTEP_OUTPUT", "lines");
    if (find(base, "PYTHONUNBUFFERED") == base.end()) set(base, "PYTHONUNBUFFERED", 1);
  }
  return base;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> out;
  for (char** each = environ; *each != nullptr; ++each) out.emplace_back(*each);
  return out;
}

}  // namespace lockstep::launch
