#include "fornax/data/canvas.h"

#include <algorithm>
#include <cmath>

#include "fornax/base/atomic_file.h"
#include "fornax/base/compress.h"
#include "fornax/base/error.h"
#include "fornax/data/font.h"

namespace fornax {
namespace {

constexpr int kMaxSide = 16384;

float distance(Point p, Point a, Point b) {
  float dx = b.x - a.x, dy = b.y - a.y;
  float length2 = dx * dx + dy * dy;
  float t = length2 > 0 ? ((p.x - a.x) * dx + (p.y - a.y) * dy) / length2 : 0;
  t = std::clamp(t, 0.0f, 1.0f);
  return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

int digit36(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

// A glyph's strokes as straight pieces: each(a, b) in the font's units.
template <class Each>
void flatten(std::string_view strokes, Each&& each) {
  constexpr int kPieces = 8;  // of a curve
  bool started = false;
  Point last, control;
  bool curved = false;
  for (size_t i = 0; i < strokes.size();) {
    if (strokes[i] == ' ') {
      started = false;
      ++i;
      continue;
    }
    bool is_control = strokes[i] == '~';
    i += is_control;
    Point p = {float(digit36(strokes[i])), float(digit36(strokes[i + 1]))};
    i += 2;
    if (is_control) {
      control = p;
      curved = true;
      continue;
    }
    if (started && !curved) each(last, p);
    if (started && curved) {
      Point from = last;
      for (int k = 1; k <= kPieces; ++k) {
        float t = float(k) / kPieces, s = 1 - t;
        Point to = {s * s * last.x + 2 * s * t * control.x + t * t * p.x,
                    s * s * last.y + 2 * s * t * control.y + t * t * p.y};
        each(from, to);
        from = to;
      }
    }
    started = true;
    curved = false;
    last = p;
  }
}

// The bytes after the first of a UTF-8 sequence draw nothing: one box a character.
bool continues_character(char c) { return (uint8_t(c) & 0xc0) == 0x80; }

float units_wide(std::string_view text) {
  float total = 0;
  for (char c : text)
    if (!continues_character(c)) total += float(glyph_of(c).width) + kGlyphGap;
  return total == 0 ? 0 : total - kGlyphGap;
}

float start_of(Anchor anchor, float length) {
  return anchor == Anchor::kStart ? 0 : anchor == Anchor::kMiddle ? -length / 2 : -length;
}

void put_big_endian(Bytes& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(std::byte(value >> shift));
}

void put_chunk(Bytes& out, std::string_view type, ByteSpan content) {
  put_big_endian(out, uint32_t(content.size()));
  size_t from = out.size();
  ByteSpan name = as_bytes(type);
  out.insert(out.end(), name.begin(), name.end());
  out.insert(out.end(), content.begin(), content.end());
  put_big_endian(out, crc32(ByteSpan(out).subspan(from)));
}

}  // namespace

Canvas::Canvas(int width, int height, Color background) : width_(width), height_(height) {
  FX_CHECK(width >= 1 && width <= kMaxSide && height >= 1 && height <= kMaxSide, kValue,
           "picture of ", width, " x ", height, " pixels, each side must be 1 to ", kMaxSide);
  pixels_.assign(size_t(width) * size_t(height), background);
}

void Canvas::blend(int x, int y, Color color, float opacity) {
  Color& under = pixels_[size_t(y) * size_t(width_) + size_t(x)];
  auto mix = [opacity](uint8_t a, uint8_t b) {
    return uint8_t(std::lround(float(a) + opacity * (float(b) - float(a))));
  };
  under = {mix(under.r, color.r), mix(under.g, color.g), mix(under.b, color.b)};
}

void Canvas::fill(const Rect& rect, Color color, float opacity) {
  float left = std::max(rect.left, 0.0f), right = std::min(rect.right, float(width_));
  float top = std::max(rect.top, 0.0f), bottom = std::min(rect.bottom, float(height_));
  if (!(left < right && top < bottom)) return;
  auto overlap = [](int at, float from, float to) {
    return std::min(float(at + 1), to) - std::max(float(at), from);
  };
  for (int y = int(top); y < int(std::ceil(bottom)); ++y)
    for (int x = int(left); x < int(std::ceil(right)); ++x)
      blend(x, y, color, opacity * overlap(x, left, right) * overlap(y, top, bottom));
}

void Canvas::paint(std::vector<Segment> segments, float width, Color color, float opacity) {
  auto finite = [](Point p) { return std::isfinite(p.x) && std::isfinite(p.y); };
  std::erase_if(segments, [&](const Segment& s) { return !finite(s.a) || !finite(s.b); });
  float reach = width / 2 + 1;
  Rect box = {float(width_), float(height_), 0, 0};
  for (const Segment& s : segments) {
    box.left = std::min({box.left, s.a.x - reach, s.b.x - reach});
    box.right = std::max({box.right, s.a.x + reach, s.b.x + reach});
    box.top = std::min({box.top, s.a.y - reach, s.b.y - reach});
    box.bottom = std::max({box.bottom, s.a.y + reach, s.b.y + reach});
  }
  auto clip = [](float v, int most) { return int(std::clamp(v, 0.0f, float(most))); };
  int x0 = clip(std::floor(box.left), width_), x1 = clip(std::ceil(box.right), width_);
  int y0 = clip(std::floor(box.top), height_), y1 = clip(std::ceil(box.bottom), height_);
  if (x0 >= x1 || y0 >= y1) return;
  // The largest coverage of each pixel by any segment: joints are not painted twice.
  std::vector<float> coverage(size_t(x1 - x0) * size_t(y1 - y0), 0.0f);
  for (const Segment& s : segments) {
    int from_x = std::max(x0, clip(std::floor(std::min(s.a.x, s.b.x) - reach), width_));
    int to_x = std::min(x1, clip(std::ceil(std::max(s.a.x, s.b.x) + reach), width_));
    int from_y = std::max(y0, clip(std::floor(std::min(s.a.y, s.b.y) - reach), height_));
    int to_y = std::min(y1, clip(std::ceil(std::max(s.a.y, s.b.y) + reach), height_));
    for (int y = from_y; y < to_y; ++y) {
      for (int x = from_x; x < to_x; ++x) {
        float d = distance({float(x) + 0.5f, float(y) + 0.5f}, s.a, s.b);
        float& c = coverage[size_t(y - y0) * size_t(x1 - x0) + size_t(x - x0)];
        c = std::max(c, std::clamp(width / 2 + 0.5f - d, 0.0f, 1.0f));
      }
    }
  }
  for (int y = y0; y < y1; ++y) {
    for (int x = x0; x < x1; ++x) {
      float c = coverage[size_t(y - y0) * size_t(x1 - x0) + size_t(x - x0)];
      if (c > 0) blend(x, y, color, c * opacity);
    }
  }
}

void Canvas::stroke(std::span<const Point> points, float width, Color color, float opacity) {
  std::vector<Segment> segments;
  for (size_t i = 0; i + 1 < points.size(); ++i) segments.push_back({points[i], points[i + 1]});
  if (points.size() == 1) segments.push_back({points[0], points[0]});
  paint(std::move(segments), width, color, opacity);
}

float Canvas::text_width(std::string_view text, float size) {
  return units_wide(text) * size / kCapHeight;
}

void Canvas::text(Point at, std::string_view text, const TextStyle& style) {
  float scale = style.size / kCapHeight;
  float x = start_of(style.along, units_wide(text)), y = start_of(style.across, kCapHeight);
  float radians = style.angle * 3.14159265f / 180, c = std::cos(radians), s = std::sin(radians);
  auto place = [&](Point p) {
    float u = (x + p.x) * scale, v = (y + p.y) * scale;
    return Point{at.x + c * u + s * v, at.y - s * u + c * v};
  };
  std::vector<Segment> segments;
  for (char letter : text) {
    if (continues_character(letter)) continue;
    const Glyph& glyph = glyph_of(letter);
    flatten(glyph.strokes, [&](Point a, Point b) { segments.push_back({place(a), place(b)}); });
    x += float(glyph.width) + kGlyphGap;
  }
  float width = std::max(1.1f, style.size * (style.bold ? 0.165f : 0.115f));
  paint(std::move(segments), width, style.color, 1);
}

Bytes Canvas::png() const {
  Bytes rows;
  rows.reserve(size_t(height_) * (size_t(width_) * 3 + 1));
  for (int y = 0; y < height_; ++y) {
    rows.push_back(std::byte{0});  // no filter: flat areas repeat as they are
    for (int x = 0; x < width_; ++x) {
      Color p = pixel(x, y);
      for (uint8_t part : {p.r, p.g, p.b}) rows.push_back(std::byte(part));
    }
  }
  Bytes header;
  put_big_endian(header, uint32_t(width_));
  put_big_endian(header, uint32_t(height_));
  constexpr uint8_t kRest[] = {8, 2, 0, 0, 0};  // bits, RGB, deflate, filters, not interlaced
  for (uint8_t b : kRest) header.push_back(std::byte(b));
  ByteSpan signature = as_bytes("\x89PNG\r\n\x1a\n");
  Bytes out(signature.begin(), signature.end());
  put_chunk(out, "IHDR", header);
  put_chunk(out, "IDAT", deflate(rows, Wrap::kZlib, 9));
  put_chunk(out, "IEND", {});
  return out;
}

void Canvas::write_png(const std::string& path) const {
  AtomicFile file(path);
  file.write(png());
  file.commit();
}

}  // namespace fornax
