#include "lockstep/doctor/environment.h"

#include <nlohmann/json.hpp>

#include "lockstep/base/text.h"

namespace lockstep::doctor {
namespace {

using Json = nlohmann::ordered_json;
using rendezvous::Layer;
using rendezvous::Place;
using rendezvous::PlaceReport;

std::string row(const std::string& name, const std::string& text) {
  return name + std::string(std::max<size_t>(12, name.size() + 1) - name.size(), ' ') + text + '\n';
}

std::string place_text(const Place& place) {
  return cat("rank ", place.rank, " of ", place.size, ", local rank ", place.local_rank, " of ", place.local_size,
             place.node >= 0 ? cat(", node ", place.node) : "");
}

std::string variables_text(const Layer& layer) {
  std::string out;
  for (const auto& [name, value] : layer.readings) out += cat(out.empty() ? "" : " ", name, '=', value);
  return out;
}

bool is_same_place(const Place& a, const Place& b) {
  return a.rank == b.rank && a.size == b.size && a.local_rank == b.local_rank && a.local_size == b.local_size;
}

// What a layer that does not count has to say.
std::string other_text(const Layer& layer, const PlaceReport& report) {
  if (!layer.wrong.empty()) return layer.wrong;
  if (!layer.place) return cat("not complete: ", layer.missing);
  if (report.place && is_same_place(*layer.place, *report.place)) return "the same place";
  return place_text(*layer.place);
}

std::string rendezvous_text(const Place& place) {
  if (place.size == 1) return "none: a world of one";
  if (place.launcher == "lockstep" && place.local_size == place.size) return "the launcher's memory";
  return place.rendezvous + (place.launcher_hosts ? ", served by the launcher" : ", served by rank 0");
}

Json variables_json(const Layer& layer) {
  Json out = Json::object();
  for (const auto& [name, value] : layer.readings) out[name] = value;
  return out;
}

Json number_or_null(int number) { return number < 0 ? Json() : Json(number); }
Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

std::string to_text(const PlaceReport& report) {
  std::string out;
  if (!report.place) {
    out = row("error", report.error);
  } else if (report.used < 0) {
    out = row("launcher", "none: rank 0 of a world of one");
  } else {
    const Place& place = *report.place;
    out = row("launcher", place.launcher) + row("place", place_text(place)) + row("rendezvous", rendezvous_text(place));
    if (place.gpu >= 0) out += row("GPU", std::to_string(place.gpu));
    out += row("from", variables_text(report.layers[static_cast<size_t>(report.used)]));
  }
  for (size_t i = 0; i < report.layers.size(); ++i) {
    if (static_cast<int>(i) == report.used) continue;
    const Layer& layer = report.layers[i];
    out += row("also seen", cat(layer.launcher, ": ", other_text(layer, report), " (", variables_text(layer), ')'));
  }
  return out;
}

std::string to_json(const PlaceReport& report) {
  const Place place = report.place.value_or(Place{});
  const bool known = report.place.has_value();
  const auto number = [known](int value) { return known ? number_or_null(value) : Json(); };
  Json out = {
      {"launcher", known ? Json(place.launcher) : Json()},
      {"rank", number(place.rank)},
      {"world_size", number(place.size)},
      {"local_rank", number(place.local_rank)},
      {"local_world_size", number(place.local_size)},
      {"node", number(place.node)},
      {"rendezvous", text_or_null(place.rendezvous)},
      {"gpu", number(place.gpu)},
      {"error", text_or_null(report.error)},
      {"variables", report.used < 0 ? Json::object() : variables_json(report.layers[static_cast<size_t>(report.used)])},
      {"others", Json::array()}};
  for (size_t i = 0; i < report.layers.size(); ++i) {
    if (static_cast<int>(i) == report.used) continue;
    const Layer& layer = report.layers[i];
    out["others"].push_back({{"launcher", layer.launcher},
                             {"complete", layer.place.has_value()},
                             {"says", other_text(layer, report)},
                             {"variables", variables_json(layer)}});
  }
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace lockstep::doctor
