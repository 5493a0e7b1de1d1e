// Writes the slots that are pinned as checkpoints, on a thread of its own. It is the launcher's, where that started the
// ranks, so that no rank's death ends a file half-way; else rank 0's.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "lockstep/checkpoint/slots/slots.h"

namespace lockstep::checkpoint {

class Keeper {
 public:
  // Writes the first `bytes` of whole pages to a file.
  using Write = std::function<void(const std::string& path, std::span<const char> pages, size_t bytes,
                                   const std::function<void()>& on_progress)>;
  struct Options {
    std::string folder;                                          // the run's checkpoints/; empty: the ranks tell it
    int keep_last = 3;                                           // StepFolder's, where the folder is given
    std::function<void()> check_folder = {};                     // throws if the folder is no longer the run's
    std::function<void(const std::string& path)> on_saved = {};  // called on the keeper's thread
    std::function<void()> on_ended = {};  // the same, after each file that was asked for, written or not
    Write write = {};                     // atomically, to the disk, if it is empty
  };

  // Starts the thread, which takes no signals and has a low priority. What fails is told in the
  // header and changes nothing. Throws IoError if the system has no more threads.
  Keeper(std::shared_ptr<Slots> slots, Options options);
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  // Ends the thread after the file that it is at; leaves it behind if that makes no progress for a minute.
  ~Keeper();

  // Leaves the thread to itself, and the file that it is at to the process's end. Nothing else may follow.
  void abandon();

  // Whether everything that is asked for and whole has been written, or has failed.
  bool at_rest() const;

  // Asks the thread for the newest whole slot: at_rest() then says when it is written or has failed. Where the folder
  // has a checkpoint of its step or a later one, that is returned instead. Nothing if no slot is whole. To be called at
  // rest, when no rank fills a slot any more.
  struct Asked {
    int64_t step = 0;
    std::string path;
    bool was_there = false;
  };
  std::optional<Asked> ask_newest();

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace lockstep::checkpoint
