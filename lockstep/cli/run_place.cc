#include "lockstep/cli/run_place.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/path_kind.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/launch/launched_job.h"
#include "lockstep/launch/resumed.h"
#include "lockstep/launch/unique_id.h"
#include "lockstep/train/folder/run_folder.h"
#include "lockstep/train/folder/text_file.h"
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

// The ranks that look for earlier starts and may save: rank 0, or the first rank of each node with --save-on node,
// which a run that goes on may have been told. A collective.
std::vector<int> leaders_of(World& world, const train::TrainOptions& asked) {
  const bool node = asked.save_on == train::SaveOn::kNode;
  const auto told =
      comm::gather_texts(world.communicator(), cat(node ? "node " : "rank0 ", world.local_rank() == 0 ? "first" : ""));
  const bool any = std::any_of(told.begin(), told.end(), [](const auto& each) { return each.starts_with("node"); });
  std::vector<int> leaders = {0};
  for (int rank = 1; any && rank < world.size(); ++rank) {
    if (told[static_cast<size_t>(rank)].ends_with("first")) leaders.push_back(rank);
  }
  return leaders;
}

// What the leader that decides finds by the jobs of all ranks: each has looked for it before it knew of the others'.
struct Found {
  int decider = 0;
  std::string done;    // why there is nothing to do; on all ranks
  std::string config;  // of the run that goes on; on the decider
  bool anew = false;   // no earlier start has begun the run; on all ranks
};

// What a leader has found: an earlier start that has saved a checkpoint, what the line resumes, an earlier start.
constexpr const char *kNothing = "", *kSaved = "saved", *kResumes = "resumes", *kEarlier = "earlier",
                     *kBegins = "begins";

// The first of those that have found most: a start that has saved nothing must not begin anew what others have.
int choose_decider(const std::vector<std::string>& findings) {
  for (const char* wanted : {kSaved, kResumes, kEarlier}) {
    const auto found = std::find(findings.begin(), findings.end(), wanted);
    if (found != findings.end()) return static_cast<int>(found - findings.begin());
  }
  return 0;
}

// A collective.
Found find(World& world, const std::vector<int>& leaders, const train::TrainOptions& asked,
           const std::vector<launch::LaunchedJob>& jobs) {
  Found found;
  std::string finding = kNothing;
  std::exception_ptr failed;
  once(world, leaders, [&] {
    try {
      const launch::Start start = launch::find_start(asked, kRuns, jobs);
      found.done = launch::find_done(start);
      if (asked.resume && found.done.empty()) found.config = launch::find_resumed_config(asked, start);
      const bool saved = !start.earlier.empty() && train::holds_checkpoint(start.earlier);
      finding = saved ? kSaved : asked.resume ? kResumes : !start.earlier.empty() ? kEarlier : kBegins;
      found.anew = start.earlier.empty();
    } catch (const Error&) {
      if (leaders.size() == 1) throw;
      failed = std::current_exception();  // what this node lacks another may have
    }
  });
  const auto findings = comm::gather_texts(world.communicator(), finding);
  found.decider = choose_decider(findings);
  together(world.communicator(), [&] {
    if (failed && found.decider == world.rank()) std::rethrow_exception(failed);
  });
  found.done = comm::text_of_rank(world.communicator(), found.decider, found.done);
  found.anew = comm::holds_on(world.communicator(), found.decider, found.anew);
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
                      "--out name a folder that all nodes share, or save by --save-on node");
  });
}

// A mark that who sees the decider's disk sees. Removed with this object.
class Mark {
 public:
  explicit Mark(std::string path) : path_(std::move(path)) { train::write_text(path_, ""); }
  ~Mark() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

 private:
  std::string path_;
};

// Prepares the run's folder on the disks of the other leaders, which is the decider's `out`. Returns the ranks that
// have a folder of their own. A collective.
std::vector<int> take_others(World& world, const std::vector<int>& leaders, int decider, launch::OtherFolder other,
                             const launch::Start& start, Folder& folder) {
  std::optional<Mark> mark;
  once(world, std::vector{decider}, [&] {
    other.id = folder.of_launcher->id();
    other.mark = cat("start-", launch::unique_id());
    mark.emplace(cat(other.path, '/', other.mark));
  });
  for (std::string* text : {&other.id, &other.mark}) {
    *text = comm::text_of_rank(world.communicator(), decider, *text);
  }
  std::vector<int> others = leaders;
  std::erase(others, decider);
  once(world, others, [&] { folder.of_launcher = launch::RunDirectory::prepare_other(other, start); });
  const auto have = comm::gather_texts(world.communicator(), folder.of_launcher ? "saves" : "");
  std::vector<int> savers;
  for (int rank = 0; rank < world.size(); ++rank) {
    if (!have[static_cast<size_t>(rank)].empty()) savers.push_back(rank);
  }
  return savers;
}

}  // namespace

Folder take_folder(World& world, TrainLine& line, const Logger& log, const std::function<bool()>& stop_asked) {
  Folder folder{.of_front = train::RunLock::inherited(line.options().out), .of_launcher = {}, .disks = {}, .done = {}};
  if (folder.of_front) return folder;
  const auto jobs = jobs_of(world);
  const std::vector<int> leaders = leaders_of(world, line.options());
  const Found found = find(world, leaders, line.options(), jobs);
  folder.done = found.done;
  if (!folder.done.empty()) return folder;
  if (leaders.size() == 1) check_seen_by_rank_0(world, line.options(), jobs, found.anew);
  line.agree(world, found.decider, found.config);
  launch::Start start;
  std::string out, resume;
  bool in_place = false;
  once(world, std::vector{found.decider}, [&] {
    start = launch::find_start(line.options(), kRuns, jobs);
    start.say = [&log](const std::string& text) { log.warning(text); };
    start.stop_asked = stop_asked;
    folder.of_launcher = launch::RunDirectory::prepare(line.options(), start);
    out = folder.of_launcher->path();
    resume = folder.of_launcher->resume().value_or("");
    if (resume.empty()) return;
    const std::string from = is_folder(resume) ? resume : train::run_of(resume);
    in_place = !from.empty() && train::same_place(from, out);
  });
  for (std::string* text : {&out, &resume}) *text = comm::text_of_rank(world.communicator(), found.decider, *text);
  in_place = comm::holds_on(world.communicator(), found.decider, in_place);
  folder.disks.sources = {found.decider};
  if (leaders.size() > 1) {
    start.jobs = jobs;
    start.say = [&log](const std::string& text) { log.warning(text); };
    start.stop_asked = stop_asked;
    try {
      const launch::OtherFolder other{.path = out, .id = {}, .mark = {}, .goes_on = in_place};
      folder.disks.savers = take_others(world, leaders, found.decider, other, start, folder);
    } catch (const Error&) {
      if (folder.of_launcher) folder.of_launcher->discard_if_unused();
      throw;
    }
    if (in_place) folder.disks.sources = folder.disks.savers;
  }
  if (folder.of_launcher) folder.of_launcher->warn(log);
  launch::go_on(line.options(), out, resume.empty() ? std::nullopt : std::optional(resume));
  return folder;
}

}  // namespace lockstep::cli
