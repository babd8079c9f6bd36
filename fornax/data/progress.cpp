#include "fornax/data/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "fornax/base/error.h"

namespace fornax {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr int kPlainColumns = 200;
constexpr int kShortestBar = 10, kLongestBar = 40;

double now_seconds() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// The first of the variables that decide the character set says UTF-8.
bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (!value || !*value) continue;
    std::string_view v = value;
    return v.find("UTF-8") != v.npos || v.find("utf8") != v.npos || v.find("UTF8") != v.npos;
  }
  return false;
}

int columns_of(std::FILE* out) {
  winsize size = {};
  bool known = ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

// "1:05", or "1:01:05" from an hour on.
std::string duration(double seconds) {
  auto s = int64_t(std::min(std::max(seconds, 0.0), 3.6e8) + 0.5);
  char text[32];
  if (s < 3600) {
    std::snprintf(text, sizeof text, "%d:%02d", int(s / 60), int(s % 60));
  } else {
    std::snprintf(text, sizeof text, "%d:%02d:%02d", int(s / 3600), int(s / 60 % 60), int(s % 60));
  }
  return text;
}

// 12345 as "12,345".
std::string grouped(int64_t n) {
  std::string digits = std::to_string(n);
  for (int at = int(digits.size()) - 3; at > 0; at -= 3) digits.insert(size_t(at), 1, ',');
  return digits;
}

double share_of(const ProgressState& s) {
  return s.total > 0 ? std::clamp(double(s.done) / double(s.total), 0.0, 1.0) : 1;
}

std::string numbers(const ProgressState& s) {
  std::string text = format("%3.0f %%", std::floor(share_of(s) * 100));
  if (!std::isnan(s.loss)) text += format("  loss %.4f", s.loss);
  if (!std::isnan(s.accuracy)) text += format("  accuracy %.2f %%", s.accuracy * 100);
  double rate = s.seconds > 0 ? double(s.done) / s.seconds : 0;
  if (rate > 0) text += str("  ", grouped(std::llround(std::min(rate, 1e15))), " ", s.unit, "/s");
  if (s.finished) return text + "  in " + duration(s.seconds);
  if (rate > 0) text += "  " + duration(double(s.total - s.done) / rate) + " left";
  return text;
}

std::string bar_of(double share, int width, bool utf8) {
  int full = int(share * width + 1e-9);
  std::string text;
  for (int i = 0; i < width; ++i) {
    bool tip = i == full;
    if (utf8) {
      text += i < full ? "━" : tip ? "╸" : " ";
    } else {
      text += i < full ? "=" : tip ? ">" : " ";
    }
  }
  return "[" + text + "]";
}

}  // namespace

std::string progress_line(const ProgressState& state, int columns, bool bar, bool utf8) {
  std::string label = state.label, rest = numbers(state);
  int room = columns - int(label.size() + rest.size()) - 4;  // brackets and spaces between
  std::string line = label;
  if (bar && room >= kShortestBar)
    line += " " + bar_of(share_of(state), std::min(room, kLongestBar), utf8);
  line += " " + rest;
  bool has_bar = bar && room >= kShortestBar;
  if (!has_bar && int(line.size()) > columns) line.resize(size_t(std::max(columns, 0)));
  return line;
}

ProgressBar::ProgressBar(std::string label, int64_t total, std::FILE* out)
    : out_(out), terminal_(::isatty(::fileno(out)) == 1), utf8_(locale_is_utf8()) {
  state_.label = std::move(label);
  state_.total = total;
  state_.loss = state_.accuracy = NAN;
  start_ = now_seconds();
}

ProgressBar::~ProgressBar() {
  if (!line_open_) return;
  std::fputc('\n', out_);
  std::fflush(out_);
}

void ProgressBar::update(int64_t done, double loss, double accuracy) {
  double now = now_seconds();
  state_.done = done;
  state_.loss = loss;
  state_.accuracy = accuracy;
  state_.seconds = now - start_;
  if (terminal_) {
    if (now - last_shown_ >= kRedrawSeconds) show(now);
    return;
  }
  // The end is left to finish().
  auto tenths = int64_t(share_of(state_) * 10 + 1e-9);
  if (tenths <= tenths_shown_ || tenths >= 10) return;
  tenths_shown_ = tenths;
  show(now);
}

void ProgressBar::finish() {
  if (state_.finished) return;
  double now = now_seconds();
  state_.seconds = now - start_;
  state_.finished = true;
  show(now);
  if (terminal_) std::fputc('\n', out_);
  std::fflush(out_);
  line_open_ = false;
}

void ProgressBar::show(double now) {
  last_shown_ = now;
  if (terminal_) {
    // One column stays free: some terminals wrap at the last.
    std::string line = progress_line(state_, columns_of(out_) - 1, true, utf8_);
    std::fprintf(out_, "\r%s\x1b[K", line.c_str());
    line_open_ = true;
  } else {
    std::fprintf(out_, "%s\n", progress_line(state_, kPlainColumns, false, false).c_str());
  }
  std::fflush(out_);
}

}  // namespace fornax
