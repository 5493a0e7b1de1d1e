#include "lockstep/train/options/tracked.h"

#include <array>
#include <sstream>
#include <string_view>

#include "lockstep/config/values.h"

namespace lockstep::train {

Tracked read_tracked(const std::string& name, const std::string& text) {
  constexpr std::array<std::string_view, 3> kWords = {"csv", "tensorboard", "none"};
  Tracked tracked;
  std::istringstream words(text);
  int count = 0;
  bool none = false;
  for (std::string word; std::getline(words, word, ','); ++count) {
    const size_t chosen = config::read_word(name, word, kWords);
    if (chosen == 0) tracked.csv = true;
    if (chosen == 1) tracked.tensorboard = true;
    if (chosen == 2) none = true;
  }
  if (none && count > 1) throw ConfigError("--", name, ' ', text, ": none stands alone");
  if (count == 0) config::read_word(name, text, kWords);  // which refuses it
  return tracked;
}

std::string write_tracked(const Tracked& tracked) {
  if (tracked.csv && tracked.tensorboard) return "csv,tensorboard";
  return tracked.csv ? "csv" : tracked.tensorboard ? "tensorboard" : "none";
}

}  // namespace lockstep::train
