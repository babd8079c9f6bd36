// A progress bar for long loops.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace fornax {

// What a progress line says.
struct ProgressState {
  std::string label;  // "epoch 2/6"
  int64_t done = 0, total = 0;
  double seconds = 0;             // since the start
  double loss = 0, accuracy = 0;  // accuracy as a share of 1; NaN leaves either out
  std::string unit = "images";
  bool finished = false;  // the line tells the time taken instead of the time left
};

// One line of at most `columns` characters; `bar` draws a bar where 10 columns or more are free for
// it, of UTF-8 characters if `utf8`, else of ASCII.
std::string progress_line(const ProgressState& state, int columns, bool bar, bool utf8);

// Shows a line that is redrawn (at most ten times a second) on a terminal, and one plain line about
// every tenth of the way elsewhere. Not thread safe.
class ProgressBar {
 public:
  ProgressBar(std::string label, int64_t total, std::FILE* out = stdout);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  // Ends the line if finish() was not reached, so that a message after an error starts a new one.
  ~ProgressBar();

  // `done` of the total, counted in images.
  void update(int64_t done, double loss, double accuracy);
  // The last state, with the time taken; `loss` and `accuracy` stay.
  void finish();
  const ProgressState& state() const { return state_; }

 private:
  void show(double now);

  ProgressState state_;
  std::FILE* out_;
  bool terminal_, utf8_;
  bool line_open_ = false;
  double start_ = 0, last_shown_ = 0;
  int64_t tenths_shown_ = 0;
};

}  // namespace fornax
