// Curves as an SVG picture, with axes, units and a legend.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/dash/history.h"

namespace lockstep::dash {

struct Line {
  std::string name;
  const Curve* curve = nullptr;
  bool points = false;  // few values, each of which is a mark
};

struct Chart {
  std::string title;
  std::string unit = {};    // of the values; empty: a number without one
  std::vector<Line> lines;  // those without values are left out
  bool log = false;         // a logarithmic axis, if all values are above 0
};

// Draws it for a page that has the style of page.h. Of a curve with more values than the picture has columns the mean
// of each column's is drawn, and the area from their least to their greatest. Empty if there is no value. Pure.
std::string svg(const Chart& chart);

// Marks for an axis from `least` to `greatest`: round numbers, at most `most`. Pure.
std::vector<double> round_marks(double least, double greatest, int most);

// Four digits that count: "0.3074", "1.2e-05", "915", "61k". Pure.
std::string short_number(double value);

}  // namespace lockstep::dash
