#include "fornax/data/progress.h"

#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "tests/support/files.h"

namespace fornax {
namespace {

using namespace testing;

TEST(Progress, Line) {
  ProgressState s = {"epoch 2/6", 30000, 60000, 2.5, 0.31234, 0.8891};
  EXPECT_EQ(progress_line(s, 200, false, false),
            "epoch 2/6  50 %  loss 0.3123  accuracy 88.91 %  12,000 images/s  0:03 left");
  EXPECT_EQ(progress_line(s, 90, true, false),
            "epoch 2/6 [======>      ]  50 %  loss 0.3123  accuracy 88.91 %  12,000 images/s  0:03 "
            "left");
  EXPECT_EQ(progress_line(s, 20, true, false), "epoch 2/6  50 %  los");
  s.finished = true;
  s.done = 60000;
  s.seconds = 3725.2;
  s.loss = NAN;
  EXPECT_EQ(progress_line(s, 200, false, false),
            "epoch 2/6 100 %  accuracy 88.91 %  16 images/s  in 1:02:05");
}

TEST(Progress, BarFillsUpAndNeverPassesTheColumns) {
  for (int columns = 0; columns < 130; ++columns) {
    for (int64_t done : {0, 1, 999, 1000, 2000}) {
      ProgressState s = {"e", done, 1000, 1, 0.5, 0.5};
      EXPECT_LE(progress_line(s, columns, true, false).size(), size_t(columns));
    }
  }
  ProgressState s = {"e", 1000, 1000, 1, 0.5, 0.5};
  std::string line = progress_line(s, 200, true, false);
  EXPECT_NE(line.find("[" + std::string(40, '=') + "]"), line.npos) << line;
}

TEST(Progress, NothingToDo) {
  ProgressState s = {"e", 0, 0, 0, NAN, NAN};
  EXPECT_EQ(progress_line(s, 80, false, false), "e 100 %");
}

void run(std::FILE* out, bool finish) {
  {
    ProgressBar bar("epoch 1/1", 1000, out);
    for (int i = 1; i <= 1000; ++i) bar.update(i, 1.0 / i, 0.5);
    if (finish) bar.finish();
  }
  std::fflush(out);
}

TEST(Progress, PlainLinesEveryTenth) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  run(file, true);
  std::rewind(file);
  std::vector<std::string> lines;
  char line[300];
  while (std::fgets(line, sizeof line, file)) lines.push_back(line);
  std::fclose(file);
  ASSERT_EQ(lines.size(), 10u);
  for (size_t i = 0; i < 10; ++i) {
    std::string percent = std::to_string((i + 1) * 10) + " %  loss ";
    EXPECT_NE(lines[i].find(percent), std::string::npos) << lines[i];
    EXPECT_EQ(lines[i].find('\r'), std::string::npos);
  }
  EXPECT_NE(lines[9].find("  in 0:00\n"), std::string::npos);
}

// What a terminal of 70 columns receives, to the end: it comes in pieces.
std::string run_on_terminal(bool finish) {
  int main_end = -1, terminal_end = -1;
  winsize size = {24, 70, 0, 0};
  if (::openpty(&main_end, &terminal_end, nullptr, nullptr, &size) != 0) return "no terminal";
  std::FILE* out = ::fdopen(terminal_end, "w");
  run(out, finish);
  std::fclose(out);
  std::string seen;
  char text[4096];
  for (ssize_t got; (got = ::read(main_end, text, sizeof text)) > 0;)
    seen.append(text, size_t(got));
  ::close(main_end);
  return seen;
}

TEST(Progress, OneRedrawnLineOnATerminal) {
  for (bool finish : {true, false}) {
    std::string seen = run_on_terminal(finish);
    EXPECT_TRUE(seen.starts_with("\r")) << seen;
    EXPECT_TRUE(seen.ends_with("\n")) << seen;
    EXPECT_EQ(std::count(seen.begin(), seen.end(), '\n'), 1);
    // Of 1000 updates only those are drawn that come a tenth of a second after the last.
    EXPECT_LT(std::count(seen.begin(), seen.end(), '\x1b'), 100);
    if (finish) {
      EXPECT_NE(seen.find("100 %"), seen.npos) << seen;
    }
  }
}

}  // namespace
}  // namespace fornax
