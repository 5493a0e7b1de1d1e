#include "lockstep/comm/shm/shm_node.h"

#include <sched.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstring>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"

namespace lockstep::comm {
namespace {

// The time for which a wait spins before it sleeps. With a core for every rank a peer is at most a scheduling hiccup
// away. With more ranks than cores a spinning rank may occupy the core of the rank that it waits for, so a spin soon
// yields.
constexpr int64_t kSpinNs = 100'000;
constexpr int64_t kSpinOversubscribedNs = 50'000;
constexpr int64_t kPauseNs = 2'000;         // after this time a spin yields its core to other threads
constexpr int64_t kSleepNs = 20'000'000;    // the longest sleep between two checks of the peers
constexpr int64_t kPollNs = 500'000;        // the longest sleep while some work needs polling
constexpr int64_t kLongNs = 500'000'000;    // a wait that lasts longer may be one of a circle
constexpr std::chrono::seconds kReason{1};  // the longest wait for the reason of a rank that gives up

// Ends this rank's report however its wait ends.
struct EndOfReport {
  WaitReports& reports;
  ~EndOfReport() { reports.end(); }
};

void pause_core() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

ShmMemory::ShmMemory(const NodeMemory& memory) {
  mappings.emplace_back(memory.comm.get());
  segment = mappings[0].at<ShmSegment>(0);
  for (const auto& pool : memory.pools) {
    mappings.emplace_back(pool.get(), 0, Mapping::OnFork::kLeaveOut);
    pools.push_back(mappings.back().data());
  }
}

ShmNode::ShmNode(Options options, ShmMemory memory, Pool& pool, Board* board)
    : options_(std::move(options)),
      pool_(pool),
      memory_(std::move(memory)),
      peers_(board, options_.self, options_.size, options_.world_ranks),
      reports_(*memory_.segment, options_.self, peers_.world_ranks()),
      spin_ns_(usable_cores() >= options_.size ? kSpinNs : kSpinOversubscribedNs),
      paused_ns_(board->paused_ns.load()) {
  if (size() > kMaxLocalRanks || memory_.pools.size() != static_cast<size_t>(size())) {
    throw ConfigError(size(), " ranks on this node: at most ", kMaxLocalRanks, ", and as many as the launcher made");
  }
  if (!options_.warn) {
    options_.warn = [logger = Logger::from_environment(cat("rank ", peers_.world_rank_of(self())))](
                        const std::string& text) { logger.warning(text); };
  }
}

ShmNode::~ShmNode() {
  sweep();
  for (auto& [segment, members] : retired_) segment.memory.release_context();
}

std::optional<uint64_t> ShmNode::offset_of(const void* data, size_t bytes) const {
  return bytes == 0 ? 0 : pool_.offset_of(data, bytes);
}

PoolBlock ShmNode::allocate(size_t bytes) {
  PoolBlock block{pool_.allocate(bytes), 0};
  if (block) block.offset = *pool_.offset_of(block.memory.get(), bytes);
  return block;
}

PoolBlock ShmNode::make_segment() {
  sweep();
  PoolBlock block = allocate(sizeof(ShmSegment));
  std::memset(block.memory.get(), 0, sizeof(ShmSegment));
  return block;
}

void ShmNode::retire(PoolBlock segment, uint32_t members) {
  retired_.emplace_back(std::move(segment), members);
  sweep();
}

void ShmNode::sweep() {
  std::erase_if(retired_,
                [](const auto& old) { return old.first.template as<ShmSegment>()->left.load() == old.second; });
}

// Not reentrant: work may ask for progress on all work itself (a transport's work that polls its own world).
void ShmNode::advance() {
  if (advancing_) return;
  advancing_ = true;
  try {
    for (Progressable* each : progressables_) each->advance();
  } catch (...) {
    advancing_ = false;
    throw;
  }
  advancing_ = false;
}

bool ShmNode::spin(const Waiting& waiting, std::chrono::nanoseconds time) {
  const Deadline end{std::min(time, std::chrono::nanoseconds(spin_ns_))}, pause{std::chrono::nanoseconds(kPauseNs)};
  for (int i = 0;; ++i) {
    advance();
    if (waiting.ready()) return true;
    if (i % 16 == 15 && end.passed()) return false;
    if (i % 16 == 15 && pause.passed()) {
      sched_yield();
    } else {
      pause_core();
    }
  }
}

// Other ranks may have seen the circle first, and check_peers() has their text. A rank that has done so here ends the
// waits of the others, which may not see the circle any more when this rank has left it.
void ShmNode::look_for_circle(const Waiting& waiting) {
  const std::string circle = reports_.look(waiting.blocked());
  if (circle.empty()) return;
  segment().abort(self(), circle, /*is_desync=*/true);
  check_peers(waiting);
}

// When the ranks that hold up the wait made their last progress. Of absent ones the slowest counts. Of those that have
// begun the call each may wait for the others, so the latest counts.
int64_t ShmNode::progress_of(const Waiting& waiting) const {
  const auto absent = waiting.absent ? waiting.absent() : std::vector<int>{};
  int64_t slowest = monotonic_ns(), latest = 0;
  for (const int rank : absent) slowest = std::min(slowest, peers_.beat_of(rank));
  if (!absent.empty()) return slowest;
  for (const int rank : waiting.awaited()) latest = std::max(latest, peers_.beat_of(rank));
  return latest;
}

bool ShmNode::goes_on(const Waiting& waiting, int64_t began_ns) {
  note_pauses();
  const int64_t most = (waiting.timeout + waiting.grace).count();
  if (running_ns() - began_ns <= most) return true;
  return monotonic_ns() - std::max(progress_of(waiting), resumed_ns_) <= most;
}

// After a pause of all ranks the beats from before it are old.
void ShmNode::note_pauses() {
  const int64_t paused_ns = peers_.board().paused_ns.load(std::memory_order_relaxed);
  if (std::exchange(paused_ns_, paused_ns) != paused_ns) resumed_ns_ = monotonic_ns();
}

bool ShmNode::wait_until(const Waiting& waiting, std::chrono::nanoseconds time) {
  if (spin(waiting, time)) return true;
  const Deadline patience(waiting.timeout / 10), brief{std::chrono::nanoseconds(kLongNs)};
  const int64_t began_ns = monotonic_ns(), end_ns = running_ns() + time.count();
  int64_t looked_ns = 0;
  bool warned = false, ready = false;
  peers_.self().doing.set("waiting at " + waiting.what);
  const EndOfReport end{reports_};
  for (;;) {
    const uint32_t seen = segment().event.load();
    advance();
    ready = waiting.ready();
    const int64_t left = end_ns - running_ns();
    if (ready || left <= 0) break;
    check_peers(waiting);
    if (!warned && patience.passed()) warn(waiting, seconds_since(began_ns)), warned = true;
    if (waiting.blocked && brief.passed() && monotonic_ns() - looked_ns >= kSleepNs) {
      looked_ns = monotonic_ns();
      look_for_circle(waiting);
    }
    const bool polling = std::any_of(progressables_.begin(), progressables_.end(),
                                     [](const Progressable* each) { return each->needs_polling(); });
    segment().sleep(seen, std::min(polling ? kPollNs : kSleepNs, left));
  }
  peers_.self().doing.set("");
  return ready;
}

bool ShmNode::check_is_due() {
  const int64_t now = monotonic_ns();
  if (now - checked_ns_ < kSleepNs) return false;
  checked_ns_ = now;
  return true;
}

void ShmNode::check_given_up(const std::string& what) const {
  uint32_t by = segment().aborted.load();
  if (by == 0) return;
  for (const Deadline end(kReason); by > kMaxLocalRanks && !end.passed(); by = segment().aborted.load()) sched_yield();
  if (by > kMaxLocalRanks)
    throw CommError("a rank gave up (rank ", peers_.world_rank_of(self()), " was at ", what, ")");
  if (segment().desync.load()) throw DesyncError(segment().reason.get());
  const int local_rank = static_cast<int>(by) - 1;
  throw CommError("rank ", peers_.world_rank_of(local_rank), peers_.pid_of(local_rank),
                  " gave up: ", segment().reason.get(), " (rank ", peers_.world_rank_of(self()), " was at ", what, ")");
}

// Raises the beat too: a rank that polls waits for others as one that sleeps does.
void ShmNode::check_peers(const Waiting& waiting) {
  note_pauses();
  check_given_up(waiting.what);
  const auto awaited = waiting.awaited();
  try {
    peers_.check(awaited, waiting.what);
  } catch (const CommError&) {
    advance();
    if (waiting.ready() || waiting.awaited() != awaited) return;  // the peer has just done its last share and left
    check_given_up(waiting.what);                                 // or has said why it leaves
    throw;
  }
  peers_.self().raise_beat(progress_of(waiting));
}

std::string ShmNode::missing_text(const std::vector<int>& missing) const {
  if (missing.empty()) return "the other nodes";
  std::vector<int> names;
  for (const int local_rank : missing) names.push_back(peers_.world_rank_of(local_rank));
  std::sort(names.begin(), names.end());
  std::string text = named_ranks(names);
  for (size_t i = 0; i < missing.size(); ++i) text += cat(i == 0 ? ": " : ", ", peers_.describe(missing[i]));
  return text;
}

void ShmNode::warn(const Waiting& waiting, double seconds) {
  const std::vector<int> missing = waiting.missing();
  if (missing.empty()) return;
  options_.warn(cat(waiting.what, ": has waited ", seconds, " s for ", missing_text(missing), "; gives up after ",
                    std::chrono::duration<double>(waiting.timeout).count(), " s (", options_.timeout_name, ')'));
}

CommError ShmNode::timed_out(const Waiting& waiting, const std::string& more) const {
  const std::vector<int> missing = waiting.missing();
  for (const int rank : missing) peers_.self().miss(rank);
  return CommError("rank ", peers_.world_rank_of(self()), ": ", waiting.what, ": waited ",
                   std::chrono::duration<double>(waiting.timeout).count(), " s for ", missing_text(missing),
                   "; see their logs, or raise ", options_.timeout_name, more);
}

void ShmNode::abort(const std::string& reason, bool is_desync) noexcept {
  try {
    segment().abort(self(), reason, is_desync);
  } catch (...) {  // no memory even for the text: the peers will see this process end
  }
}

}  // namespace lockstep::comm
