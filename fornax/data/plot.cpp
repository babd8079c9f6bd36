#include "fornax/data/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "fornax/base/error.h"

namespace fornax {
namespace {

constexpr Color kWhite = {255, 255, 255}, kInk = {38, 43, 51}, kSoftInk = {98, 105, 117},
                kGrid = {230, 233, 238}, kFrame = {150, 157, 168};
// Distinct for colour-blind readers too.
constexpr Color kPalette[] = {{31, 104, 188}, {226, 108, 29}, {22, 148, 105},
                              {190, 59, 98},  {126, 87, 194}, {138, 109, 59}};
constexpr float kTickText = 11, kLabelText = 12.5f, kTitleText = 16.5f;

Color mix(Color a, Color b, float t) {
  auto part = [t](uint8_t x, uint8_t y) {
    return uint8_t(std::lround(float(x) + t * (float(y) - float(x))));
  };
  return {part(a.r, b.r), part(a.g, b.g), part(a.b, b.b)};
}

struct Range {
  double low = 0, high = 1;
};

// What can be drawn: finite, with room for sums and differences.
bool drawable(double v) { return std::abs(v) < 1e300; }
bool drawable(const Series& s, size_t i) { return drawable(s.x[i]) && drawable(s.y[i]); }

// Over all points that can be drawn; empty charts get [0, 1], equal values some room around.
Range range_of(const std::vector<Series>& series, std::vector<double> Series::*values) {
  Range r = {INFINITY, -INFINITY};
  for (const Series& s : series) {
    for (size_t i = 0; i < s.x.size(); ++i) {
      if (!drawable(s, i)) continue;
      r.low = std::min(r.low, (s.*values)[i]);
      r.high = std::max(r.high, (s.*values)[i]);
    }
  }
  if (r.low > r.high) return {0, 1};
  double size = std::max(std::abs(r.low), std::abs(r.high));
  if (r.high - r.low > size * 1e-9) return r;
  double half = size == 0 ? 1 : size / 2;
  return {r.low - half, r.high + half};
}

// Room above and below the lines; down to zero where that is near.
Range with_margin(Range r) {
  double margin = (r.high - r.low) * 0.05;
  bool from_zero = r.low >= 0 && r.low < r.high * 0.4;
  return {from_zero ? 0 : r.low - margin, r.high + margin};
}

// As few decimals as tell the ticks apart.
std::string tick_text(double value, double step) {
  int decimals = std::clamp(int(std::ceil(-std::log10(step) - 1e-9)), 0, 12);
  double largest = std::abs(value);
  char text[48];
  if (largest >= 1e6 || step < 1e-6) {
    std::snprintf(text, sizeof text, "%.3g", value);
  } else {
    std::snprintf(text, sizeof text, "%.*f", decimals, value == 0 ? 0 : value);
  }
  return text;
}

// Maps data to pixels.
struct Frame {
  Rect area;
  Range x, y;
  Point at(double px, double py) const {
    return {area.left + float((px - x.low) / (x.high - x.low)) * area.width(),
            area.bottom - float((py - y.low) / (y.high - y.low)) * area.height()};
  }
};

void line(Canvas& canvas, Point a, Point b, float width, Color color) {
  Point ends[] = {a, b};
  canvas.stroke(ends, width, color);
}

// On the pixel grid, so that thin lines stay crisp.
float crisp(float v) { return std::floor(v) + 0.5f; }

void draw_axes(Canvas& canvas, const Rect& where, const Frame& frame, const LineChart& chart) {
  const Rect& area = frame.area;
  std::vector<double> xs = nice_ticks(frame.x.low, frame.x.high, 7);
  std::vector<double> ys = nice_ticks(frame.y.low, frame.y.high, 7);
  for (double y : ys) {
    float py = crisp(frame.at(frame.x.low, y).y);
    line(canvas, {area.left, py}, {area.right, py}, 1, kGrid);
    canvas.text({area.left - 12, py}, tick_text(y, ys[1] - ys[0]),
                {.size = kTickText, .color = kSoftInk, .along = Anchor::kEnd});
  }
  for (double x : xs) {
    float px = crisp(frame.at(x, frame.y.low).x);
    line(canvas, {px, area.top}, {px, area.bottom}, 1, kGrid);
    line(canvas, {px, area.bottom}, {px, area.bottom + 5}, 1, kFrame);
    canvas.text(
        {px, area.bottom + 12}, tick_text(x, xs[1] - xs[0]),
        {.size = kTickText, .color = kSoftInk, .along = Anchor::kMiddle, .across = Anchor::kStart});
  }
  line(canvas, {area.left, crisp(area.bottom)}, {area.right, crisp(area.bottom)}, 1.2f, kFrame);
  float middle_x = (area.left + area.right) / 2, middle_y = (area.top + area.bottom) / 2;
  canvas.text({middle_x, area.bottom + 44}, chart.x_label,
              {.size = kLabelText, .color = kInk, .along = Anchor::kMiddle});
  canvas.text({where.left + 26, middle_y}, chart.y_label,
              {.size = kLabelText, .color = kInk, .along = Anchor::kMiddle, .angle = 90});
}

void draw_title(Canvas& canvas, const Rect& where, float middle_x, const std::string& title) {
  float size = kTitleText, room = where.width() - 40;
  float wide = Canvas::text_width(title, size);
  if (wide > room) size *= room / wide;
  canvas.text({middle_x, where.top + 38}, title,
              {.size = size, .color = kInk, .along = Anchor::kMiddle, .bold = true});
}

// A colour for each line; faint ones share that of the next that is not.
std::vector<Color> colors_of(const std::vector<Series>& series) {
  std::vector<Color> colors;
  size_t used = 0;
  for (const Series& s : series) {
    colors.push_back(kPalette[used % std::size(kPalette)]);
    used += !s.faint;
  }
  return colors;
}

void draw_marker(Canvas& canvas, Point at, Color color) {
  canvas.stroke({&at, 1}, 9, color);
  canvas.stroke({&at, 1}, 4, kWhite);
}

void draw_series(Canvas& canvas, const Frame& frame, const Series& s, Color color) {
  float width = s.faint ? 1.2f : 2.6f, opacity = s.faint ? 0.35f : 1;
  std::vector<Point> run;
  for (size_t i = 0; i <= s.x.size(); ++i) {
    bool there = i < s.x.size() && drawable(s, i);
    if (there) {
      run.push_back(frame.at(s.x[i], s.y[i]));
      continue;
    }
    canvas.stroke(run, width, color, opacity);
    if (s.markers)
      for (const Point& p : run) draw_marker(canvas, p, color);
    run.clear();
  }
}

// How many points of the chart lie in `box`.
int points_inside(const Frame& frame, const std::vector<Series>& series, const Rect& box) {
  int inside = 0;
  for (const Series& s : series) {
    for (size_t i = 0; i < s.x.size(); ++i) {
      if (!drawable(s, i)) continue;
      Point p = frame.at(s.x[i], s.y[i]);
      inside += p.x > box.left && p.x < box.right && p.y > box.top && p.y < box.bottom;
    }
  }
  return inside;
}

// In the corner where it hides least, the upper right one first.
void draw_legend(Canvas& canvas, const Frame& frame, const std::vector<Series>& series) {
  constexpr float kRow = 28, kPad = 14, kSample = 30, kInset = 14;
  float wide = 0;
  int rows = 0;
  for (const Series& s : series) {
    wide = std::max(wide, Canvas::text_width(s.label, kLabelText));
    rows += !s.label.empty();
  }
  if (rows == 0) return;
  float width = wide + kSample + 3 * kPad, height = float(rows) * kRow + kPad;
  Rect best;
  int fewest = -1;
  for (int corner = 0; corner < 4; ++corner) {
    const Rect& a = frame.area;
    float left = corner & 1 ? a.left + kInset : a.right - width - kInset;
    float top = corner & 2 ? a.bottom - height - kInset : a.top + kInset;
    Rect box = {left, top, left + width, top + height};
    int hidden = points_inside(frame, series, box);
    if (fewest >= 0 && hidden >= fewest) continue;
    fewest = hidden;
    best = box;
  }
  canvas.fill({best.left - 1, best.top - 1, best.right + 1, best.bottom + 1}, kGrid);
  canvas.fill(best, kWhite, 0.94f);
  std::vector<Color> colors = colors_of(series);
  float y = best.top + kPad / 2 + kRow / 2;
  for (size_t i = 0; i < series.size(); ++i) {
    const Series& s = series[i];
    if (s.label.empty()) continue;
    float x = best.left + kPad;
    Color color = colors[i];
    line(canvas, {x, y}, {x + kSample, y}, s.faint ? 1.2f : 2.6f,
         s.faint ? mix(kWhite, color, 0.5f) : color);
    if (s.markers) draw_marker(canvas, {x + kSample / 2, y}, color);
    canvas.text({x + kSample + kPad, y}, s.label, {.size = kLabelText, .color = kInk});
    y += kRow;
  }
}

// White to deep blue through the colour-blind-safe middle tones; t in [0, 1].
Color heat(float t) {
  constexpr Color kStops[] = {{247, 250, 254}, {205, 224, 241}, {137, 190, 220},
                              {64, 144, 197},  {16, 91, 164},   {8, 48, 107}};
  constexpr int kLast = int(std::size(kStops)) - 1;
  float at = std::clamp(t, 0.0f, 1.0f) * float(kLast);
  int below = std::min(int(at), kLast - 1);
  return mix(kStops[below], kStops[below + 1], at - float(below));
}

// Shares of a row: the square root keeps rare confusions visible.
float shade(double share) { return float(std::sqrt(share)); }

struct Cells {
  float left, top, side;
  size_t n;
  Rect cell(size_t row, size_t column) const {
    float x = left + float(column) * side, y = top + float(row) * side;
    return {x, y, x + side, y + side};
  }
  float right() const { return left + float(n) * side; }
  float bottom() const { return top + float(n) * side; }
};

void draw_cells(Canvas& canvas, const Cells& cells, const ConfusionMatrix& m) {
  int64_t largest = *std::max_element(m.counts.begin(), m.counts.end());
  float size = 11.5f, wide = Canvas::text_width(std::to_string(largest), size);
  size = std::min(size, size * cells.side * 0.78f / wide);
  for (size_t i = 0; i < cells.n; ++i) {
    double total = 0;
    for (size_t j = 0; j < cells.n; ++j) total += double(m.counts[i * cells.n + j]);
    for (size_t j = 0; j < cells.n; ++j) {
      int64_t count = m.counts[i * cells.n + j];
      float t = total > 0 ? shade(double(count) / total) : 0;
      Rect r = cells.cell(i, j);
      canvas.fill({r.left + 1, r.top + 1, r.right, r.bottom}, heat(t));
      if (size < 6) continue;  // too many classes for numbers
      Color ink = t > 0.55f ? kWhite : count == 0 ? mix(kWhite, kSoftInk, 0.45f) : kInk;
      canvas.text({(r.left + r.right + 1) / 2, (r.top + r.bottom + 1) / 2}, std::to_string(count),
                  {.size = size, .color = ink, .along = Anchor::kMiddle, .bold = i == j});
    }
  }
}

void draw_class_names(Canvas& canvas, const Cells& cells, const std::vector<std::string>& names) {
  float size = std::min(kTickText, cells.side * 0.7f);
  for (size_t i = 0; i < cells.n; ++i) {
    Rect row = cells.cell(i, 0), column = cells.cell(cells.n - 1, i);
    canvas.text({row.left - 10, (row.top + row.bottom) / 2}, names[i],
                {.size = size, .color = kInk, .along = Anchor::kEnd});
    canvas.text({(column.left + column.right) / 2 + 4, column.bottom + 12}, names[i],
                {.size = size,
                 .color = kInk,
                 .along = Anchor::kEnd,
                 .across = Anchor::kMiddle,
                 .angle = 40});
  }
}

void draw_color_bar(Canvas& canvas, const Cells& cells) {
  constexpr float kGap = 22, kWide = 14;
  float left = cells.right() + kGap, height = cells.bottom() - cells.top;
  for (int y = 0; y < int(height); ++y) {
    float t = 1 - float(y) / height;
    canvas.fill({left, cells.top + float(y), left + kWide, cells.top + float(y) + 1}, heat(t));
  }
  for (int percent : {0, 2, 10, 25, 50, 100}) {
    float y = cells.bottom() - shade(percent / 100.0) * height;
    line(canvas, {left + kWide, y}, {left + kWide + 4, y}, 1, kFrame);
    canvas.text({left + kWide + 9, y}, str(percent, "%"), {.size = 9.5f, .color = kSoftInk});
  }
}

}  // namespace

std::vector<double> nice_ticks(double low, double high, int count) {
  double raw = (high - low) / count;
  double power = std::pow(10, std::floor(std::log10(raw)));
  double ratio = raw / power * (1 - 1e-9);
  double step = power * (ratio <= 1 ? 1 : ratio <= 2 ? 2 : ratio <= 5 ? 5 : 10);
  double first = std::ceil(low / step - 1e-9);
  std::vector<double> ticks;
  for (int i = 0; i <= 2 * count && (first + i) * step <= high + step * 1e-9; ++i)
    ticks.push_back((first + i) * step);
  return ticks;
}

std::vector<double> smooth(const std::vector<double>& values, double decay) {
  std::vector<double> out;
  double sum = 0, weight = 0;
  for (double v : values) {
    sum = decay * sum + (1 - decay) * v;
    weight = decay * weight + (1 - decay);
    out.push_back(sum / weight);
  }
  return out;
}

void draw(Canvas& canvas, const Rect& where, const LineChart& chart) {
  for (const Series& s : chart.series)
    FX_CHECK(s.x.size() == s.y.size(), kValue, "series '", s.label, "' has ", s.x.size(),
             " x values and ", s.y.size(), " y values");
  Frame frame = {{where.left + 100, where.top + 76, where.right - 40, where.bottom - 84},
                 range_of(chart.series, &Series::x),
                 with_margin(range_of(chart.series, &Series::y))};
  draw_title(canvas, where, (frame.area.left + frame.area.right) / 2, chart.title);
  draw_axes(canvas, where, frame, chart);
  std::vector<Color> colors = colors_of(chart.series);
  for (size_t i = 0; i < chart.series.size(); ++i)
    draw_series(canvas, frame, chart.series[i], colors[i]);
  draw_legend(canvas, frame, chart.series);
}

void draw(Canvas& canvas, const Rect& where, const ConfusionMatrix& m) {
  size_t n = m.classes.size();
  FX_CHECK(n > 0 && m.counts.size() == n * n, kValue, m.counts.size(), " counts for ", n,
           " classes");
  FX_CHECK(std::all_of(m.counts.begin(), m.counts.end(), [](int64_t c) { return c >= 0; }), kValue,
           "negative count in a confusion matrix");
  float names = 0;
  for (const std::string& name : m.classes)
    names = std::max(names, Canvas::text_width(name, kTickText));
  names = std::min(names, where.width() / 4);
  float left = where.left + 58 + names, top = where.top + 76;
  float below = names * 0.7f + 62;  // slanted names and the axis label
  float side = std::min(where.right - 96 - left, where.bottom - below - top) / float(n);
  side = side >= 4 ? std::floor(side) : side;
  Cells cells = {std::floor(left), std::floor(top), side, n};
  draw_title(canvas, where, (cells.left + cells.right()) / 2, m.title);
  canvas.fill({cells.left, cells.top, cells.right() + 1, cells.bottom() + 1}, kGrid);
  draw_cells(canvas, cells, m);
  draw_class_names(canvas, cells, m.classes);
  draw_color_bar(canvas, cells);
  TextStyle label = {.size = kLabelText, .color = kInk, .along = Anchor::kMiddle};
  canvas.text({(cells.left + cells.right()) / 2, cells.bottom() + below - 26}, "predicted class",
              label);
  label.angle = 90;
  canvas.text({where.left + 24, (cells.top + cells.bottom()) / 2}, "true class", label);
}

void write_training_picture(const std::string& path, const LineChart& chart,
                            const ConfusionMatrix& matrix) {
  Canvas canvas(1600, 800, kWhite);
  draw(canvas, {0, 0, 800, 800}, chart);
  draw(canvas, {800, 0, 1600, 800}, matrix);
  canvas.write_png(path);
}

}  // namespace fornax
