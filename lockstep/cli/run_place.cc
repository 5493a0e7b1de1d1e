#include "lockstep/cli/run_place.h"

#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/launch/launched_job.h"
#include "lockstep/launch/resumed.h"
#include "lockstep/world/once.h"

namespace lockstep::cli {
namespace {

constexpr const char* kRuns = "runs";

// The jobs that the ranks are a part of. A collective.
std::vector<launch::LaunchedJob> jobs_of(World& world) {
  auto jobs = launch::find_jobs();
  launch::add_others(jobs, comm::gather_texts(world.communicator(), launch::names_of(jobs)));
  return jobs;
}

// What rank 0 finds by the jobs of all, on all ranks: each has looked for it before it knew of the others'.
struct Found {
  std::string done;    // why there is nothing to do
  std::string config;  // of the run that goes on
  bool anew = false;   // no earlier start has begun the run
};

// A collective.
Found find(World& world, const train::TrainOptions& asked, const std::vector<launch::LaunchedJob>& jobs) {
  Found found;
  once(world, OnceScope::kWorld, [&] {
    const launch::Start start = launch::find_start(asked, kRuns, jobs);
    found.done = launch::find_done(start);
    found.anew = start.earlier.empty();
    if (asked.resume && found.done.empty()) found.config = launch::find_resumed_config(asked, start);
  });
  for (std::string* text : {&found.done, &found.config}) *text = comm::text_of_rank_0(world.communicator(), *text);
  found.anew = !comm::text_of_rank_0(world.communicator(), found.anew ? "anew" : "").empty();
  return found;
}

// Rank 0 may be on a node that has come, and whose disk is its own. A collective.
void check_seen_by_rank_0(World& world, const train::TrainOptions& asked, const std::vector<launch::LaunchedJob>& jobs,
                          bool anew) {
  together(world.communicator(), [&] {
    const std::string earlier = anew && world.rank() != 0 ? launch::find_start(asked, kRuns, jobs).earlier : "";
    if (earlier.empty()) return;
    throw ConfigError(earlier,
                      ": an earlier start of this job has begun the run there, and rank 0 can't see it; let "
                      "--out name a folder that all nodes share");
  });
}

}  // namespace

Folder take_folder(World& world, TrainLine& line, const Logger& log, const std::function<bool()>& stop_asked) {
  Folder folder{.of_front = train::RunLock::inherited(line.options().out), .of_launcher = {}, .done = {}};
  if (folder.of_front) return folder;
  const auto jobs = jobs_of(world);
  const Found found = find(world, line.options(), jobs);
  folder.done = found.done;
  if (!folder.done.empty()) return folder;
  check_seen_by_rank_0(world, line.options(), jobs, found.anew);
  line.agree(world, found.config);
  std::string out, resume;
  once(world, OnceScope::kWorld, [&] {
    launch::Start start = launch::find_start(line.options(), kRuns, jobs);
    start.say = [&log](const std::string& text) { log.warning(text); };
    start.stop_asked = stop_asked;
    folder.of_launcher = launch::RunDirectory::prepare(line.options(), start);
    out = folder.of_launcher->path();
    resume = folder.of_launcher->resume().value_or("");
  });
  if (folder.of_launcher) folder.of_launcher->warn(log);
  for (std::string* text : {&out, &resume}) *text = comm::text_of_rank_0(world.communicator(), *text);
  launch::go_on(line.options(), out, resume.empty() ? std::nullopt : std::optional(resume));
  return folder;
}

}  // namespace lockstep::cli
