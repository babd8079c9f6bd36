// A picture in memory that anti-aliased lines and text are drawn on, and PNG output.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fornax/base/file.h"

namespace fornax {

struct Color {
  uint8_t r = 0, g = 0, b = 0;
  friend bool operator==(Color, Color) = default;
};

// Pixels, from the upper left corner; the centre of the first pixel is (0.5, 0.5).
struct Point {
  float x = 0, y = 0;
};
struct Rect {
  float left = 0, top = 0, right = 0, bottom = 0;
  float width() const { return right - left; }
  float height() const { return bottom - top; }
};

// Which part of a text lies at the point given.
enum class Anchor : uint8_t { kStart, kMiddle, kEnd };

struct TextStyle {
  float size = 12;  // height of capital letters, in pixels
  Color color = {};
  Anchor along = Anchor::kStart;    // left, middle or right
  Anchor across = Anchor::kMiddle;  // top of the capitals, their middle, or the baseline
  float angle = 0;                  // degrees, counter-clockwise around the point
  bool bold = false;
};

// Not thread safe. Whatever lies outside the picture is cut off.
class Canvas {
 public:
  // Throws Error(kValue) unless both sides are between 1 and 16384.
  Canvas(int width, int height, Color background);

  int width() const { return width_; }
  int height() const { return height_; }
  Color pixel(int x, int y) const { return pixels_[size_t(y) * size_t(width_) + size_t(x)]; }

  // Edges between pixels are blended.
  void fill(const Rect& rect, Color color, float opacity = 1);
  // A line through all points with round ends and joints.
  void stroke(std::span<const Point> points, float width, Color color, float opacity = 1);
  // One line of text in the built-in font: ASCII, a box for anything else.
  void text(Point at, std::string_view text, const TextStyle& style);
  static float text_width(std::string_view text, float size);

  // The picture as a PNG file: 8-bit RGB.
  Bytes png() const;
  // The same, written atomically. Throws Error(kIo).
  void write_png(const std::string& path) const;

 private:
  struct Segment {
    Point a, b;
  };
  void paint(std::vector<Segment> segments, float width, Color color, float opacity);
  void blend(int x, int y, Color color, float opacity);

  int width_, height_;
  std::vector<Color> pixels_;
};

}  // namespace fornax
