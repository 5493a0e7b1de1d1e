// What a look at all files of a data set has found, kept so that the next opening of the same files needs none.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace lockstep::data {

// One thread.
class Findings {
 public:
  using Look = std::function<std::string()>;

  Findings() = default;
  // Those of a text(). Lines that are none are left out.
  explicit Findings(const std::string& text);

  // Returns what is kept as `name` of files with this stamp; else what look() returns, one line, which is then kept in
  // place of what other files had. `name` and `stamp` have no spaces. An empty stamp: the files can't be told from
  // others, and nothing is kept.
  std::string find(const std::string& name, const std::string& stamp, const Look& look);

  // A line for each finding: its name, the stamp and what was found. Empty if there are none.
  std::string text() const;

 private:
  struct Found {
    std::string stamp, what;
  };
  std::map<std::string, Found> found_;
};

}  // namespace lockstep::data
