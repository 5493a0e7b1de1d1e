#include "lockstep/data/findings.h"

#include <sstream>

#include "lockstep/base/error.h"

namespace lockstep::data {

Findings::Findings(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    Found found;
    if (words >> name >> found.stamp && words.get() == ' ' && std::getline(words, found.what)) found_[name] = found;
  }
}

std::string Findings::find(const std::string& name, const std::string& stamp, const Look& look) {
  const auto kept = found_.find(name);
  if (!stamp.empty() && kept != found_.end() && kept->second.stamp == stamp) return kept->second.what;
  std::string what = look();
  if (stamp.empty()) {
    found_.erase(name);
  } else {
    found_[name] = {stamp, what};
  }
  return what;
}

std::string Findings::text() const {
  std::string text;
  for (const auto& [name, found] : found_) text += cat(name, ' ', found.stamp, ' ', found.what, '\n');
  return text;
}

}  // namespace lockstep::data
