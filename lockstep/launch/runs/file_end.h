// The end of a file that may be large.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::launch {

// Returns at most the last `bytes` bytes of a file; empty if it can't be read.
std::string end_of(const std::string& path, size_t bytes);

// Returns the place in the file from which on it has `lines` lines, the last of which may lack its newline; 0 if it
// has no more than that.
uint64_t begin_of_lines(int descriptor, uint64_t size, uint64_t lines);

// Splits a text into its whole lines, those that end with a newline.
std::vector<std::string_view> whole_lines(std::string_view text);

}  // namespace lockstep::launch
