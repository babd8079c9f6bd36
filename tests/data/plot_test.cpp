#include "fornax/data/plot.h"

#include <cmath>

#include "fornax/base/compress.h"
#include "tests/support/files.h"

namespace fornax {
namespace {

using namespace testing;

constexpr Color kWhite = {255, 255, 255}, kRed = {200, 0, 0};

uint32_t big_endian(const Bytes& bytes, size_t at) {
  uint32_t v = 0;
  for (size_t i = 0; i < 4; ++i) v = v << 8 | uint32_t(bytes[at + i]);
  return v;
}

int painted(const Canvas& canvas, const Rect& r) {
  int n = 0;
  for (int y = int(r.top); y < int(r.bottom); ++y)
    for (int x = int(r.left); x < int(r.right); ++x) n += !(canvas.pixel(x, y) == kWhite);
  return n;
}

TEST(Canvas, PngHasTheChunksOfTheStandard) {
  Canvas canvas(3, 2, kWhite);
  canvas.fill({1, 0, 2, 1}, kRed);
  Bytes png = canvas.png();
  ASSERT_EQ(as_text(png).substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(as_text(png).substr(8, 8), std::string_view("\0\0\0\15IHDR", 8));
  EXPECT_EQ(big_endian(png, 16), 3u);
  EXPECT_EQ(big_endian(png, 20), 2u);
  EXPECT_EQ(as_text(png).substr(24, 5), std::string_view("\10\2\0\0\0", 5));
  EXPECT_EQ(big_endian(png, 29), crc32(ByteSpan(png).subspan(12, 17)));
  size_t length = big_endian(png, 33);
  EXPECT_EQ(as_text(png).substr(37, 4), "IDAT");
  Bytes rows = inflate(ByteSpan(png).subspan(41, length), Wrap::kZlib, 1000, "png");
  EXPECT_EQ(rows, unhex("00ffffffc80000ffffff"
                        "00ffffffffffffffffff"));
  // The empty end chunk has this checksum in every file.
  EXPECT_EQ(as_text(png).substr(41 + length + 4),
            std::string_view("\0\0\0\0IEND\xae\x42\x60\x82", 12));
}

TEST(Canvas, BlendsPartsOfPixels) {
  Canvas canvas(4, 4, kWhite);
  canvas.fill({0.5f, 1, 2, 2}, {0, 0, 0});
  EXPECT_EQ(canvas.pixel(0, 1), (Color{128, 128, 128}));
  EXPECT_EQ(canvas.pixel(1, 1), (Color{0, 0, 0}));
  EXPECT_EQ(canvas.pixel(2, 1), kWhite);
  canvas.fill({0, 3, 1, 4}, {0, 0, 0}, 0.2f);
  EXPECT_EQ(canvas.pixel(0, 3), (Color{204, 204, 204}));
}

TEST(Canvas, StrokesAreAsWideAsAskedAndCutAtTheBorder) {
  Canvas canvas(20, 20, kWhite);
  Point line[] = {{-5, 10}, {30, 10}};
  canvas.stroke(line, 4, {0, 0, 0});
  for (int x = 0; x < 20; ++x) {
    int ink = 0;
    for (int y = 0; y < 20; ++y) ink += 255 - canvas.pixel(x, y).r;
    EXPECT_EQ(ink, 4 * 255) << x;
  }
  Point bad[] = {{NAN, 0}, {5, INFINITY}, {1e30f, -1e30f}};
  canvas.stroke(bad, 2, kRed);
  expect_error(ErrorKind::kValue, "0 x 5 pixels", [] { Canvas(0, 5, kWhite); });
  expect_error(ErrorKind::kValue, "1 to 16384", [] { Canvas(5, 20000, kWhite); });
}

TEST(Canvas, JointsAreNotPaintedTwice) {
  Canvas canvas(20, 20, kWhite);
  Point corner[] = {{2, 10}, {10, 10}, {10, 2}};
  canvas.stroke(corner, 4, {0, 0, 0}, 0.5f);
  EXPECT_EQ(canvas.pixel(9, 9), (Color{128, 128, 128}));
}

TEST(Canvas, TextStandsWhereItIsAnchored) {
  float wide = Canvas::text_width("Hello", 14);
  EXPECT_GT(wide, 30);
  EXPECT_LT(wide, 60);
  EXPECT_EQ(Canvas::text_width("", 14), 0);
  EXPECT_EQ(Canvas::text_width("\xc3\xa9", 14), Canvas::text_width("\xe2\x82\xac", 14));
  for (Anchor along : {Anchor::kStart, Anchor::kMiddle, Anchor::kEnd}) {
    Canvas canvas(200, 40, kWhite);
    canvas.text({100, 20}, "Hello", {.size = 14, .along = along});
    float left = along == Anchor::kStart    ? 100
                 : along == Anchor::kMiddle ? 100 - wide / 2
                                            : 100 - wide;
    EXPECT_EQ(painted(canvas, {left - 2, 11, left + wide + 2, 29}),
              painted(canvas, {0, 0, 200, 40}));
    EXPECT_GT(painted(canvas, {left - 2, 11, left + 8, 29}), 15);
    EXPECT_GT(painted(canvas, {left + wide - 8, 11, left + wide + 2, 29}), 15);
  }
  Canvas upright(40, 200, kWhite);
  upright.text({20, 100}, "Hello", {.size = 14, .along = Anchor::kStart, .angle = 90});
  EXPECT_GT(painted(upright, {10, 100 - wide, 30, 100}), 100);
  EXPECT_EQ(painted(upright, {0, 103, 40, 200}), 0);
}

TEST(Canvas, EveryLetterDiffers) {
  std::vector<Bytes> pictures;
  for (char c = '!'; c <= '~'; ++c) {
    Canvas canvas(24, 30, kWhite);
    canvas.text({4, 4}, std::string_view(&c, 1), {.size = 14, .across = Anchor::kStart});
    EXPECT_GT(painted(canvas, {0, 0, 24, 30}), 3) << c;
    EXPECT_EQ(painted(canvas, {0, 0, 24, 2}) + painted(canvas, {0, 26, 24, 30}), 0) << c;
    pictures.push_back(canvas.png());
  }
  for (size_t i = 0; i < pictures.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      EXPECT_FALSE(pictures[i] == pictures[j]) << char('!' + i) << char('!' + j);
}

TEST(Plot, NiceTicks) {
  EXPECT_EQ(nice_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(nice_ticks(0.1, 2.6, 7), (std::vector<double>{0.5, 1, 1.5, 2, 2.5}));
  EXPECT_EQ(nice_ticks(-3, 3, 6), (std::vector<double>{-3, -2, -1, 0, 1, 2, 3}));
  EXPECT_EQ(nice_ticks(0, 70000, 7).size(), 8u);
  for (double scale : {1e-200, 1e-3, 1.0, 37.0, 1e200}) {
    size_t n = nice_ticks(0.1 * scale, 1.7 * scale, 7).size();
    EXPECT_GE(n, 2u);
    EXPECT_LE(n, 10u);
  }
}

TEST(Plot, SmoothCorrectsForTheStart) {
  std::vector<double> s = smooth({4, 4, 0}, 0.5);
  EXPECT_DOUBLE_EQ(s[0], 4);
  EXPECT_DOUBLE_EQ(s[1], 4);
  EXPECT_DOUBLE_EQ(s[2], 1.5 / 0.875);
}

TEST(Plot, LinesLieWhereTheirValuesAre) {
  Canvas canvas(800, 800, kWhite);
  draw(canvas, {0, 0, 800, 800}, LineChart{"", "", "", {{"", {0, 1, 2}, {-5, -5, -5}}}});
  // A constant lies in the middle between the axis at 716 and the top at 76.
  Color blue = canvas.pixel(425, 396);
  EXPECT_EQ(blue, (Color{31, 104, 188}));
  EXPECT_EQ(canvas.pixel(425, 300), kWhite);
}

TEST(Plot, SurvivesOddData) {
  Canvas canvas(800, 800, kWhite);
  Rect all = {0, 0, 800, 800};
  double next = std::nextafter(1.0, 2.0);
  for (const std::vector<double>& y : std::vector<std::vector<double>>{{},
                                                                       {NAN},
                                                                       {1},
                                                                       {0, 0},
                                                                       {1e308, -1e308},
                                                                       {1, NAN, 2},
                                                                       {INFINITY, 1},
                                                                       {1, next},
                                                                       {-1e-300, 1e-300},
                                                                       {1e299, -1e299}}) {
    std::vector<double> x(y.size());
    for (size_t i = 0; i < x.size(); ++i) x[i] = double(i);
    draw(canvas, all, LineChart{"t", "x", "y", {{"label", x, y, true}, {"other", y, x}}});
  }
  draw(canvas, all, LineChart{});
  expect_error(ErrorKind::kValue, "1 x values and 0 y values", [&] {
    draw(canvas, all, LineChart{"", "", "", {{"a", {1}, {}}}});
  });
  draw(canvas, {0, 0, 50, 50}, LineChart{"t", "x", "y", {{"label", {0, 1}, {0, 1}}}});
}

TEST(Plot, ConfusionMatrixColoursCellsByShare) {
  Canvas canvas(800, 800, kWhite);
  draw(canvas, {0, 0, 800, 800}, ConfusionMatrix{"", {"a", "b"}, {10, 0, 0, 10}});
  // The upper left corners of the cells of the first row.
  EXPECT_EQ(canvas.pixel(80, 90), (Color{8, 48, 107}));
  EXPECT_EQ(canvas.pixel(690, 90), (Color{247, 250, 254}));
  Rect all = {0, 0, 800, 800};
  expect_error(ErrorKind::kValue, "3 counts for 2 classes", [&] {
    draw(canvas, all, ConfusionMatrix{"", {"a", "b"}, {1, 2, 3}});
  });
  expect_error(ErrorKind::kValue, "negative", [&] {
    draw(canvas, all, ConfusionMatrix{"", {"a"}, {-1}});
  });
  std::vector<std::string> many(200, "a class with a rather long name");
  draw(canvas, all, ConfusionMatrix{"", many, std::vector<int64_t>(40000, INT64_MAX)});
}

TEST(Plot, WritesThePicture) {
  TempDir dir;
  write_training_picture(dir.file("p.png"), LineChart{"loss", "step", "loss", {}},
                         ConfusionMatrix{"m", {"a"}, {1}});
  Bytes png = read_file(dir.file("p.png"), 1 << 20);
  EXPECT_EQ(big_endian(png, 16), 1600u);
  EXPECT_EQ(big_endian(png, 20), 800u);
}

}  // namespace
}  // namespace fornax
