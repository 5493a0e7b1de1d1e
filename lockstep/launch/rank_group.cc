#include "lockstep/launch/rank_group.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

#include "lockstep/base/clock.h"

namespace lockstep::launch {
namespace {

constexpr int kEnd = 0, kOut = 1, kErr = 2;  // a rank's poll entries: its end, standard output, standard error

Descriptor& pipe_of(RankProcess& process, Terminal::Stream stream) {
  return stream == Terminal::Stream::kOut ? process.child.out : process.child.err;
}

// poll ignores negative descriptors, so every rank has its three entries all the time.
pollfd entry(int fd, bool wanted, short events = POLLIN) {
  return {.fd = wanted ? fd : -1, .events = events, .revents = 0};
}

pollfd entry(const Sink& sink) { return entry(sink.fd(), sink.waiting() && !sink.rests(), POLLOUT); }

}  // namespace

void RankGroup::start(int rank, SpawnRequest request, RankOutput::Options output) {
  const std::string name = mark_.substr(0, mark_.find('=') + 1);
  std::erase_if(request.environment, [&name](const std::string& each) { return each.starts_with(name); });
  request.environment.push_back(mark_);
  RankOutput to_terminal(std::move(output), terminal_);
  ranks_.push_back(std::make_unique<RankProcess>(
      RankProcess{.rank = rank, .child = Child(request), .output = std::move(to_terminal)}));
  guard_.watch(ranks_.back()->child.pid());
}

bool RankGroup::wait(int other_fd, int timeout_ms, const OnEnd& on_end) {
  Sink& out = terminal_.sink(Terminal::Stream::kOut);
  Sink& err = terminal_.sink(Terminal::Stream::kErr);
  const bool reading = !out.holds_up() && !err.holds_up();  // a slow reader slows the ranks, as a pipe would
  std::vector<pollfd> entries = {entry(other_fd, other_fd >= 0), entry(out), entry(err)};
  const size_t first_rank = entries.size();
  for (const auto& process : ranks_) {
    entries.push_back(entry(process->child.pidfd(), !process->status));
    entries.push_back(entry(process->child.out.get(), reading));
    entries.push_back(entry(process->child.err.get(), reading));
  }
  if (out.rests() || err.rests()) timeout_ms = timeout_ms < 0 ? Sink::kRestMs : std::min(timeout_ms, Sink::kRestMs);
  const int ready = poll(entries.data(), entries.size(), timeout_ms);
  out.pump();
  err.pump();
  if (ready <= 0) return false;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const pollfd* const mine = &entries[first_rank + 3 * i];
    if (mine[kOut].revents != 0) read_stream(*ranks_[i], Terminal::Stream::kOut);
    if (mine[kErr].revents != 0) read_stream(*ranks_[i], Terminal::Stream::kErr);
    if (mine[kEnd].revents == 0) continue;
    ranks_[i]->status = ranks_[i]->child.ended();
    if (ranks_[i]->status) on_end(*ranks_[i]);
  }
  return entries[0].revents != 0;
}

bool RankGroup::all_ended() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const auto& process) { return process->status.has_value(); });
}

void RankGroup::signal_running(int signal) {
  for (const auto& process : ranks_) {
    if (!process->status) process->child.signal_group(signal);
  }
}

void RankGroup::stop(size_t rank, int signal) {
  RankProcess& process = *ranks_.at(rank);
  if (process.status) return;
  process.stopped = true;
  process.child.signal_group(signal);
}

void RankGroup::resize(int columns) {
  for (const auto& process : ranks_) {
    if (!process->status) process->child.resize(columns);
  }
}

std::vector<pid_t> RankGroup::pids() const {
  std::vector<pid_t> out;
  for (const auto& process : ranks_) out.push_back(process->child.pid());
  return out;
}

void RankGroup::finish(int patience_ms) {
  const Deadline deadline{std::chrono::milliseconds(patience_ms)};
  while (has_open_streams() && !deadline.passed()) wait(-1, 10, [](RankProcess&) {});
  for (const auto& process : ranks_) process->child.signal_group(SIGKILL);
  strays_.end(pids());
  // What the pipes still hold; whoever can't be killed and writes on is not listened to for ever.
  const Deadline enough{std::chrono::seconds(2)};
  for (const auto& process : ranks_) {
    for (const auto stream : {Terminal::Stream::kOut, Terminal::Stream::kErr}) {
      while (read_stream(*process, stream) && !enough.passed()) {
      }
      process->output.finish(stream);
    }
  }
}

bool RankGroup::has_open_streams() const {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const auto& process) { return process->child.out || process->child.err; });
}

// Reads once, so that no rank starves the others. False if there is nothing to read, now or ever.
bool RankGroup::read_stream(RankProcess& process, Terminal::Stream stream) {
  Descriptor& pipe = pipe_of(process, stream);
  if (!pipe) return false;
  std::array<char, 64 * 1024> bytes;
  const ssize_t got = read(pipe.get(), bytes.data(), bytes.size());
  if (got > 0) {
    process.output.feed(stream, {bytes.data(), static_cast<size_t>(got)});
    return true;
  }
  if (got == 0 || errno == EIO) pipe = Descriptor();  // a terminal ends by EIO
  return got < 0 && errno == EINTR;
}

}  // namespace lockstep::launch
