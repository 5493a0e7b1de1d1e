// Files and folders that a command line names.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::config {

// Throws ConfigError if there is no file or folder at `path`: the text names the option ("--data"), the path and, where
// the path's folder has an entry of a near name, that entry. `advice` is the rest of the text, such as "; leave --data
// out to train on data made on the spot".
void require_there(std::string_view option, const std::string& path, std::string_view advice = "");

// Does the same, and throws ConfigError for what is no file.
void require_file(std::string_view option, const std::string& path, std::string_view advice = "");

// Throws ConfigError if a file, or a link that leads nowhere, is in the place of a folder that is to be at `path`:
// there, or in that of a folder above it. What is not there yet is none.
void require_folder_place(std::string_view option, const std::string& path, std::string_view advice = "");

// Returns "; did you mean runs/mnist-1?" for a path that is not there, or an empty string if no entry is near.
std::string near_entry(const std::string& path);

}  // namespace lockstep::config
