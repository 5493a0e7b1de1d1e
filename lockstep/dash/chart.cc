#include "lockstep/dash/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "lockstep/base/text.h"
#include "lockstep/dash/html.h"

namespace lockstep::dash {
namespace {

// Of the picture, in its own units.
constexpr double kWidth = 560, kHeight = 270;
constexpr double kLeft = 58, kRight = 14, kTop = 34, kBottom = 40;
constexpr int kColumns = 240, kColours = 8;

// What falls into a column of the picture.
struct Column {
  double step = 0, mean = 0, least = 0, greatest = 0;
};

std::vector<Column> columns_of(const Curve& curve, int64_t first, int64_t last) {
  std::vector<Column> columns;
  const size_t count = curve.steps.size();
  if (count <= static_cast<size_t>(kColumns)) {
    for (size_t i = 0; i < count; ++i) {
      const double value = curve.values[i];
      columns.push_back({static_cast<double>(curve.steps[i]), value, value, value});
    }
    return columns;
  }
  const double width = static_cast<double>(last - first + 1) / kColumns;
  for (size_t i = 0; i < count;) {
    const double place = std::floor(static_cast<double>(curve.steps[i] - first) / width);
    const double end = static_cast<double>(first) + (place + 1) * width;
    Column column{.least = curve.values[i], .greatest = curve.values[i]};
    size_t values = 0;
    for (; i < count && (values == 0 || static_cast<double>(curve.steps[i]) < end); ++i, ++values) {
      column.step += static_cast<double>(curve.steps[i]);
      column.mean += curve.values[i];
      column.least = std::min(column.least, curve.values[i]);
      column.greatest = std::max(column.greatest, curve.values[i]);
    }
    column.step /= static_cast<double>(values);
    column.mean /= static_cast<double>(values);
    columns.push_back(column);
  }
  return columns;
}

struct Range {
  double least = 0, greatest = 0;
};

// A place on an axis for each value.
class Axis {
 public:
  Axis(Range range, double from, double to, bool log) : range_(range), from_(from), to_(to), log_(log) {}
  double operator()(double value) const {
    const double low = scaled(range_.least), high = scaled(range_.greatest);
    return from_ + (to_ - from_) * (high > low ? (scaled(value) - low) / (high - low) : 0.5);
  }

 private:
  double scaled(double value) const { return log_ ? std::log10(value) : value; }

  Range range_;
  double from_, to_;
  bool log_;
};

std::string place(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

std::vector<double> decade_marks(Range range) {
  constexpr int kMost = 6;
  std::vector<double> marks;
  const int first = static_cast<int>(std::floor(std::log10(range.least)));
  const int last = static_cast<int>(std::floor(std::log10(range.greatest)));
  for (int power = first; power <= last; power += std::max(1, (last - first) / kMost)) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double mark = digit * std::pow(10, power);
      if (digit > 1 && last - first > 2) continue;
      if (mark >= range.least * 0.999 && mark <= range.greatest * 1.001) marks.push_back(mark);
    }
  }
  return marks;
}

// Whether it is more than rounding.
bool is_wide(Range range) {
  constexpr double kRounding = 1e-12;
  const double size = std::max(std::abs(range.least), std::abs(range.greatest));
  return range.greatest - range.least > kRounding * size && std::isfinite(range.greatest - range.least);
}

// Room above and below, so that no curve lies on the frame. Ends that no number has stay as they are.
Range widened(Range range, bool log) {
  constexpr double kRoom = 0.05;
  if (log) {
    const double factor = is_wide(range) ? std::pow(range.greatest / range.least, kRoom) : 2;
    const Range wide{range.least / factor, range.greatest * factor};
    return wide.least > 0 && std::isfinite(wide.greatest) ? wide : range;
  }
  const double room =
      is_wide(range) ? kRoom * (range.greatest - range.least) : std::max(0.5 * std::abs(range.least), 1e-12);
  const double below = range.least - room;
  return {range.least >= 0 && below < 0 ? 0 : below, range.greatest + room};
}

struct Drawn {
  const Line* line;
  std::vector<Column> columns;
};

std::string text_at(double x, double y, const char* kind, const std::string& text) {
  return cat("<text x='", place(x), "' y='", place(y), "' class='", kind, "'>", escaped(text), "</text>");
}

std::string frame(const Chart& chart, const std::vector<double>& marks, Range steps, const Axis& x, const Axis& y) {
  const double right = kWidth - kRight, bottom = kHeight - kBottom;
  std::string out;
  for (const double mark : marks) {
    out += cat("<line class='grid' x1='", kLeft, "' x2='", right, "' y1='", place(y(mark)), "' y2='", place(y(mark)),
               "'/>", text_at(kLeft - 6, y(mark) + 4, "left", short_number(mark)));
  }
  for (const double mark : round_marks(steps.least, steps.greatest, 6)) {
    if (mark != std::floor(mark)) continue;
    out += text_at(x(mark), bottom + 16, "mid", short_number(mark));
  }
  out += cat("<line class='axis' x1='", kLeft, "' x2='", right, "' y1='", bottom, "' y2='", bottom, "'/>",
             "<line class='axis' x1='", kLeft, "' x2='", kLeft, "' y1='", kTop, "' y2='", bottom, "'/>");
  const std::string unit = cat(chart.unit, chart.log ? chart.unit.empty() ? "logarithmic" : ", logarithmic" : "");
  return out + text_at((kLeft + right) / 2, kHeight - 8, "mid unit", "step") + text_at(4, kTop - 8, "unit", unit);
}

std::string curve_of(const Drawn& drawn, size_t colour, const Axis& x, const Axis& y) {
  std::string line, marks, area;
  const auto point = [&](double step, double value) { return cat(place(x(step)), ',', place(y(value)), ' '); };
  const bool spread = std::any_of(drawn.columns.begin(), drawn.columns.end(),
                                  [](const Column& each) { return each.greatest > each.least; });
  for (const Column& each : drawn.columns) {
    line += point(each.step, each.mean);
    if (spread) area += point(each.step, each.greatest);
    if (drawn.line->points || drawn.columns.size() == 1) {
      marks += cat("<circle cx='", place(x(each.step)), "' cy='", place(y(each.mean)), "' r='3'><title>",
                   escaped(drawn.line->name), ' ', short_number(each.mean), ", step ", static_cast<int64_t>(each.step),
                   "</title></circle>");
    }
  }
  if (spread) {
    for (auto each = drawn.columns.rbegin(); each != drawn.columns.rend(); ++each)
      area += point(each->step, each->least);
    area = cat("<polygon points='", area, "'/>");
  }
  return cat("<g class='c", colour % kColours, "'>", area, "<polyline points='", line, "'/>", marks, "</g>");
}

// The names with their last values, side by side above the picture.
std::string legend(const std::vector<Drawn>& drawn) {
  std::string out;
  for (size_t i = 0; i < drawn.size(); ++i) {
    const Curve& curve = *drawn[i].line->curve;
    out += cat("<span><i class='c", i % kColours, "'></i>", escaped(drawn[i].line->name), " <b>",
               short_number(curve.values.back()), "</b>",
               curve.not_finite > 0 ? cat(" <em>(", curve.not_finite, " not finite)</em>") : "", "</span> ");
  }
  return out;
}

}  // namespace

