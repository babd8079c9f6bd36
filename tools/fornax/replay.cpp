#include "tools/fornax/replay.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "fornax/base/error.h"
#include "tools/fornax/check_record.h"
#include "tools/fornax/record.h"

namespace fornax::replay {
namespace {

struct Counts {
  int passed = 0, failed = 0, skipped = 0;
  void add(Outcome o) {
    passed += o == Outcome::kPassed;
    failed += o == Outcome::kFailed;
    skipped += o == Outcome::kSkipped;
  }
};

struct Tally {
  std::map<std::string, Counts> by_operator;
  Counts records, forward, vjp, jvp;
};

std::map<std::string, std::string> read_exceptions(const std::string& path) {
  std::map<std::string, std::string> exceptions;
  if (path.empty()) return exceptions;
  std::ifstream in(path);
  FX_CHECK(in.good(), kIo, "replay: can't read the exceptions file ", path);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    size_t space = line.find(' ');
    exceptions[line.substr(0, space)] = space == line.npos ? "" : line.substr(space + 1);
  }
  return exceptions;
}

// Everything a child has to say goes through one pipe, a line a message.
void send(int pipe, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    ssize_t n = write(pipe, text.data() + done, text.size() - done);
    if (n <= 0) _exit(3);
    done += size_t(n);
  }
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

// Runs in the child: checks records from number `first` of the file on.
// Messages: "S number operator case" before a record, "R forward vjp jvp reason" after it.
void check_file(const std::string& path, int first,
                const std::map<std::string, std::string>& exceptions, int pipe) {
  RecordReader reader(path);
  for (int number = 0;; ++number) {
    std::optional<Record> record;
    std::string broken;
    try {
      record = reader.next();
      if (!record) return;
    } catch (const Error& e) {
      broken = e.message();
    }
    if (number < first) continue;
    if (!broken.empty()) {
      send(pipe, "S " + std::to_string(number) + " unreadable " + path + "\nR f - - " +
                     one_line(broken) + "\n");
      continue;
    }
    send(pipe, "S " + std::to_string(number) + " " + record->op + " " + record->case_name + "\n");
    Verdict v;
    if (auto it = exceptions.find(record->case_name); it != exceptions.end()) {
      v.forward = Outcome::kSkipped;
      v.reason = "exception: " + it->second;
    } else {
      v = check_record(*record);
    }
    std::string reply = "R ";
    for (Outcome o : {v.forward, v.vjp, v.jvp}) reply += std::string(1, char(o)) + " ";
    send(pipe, reply + one_line(v.reason) + "\n");
  }
}

class FileRun {
 public:
  FileRun(const std::string& path, const ReplayOptions& options,
          const std::map<std::string, std::string>& exceptions, Tally& tally)
      : path_(path), options_(options), exceptions_(exceptions), tally_(tally) {}

  // A child that dies or hangs costs its record; the next child goes on behind it.
  void run() {
    while (!run_child()) {
    }
  }

 private:
  // True when the file is finished.
  bool run_child() {
    int ends[2];
    FX_CHECK(pipe(ends) == 0, kIo, "replay: pipe: ", std::strerror(errno));
    std::fflush(stdout);
    pid_t child = fork();
    FX_CHECK(child >= 0, kIo, "replay: fork: ", std::strerror(errno));
    if (child == 0) {
      close(ends[0]);
      try {
        check_file(path_, next_, exceptions_, ends[1]);
      } catch (const std::exception& e) {
        send(ends[1], std::string("E ") + one_line(e.what()) + "\n");
      }
      _exit(0);
    }
    close(ends[1]);
    bool hung = !read_messages(ends[0]);
    if (hung) kill(child, SIGKILL);
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (open_) {
      std::string why = hung                  ? str("hung for ", options_.seconds_per_record, " s")
                        : WIFSIGNALED(status) ? str("crashed: ", strsignal(WTERMSIG(status)))
                                              : "ended without an answer";
      finish_record({Outcome::kFailed, Outcome::kAbsent, Outcome::kAbsent, why});
      return false;
    }
    return true;
  }

  bool read_messages(int pipe) {
    std::string buffer;
    char chunk[65536];
    for (;;) {
      pollfd p{pipe, POLLIN, 0};
      int ready = poll(&p, 1, int(options_.seconds_per_record * 1000));
      if (ready == 0) return false;
      ssize_t n = read(pipe, chunk, sizeof chunk);
      if (n <= 0) return true;
      buffer.append(chunk, size_t(n));
      size_t from = 0;
      for (size_t end; (end = buffer.find('\n', from)) != buffer.npos; from = end + 1)
        message(buffer.substr(from, end - from));
      buffer.erase(0, from);
    }
  }

  void message(const std::string& line) {
    std::istringstream in(line);
    char kind = 0;
    in >> kind;
    if (kind == 'S') {
      int number = 0;
      in >> number >> operator_;
      std::getline(in >> std::ws, case_);
      next_ = number + 1;
      open_ = true;
    } else if (kind == 'R') {
      Verdict v;
      char f, g, j;
      in >> f >> g >> j;
      v.forward = Outcome(f), v.vjp = Outcome(g), v.jvp = Outcome(j);
      std::getline(in >> std::ws, v.reason);
      finish_record(v);
    } else if (kind == 'E') {
      std::printf("%s\n", line.substr(2).c_str());
      ++tally_.records.failed;
    }
  }

  void finish_record(const Verdict& v) {
    open_ = false;
    Outcome whole = v.whole();
    tally_.by_operator[operator_].add(whole);
    tally_.records.add(whole);
    tally_.forward.add(v.forward);
    tally_.vjp.add(v.vjp);
    tally_.jvp.add(v.jvp);
    if (options_.verbose && whole != Outcome::kPassed)
      std::printf("%s %s  %s: %s\n", whole == Outcome::kFailed ? "FAIL" : "skip", operator_.c_str(),
                  case_.c_str(), v.reason.c_str());
  }

  const std::string& path_;
  const ReplayOptions& options_;
  const std::map<std::string, std::string>& exceptions_;
  Tally& tally_;
  int next_ = 0;
  bool open_ = false;
  std::string operator_, case_;
};

void print_part(const char* name, const Counts& c) {
  std::printf("%-8s %6d passed %6d failed %6d skipped\n", name, c.passed, c.failed, c.skipped);
}

}  // namespace

int run_replay(const ReplayOptions& options) {
  auto exceptions = read_exceptions(options.exceptions);
  Tally tally;
  for (const std::string& path : options.files) FileRun(path, options, exceptions, tally).run();
  std::printf("%-52s %7s %7s %7s\n", "operator", "passed", "failed", "skipped");
  for (const auto& [name, c] : tally.by_operator)
    std::printf("%-52s %7d %7d %7d\n", name.c_str(), c.passed, c.failed, c.skipped);
  print_part("forward", tally.forward);
  print_part("vjp", tally.vjp);
  print_part("jvp", tally.jvp);
  std::printf("%d passed, %d failed, %d skipped\n", tally.records.passed, tally.records.failed,
              tally.records.skipped);
  return tally.records.failed ? 1 : 0;
}

}  // namespace fornax::replay
