// What lies in a run's folder, by the names of its files. Nothing here reads a checkpoint, and all of it links no
// libtorch.
#pragma once

#include <optional>
#include <string>

namespace lockstep::train {

// Whether `folder` has a checkpoint in its checkpoints/, readable or not.
bool holds_checkpoint(const std::string& folder);

// Whether a run has written results to `folder`: metrics, final.json or a checkpoint.
bool holds_run(const std::string& folder);

// Returns the newest checkpoint of a run, readable or not: its interrupted state, to which a run that goes on gives a
// number before it saves others, or else the one of the last step. Nothing if it has none.
std::optional<std::string> newest_checkpoint(const std::string& folder);

// Returns the folder of the run that a checkpoint's file belongs to: the one with the checkpoints/ in which the file
// lies, or to which it is a link. Empty if it belongs to none.
std::string run_of(const std::string& file);

// Returns the numbered checkpoint of its run to which a link leads, as last.pt does now: what is read by that name is
// one step's, whatever the run writes meanwhile. Any other file's path is returned as it is.
std::string numbered_checkpoint(const std::string& file);

// Whether `file` is the newest checkpoint of its run, or a link to it.
bool is_newest(const std::string& file);

// Whether both are the same file or folder, by whatever path.
bool same_place(const std::string& a, const std::string& b);

// Returns the checkpoint that a path names: the file itself, the newest one of a run's folder, or a folder of
// safetensors. Throws ConfigError if there is none; `name` says what named the path, "inspect", "--load".
std::string checkpoint_at(const std::string& name, const std::string& path);

}  // namespace lockstep::train