std::vector<double> round_marks(double least, double greatest, int most) {
  if (!is_wide({least, greatest})) return {least};
  const double wide = (greatest - least) / most, power = std::pow(10, std::floor(std::log10(wide)));
  double step = 10 * power;
  for (const double digit : {5.0, 2.0, 1.0}) {
    if (digit * power >= wide) step = digit * power;
  }
  std::vector<double> marks;
  const double first = std::ceil(least / step);
  for (int i = 0; i <= most && (first + i) * step <= greatest; ++i) marks.push_back((first + i) * step);
  return marks;
}

std::string short_number(double value) {
  std::array<char, 32> text{};
  const double size = std::abs(value);
  constexpr double kThousand = 1e3, kMillion = 1e6;
  if (size >= 1e4 && size < kMillion) return cat(short_number(std::round(value) / kThousand), 'k');
  if (size >= kMillion && size < 1e9) return cat(short_number(value / kMillion), 'M');
  std::snprintf(text.data(), text.size(), "%.4g", value == 0 ? 0 : value);
  return text.data();
}

std::string svg(const Chart& asked) {
  Chart chart = asked;
  std::erase_if(chart.lines, [](const Line& line) { return line.curve == nullptr || line.curve->steps.empty(); });
  if (chart.lines.empty()) return "";
  Range steps{1e300, -1e300}, values{1e300, -1e300};
  for (const Line& line : chart.lines) {
    steps.least = std::min(steps.least, static_cast<double>(line.curve->steps.front()));
    steps.greatest = std::max(steps.greatest, static_cast<double>(line.curve->steps.back()));
    const auto [least, greatest] = std::minmax_element(line.curve->values.begin(), line.curve->values.end());
    values = {std::min(values.least, *least), std::max(values.greatest, *greatest)};
  }
  chart.log = chart.log && values.least > 0;
  values = widened(values, chart.log);
  const Axis x(steps, kLeft + 8, kWidth - kRight - 8, false), y(values, kHeight - kBottom, kTop, chart.log);
  std::vector<Drawn> drawn;
  for (const Line& line : chart.lines) {
    drawn.push_back(
        {&line, columns_of(*line.curve, static_cast<int64_t>(steps.least), static_cast<int64_t>(steps.greatest))});
  }
  const auto marks = chart.log ? decade_marks(values) : round_marks(values.least, values.greatest, 5);
  std::string curves;
  for (size_t i = 0; i < drawn.size(); ++i) curves += curve_of(drawn[i], i, x, y);
  return cat("<figure><figcaption>", escaped(chart.title), "</figcaption><p class='legend'>", legend(drawn),
             "</p><svg viewBox='0 0 ", kWidth, ' ', kHeight, "' role='img' aria-label='", escaped(chart.title), "'>",
             frame(chart, marks, steps, x, y), curves, "</svg></figure>\n");
}

}  // namespace lockstep::dash
