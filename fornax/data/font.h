// A stroke font for pictures: each letter is a few lines and curves, drawn at any size.
#pragma once

#include <string_view>

namespace fornax {

// Coordinates are units of which capitals are kCapHeight high: y grows downwards, 0 is the top of
// the capitals, kCapHeight the baseline; descenders reach 18.
//
// `strokes` holds lines separated by spaces. A point is two digits to base 36, x and y; '~' before
// a point makes it the control point of a quadratic curve between its neighbours.
struct Glyph {
  int width;
  std::string_view strokes;
};

inline constexpr float kCapHeight = 14;
inline constexpr float kGlyphGap = 3.2f;  // between two letters

// A box for what is no printable ASCII.
const Glyph& glyph_of(char c);

}  // namespace fornax
