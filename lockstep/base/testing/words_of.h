// The words of a command line, for tests.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace lockstep::testing_support {

inline std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace lockstep::testing_support
