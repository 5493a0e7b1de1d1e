// A run's dashboard as a web page: how far it is, its curves, its failures, its log and its options.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/dash/history.h"
#include "lockstep/launch/runs/run_facts.h"

namespace lockstep::dash {

// What the page of a server asks for again and again, and the program that does so.
constexpr const char *kContentPath = "/content", *kScriptPath = "/dash.js";

// One thread.
class RunPage {
 public:
  // `folder` is a run's. What can't be read there is not shown.
  explicit RunPage(std::string folder);

  // Reads what is new, and returns the page's body: without the style, and nothing of it is from outside unescaped.
  std::string content();
  // The whole page, in one file. `live`: it has the script that renews its content every two seconds.
  std::string page(bool live);
  // The run's facts as JSON, as `lockstep ps --json` has them.
  std::string facts_json() const;

 private:
  std::string folder_;
  History history_;
};

// The script of a live page.
std::string script();

}  // namespace lockstep::dash
