#include "lockstep/dash/sections.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/folder_entries.h"
#include "lockstep/base/terminal.h"
#include "lockstep/base/text.h"
#include "lockstep/config/toml_file.h"
#include "lockstep/dash/bounded_json.h"
#include "lockstep/dash/chart.h"
#include "lockstep/dash/html.h"
#include "lockstep/launch/runs/file_end.h"
#include "lockstep/launch/runs/follow.h"
#include "lockstep/launch/runs/run_table.h"
#include "lockstep/track/flat.h"
#include "lockstep/train/folder/run_files.h"

namespace lockstep::dash {
namespace {

using Json = nlohmann::ordered_json;

// Pictures that every run has, in their order; what else it measures follows.
struct Known {
  const char *title, *unit;
  std::vector<std::pair<const char*, const char*>> curves;  // and what they are called
  bool log = false;
};

const std::vector<Known>& known_charts() {
  static const std::vector<Known> kKnown = {
      {"Learning rate", "", {{"train/lr", "learning rate"}}},
      {"Norm of the gradients", "", {{"train/gradient_norm", "norm"}}, true},
      {"Loss scale", "", {{"train/loss_scale", "loss scale"}}, true},
      {"Speed", "samples/s", {{"train/samples_per_second", "training"}}},
      {"Time of a step", "s", {{"train/seconds", "all of it"}, {"train/data_seconds", "waiting for data"}}, true},
      {"Communication", "ms", {{"comm/in_flight_ms", "under way"}, {"comm/waited_ms", "waited for"}}},
      {"Communication hidden by backward", "share", {{"comm/overlap", "hidden"}}},
  };
  return kKnown;
}

// It is the same in all steps.
constexpr std::string_view kNotDrawn = "comm/bytes";

struct Evaluated {
  std::string split, metric, part;  // "test", "dice_per_class", "1"
};

// Of "eval/test/dice_per_class.1".
Evaluated evaluated(std::string_view key) {
  constexpr std::string_view kPrefix = "eval/";
  key.remove_prefix(kPrefix.size());
  const size_t split = key.find('/');
  Evaluated what{.split = std::string(key.substr(0, split)), .metric = std::string(key.substr(split + 1))};
  const size_t dot = what.metric.rfind('.');
  if (dot != std::string::npos && what.metric.find_first_not_of("0123456789", dot + 1) == std::string::npos) {
    what.part = what.metric.substr(dot + 1);
    what.metric.resize(dot);
  }
  return what;
}

bool is_evaluated(std::string_view key) {
  return key.starts_with("eval/") && key.find('/', 5) != std::string_view::npos;
}

bool spans_decades(const std::vector<Line>& lines) {
  constexpr double kMany = 30;
  double least = INFINITY, greatest = 0;
  for (const Line& line : lines) {
    for (const double value : line.curve->values) {
      least = std::min(least, value);
      greatest = std::max(greatest, value);
    }
  }
  return least > 0 && greatest / least > kMany;
}

std::string lead(const std::string& name, const std::string& value) {
  return value.empty() ? "" : cat("<span>", name, " <b>", escaped(value), "</b></span> ");
}

std::string of_all(int64_t done, int64_t all) { return all > 0 ? cat(done, " of ", all) : cat(done); }

std::string time_left(const launch::RunFacts& run, int64_t now) {
  const bool knows = run.state == launch::RunState::kUnderWay && run.steps > run.last.step && run.last.step > 0;
  if (!knows || !run.last.seconds_a_step || now == 0) return "";
  return "about " +
         launch::short_time(std::llround(*run.last.seconds_a_step * static_cast<double>(run.steps - run.last.step)));
}

std::vector<std::filesystem::path> reports_in(const std::string& folder) {
  std::vector<std::filesystem::path> found = entries_of(folder);
  std::erase_if(found, [](const auto& path) { return path.extension() != ".json"; });
  const auto number = [](const std::filesystem::path& path) {
    const std::string name = path.stem().string();
    const size_t digits = name.find_last_not_of("0123456789") + 1;
    return std::make_pair(name.size() - digits, name.substr(digits));  // 10 is after 9
  };
  std::sort(found.begin(), found.end(), [&](const auto& a, const auto& b) { return number(a) > number(b); });
  return found;
}

// A file that is longer than results and reports are is none of them.
Json json_in(const std::string& path) { return bounded_json(launch::end_of(path, kMostJsonBytes + 1)); }

std::string text_in(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string report_text(const std::filesystem::path& path) {
  const Json report = json_in(path.string());
  if (!report.is_object()) return "";
  std::string lines;
  if (const auto last = report.find("last_lines"); last != report.end() && last->is_array()) {
    for (const Json& line : *last) lines += line.is_string() ? line.get<std::string>() + '\n' : "";
  }
  std::string what = cat("<p><b>", escaped(path.stem().string()), "</b> ", escaped(text_in(report, "headline")),
                         "</p><p>", lead("doing", text_in(report, "doing")), lead("saved", text_in(report, "saved")),
                         lead("next", text_in(report, "restart")), "</p>");
  if (!lines.empty())
    what += cat("<details><summary>its last lines</summary><pre>", escaped(lines), "</pre></details>");
  return what;
}

// A line that a program has written over again and again, as it does to show its progress, is its last one.
std::string as_terminal(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  const size_t begin = line.rfind('\r');
  return without_escapes(begin == std::string_view::npos ? line : line.substr(begin + 1));
}

}  // namespace

std::string heading(const launch::RunFacts& run, int64_t now) {
  const std::string state(launch::word_of(run.state));
  std::string out =
      cat("<header><h1>", escaped(run.folder), " <small class='state", static_cast<int>(run.state), "'>", state,
          "</small></h1><p class='facts'>", lead("recipe", run.recipe),
          lead("ranks", run.ranks > 0 ? cat(run.ranks) : ""), lead("step", of_all(run.last.step, run.steps)),
          lead("epoch", run.last.epoch > 0 ? of_all(run.last.epoch, run.epochs) : ""),
          lead("loss", run.last.loss ? short_number(*run.last.loss) : ""),
          lead("samples/s", run.last.samples_per_second ? short_number(*run.last.samples_per_second) : ""));
  if (run.state == launch::RunState::kUnderWay && run.since > 0)
    out += lead("since", launch::short_time(now - run.since));
  out += lead("left", time_left(run, now)) + "</p>";
  if (run.steps > 0) out += cat("<progress max='", run.steps, "' value='", run.last.step, "'></progress>");
  return out + "</header>\n";
}

std::string charts(const History& history) {
  const auto& curves = history.curves();
  std::set<std::string> done;
  std::string out = "<section class='charts'>\n";
  Chart loss{.title = "Loss"};
  std::map<std::string, Chart> metrics;
  if (const auto trained = curves.find("train/loss"); trained != curves.end()) {
    loss.lines.push_back({"training", &trained->second});
    done.insert(trained->first);
  }
  for (const auto& [key, curve] : curves) {
    if (!is_evaluated(key)) continue;
    done.insert(key);
    const Evaluated what = evaluated(key);
    Chart& chart = what.metric == "loss" ? loss : metrics[what.metric];
    if (chart.title.empty()) chart.title = what.metric;
    chart.lines.push_back({what.part.empty() ? what.split : cat(what.split, ", ", what.part), &curve, /*points=*/true});
  }
  loss.log = spans_decades(loss.lines);
  out += svg(loss);
  for (const auto& [name, chart] : metrics) out += svg(chart);
  for (const Known& known : known_charts()) {
    Chart chart{.title = known.title, .unit = known.unit};
    for (const auto& [key, name] : known.curves) {
      const auto found = curves.find(key);
      if (found == curves.end()) continue;
      chart.lines.push_back({name, &found->second});
      done.insert(key);
    }
    chart.log = known.log && spans_decades(chart.lines);
    out += svg(chart);
  }
  for (const auto& [key, curve] : curves) {
    if (!done.contains(key) && key != kNotDrawn) out += svg({.title = key, .lines = {{key, &curve}}});
  }
  return out + "</section>\n";
}

std::string results(const std::string& folder) {
  const Json final = json_in(train::RunFiles{folder}.final_json());
  if (!final.is_object() || !final.contains("metrics")) return "";
  std::string facts;
  for (const auto& [name, value] : track::flat(final["metrics"], '.')) {
    facts += lead(escaped(name), value.is_number() ? short_number(value.get<double>()) : value.dump());
  }
  facts += lead("weights", text_in(final, "weights_sha256").substr(0, 12));
  return cat("<section><h2>Result</h2><p class='facts'>", facts, "</p></section>\n");
}

std::string failures(const std::string& folder) {
  std::string out;
  for (const auto& path : reports_in(train::RunFiles{folder}.errors())) out += report_text(path);
  return out.empty() ? "" : cat("<section class='failures'><h2>Failures</h2>", out, "</section>\n");
}

std::string log_tail(const std::string& folder) {
  constexpr size_t kBytes = 16UL * 1024, kLines = 30;
  std::string text;
  try {
    text = launch::end_of(launch::log_of(folder, std::nullopt), kBytes);
  } catch (const Error&) {  // there is none yet
  }
  const auto lines = launch::whole_lines(text);
  std::string shown;
  for (size_t i = lines.size() - std::min(lines.size(), kLines); i < lines.size(); ++i)
    shown += as_terminal(lines[i]) + '\n';
  if (shown.empty()) return "";
  return cat("<section><h2>Log</h2><pre>", escaped(shown), "</pre></section>\n");
}

std::string options(const std::string& folder) {
  std::string rows;
  try {
    for (const auto& [name, value] : config::read_any_toml(train::RunFiles{folder}.config())) {
      rows += cat("<tr><th>", escaped(name), "</th><td>", escaped(value), "</td></tr>");
    }
  } catch (const Error&) {  // it may be in the making
  }
  if (rows.empty()) return "";
  return cat("<section><details><summary>Options</summary><table>", rows, "</table></details></section>\n");
}

}  // namespace lockstep::dash
