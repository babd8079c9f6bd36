// Charts: lines with axes and legend, and confusion matrices.
#pragma once

#include <string>
#include <vector>

#include "fornax/data/canvas.h"

namespace fornax {

// Points (x[i], y[i]); values that are not finite (or beyond 1e300) leave a gap.
struct Series {
  std::string label;
  std::vector<double> x, y;
  bool markers = false;  // a dot on every point
  bool faint = false;    // thin, pale, in the next series' colour: raw values behind a smooth line
};

struct LineChart {
  std::string title, x_label, y_label;
  std::vector<Series> series;
};

// counts[i * classes + j]: how many of class i were taken for class j.
struct ConfusionMatrix {
  std::string title;
  std::vector<std::string> classes;
  std::vector<int64_t> counts;
};

// Draws into `where`, about 800 x 800 pixels or larger. Throws Error(kValue) where x and y differ
// in length, or counts is not classes x classes.
void draw(Canvas& canvas, const Rect& where, const LineChart& chart);
void draw(Canvas& canvas, const Rect& where, const ConfusionMatrix& matrix);

// Both side by side in one PNG of 1600 x 800 pixels.
void write_training_picture(const std::string& path, const LineChart& chart,
                            const ConfusionMatrix& matrix);

// Values for about `count` ticks within [low, high]: multiples of 1, 2 or 5 times a power of ten.
std::vector<double> nice_ticks(double low, double high, int count);
// Exponential moving average, corrected for its start: what the smooth line over noisy losses
// shows.
std::vector<double> smooth(const std::vector<double>& values, double decay);

}  // namespace fornax
