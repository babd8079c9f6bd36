// fornax-bench: the baseline's workloads, one JSON object a line.
#include <fnmatch.h>
#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "bench/startup.h"
#include "fornax/base/threads.h"

namespace {

using namespace fornax::bench;

struct Arguments {
  std::string workloads = "*", skip, modes = "eager", json;
  RunOptions run;
  bool passive = false, resume = false, list = false;
};

std::vector<std::string> split_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, ',');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

bool matches(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& p) {
    return fnmatch(p.c_str(), name.c_str(), 0) == 0;
  });
}

Json read_records(const std::string& file) {
  std::ifstream in(file);
  return in ? Json::parse(in) : Json::array();
}

// Prints the record, and appends it to the file that holds the list.
void emit(const Arguments& arguments, const Json& exact) {
  Json record = rounded(exact);
  std::printf("%s\n", record.dump().c_str());
  std::fflush(stdout);
  if (arguments.json.empty()) return;
  double load = 0;
  getloadavg(&load, 1);
  record["load"] = load;
  Json all = read_records(arguments.json);
  all.push_back(record);
  std::string unfinished = arguments.json + ".part";
  std::ofstream(unfinished) << all.dump(0) << "\n";
  std::filesystem::rename(unfinished, arguments.json);
}

template <class Measure>
void measure_and_emit(const Arguments& arguments, const std::string& name, Measure measure) {
  Json record;
  try {
    record = measure();
  } catch (const std::exception& error) {
    record = failed_workload(name, arguments.run, error.what());
  }
  emit(arguments, record);
}

// libgomp reads its waiting policy before main begins, so the program starts over with it set.
void restart_passive(char** argv) {
  const char* policy = getenv("OMP_WAIT_POLICY");
  if (policy && strcasecmp(policy, "passive") == 0) return;
  setenv("OMP_WAIT_POLICY", "PASSIVE", 1);
  execv("/proc/self/exe", argv);
}

void run_startup(const Arguments& arguments, const std::vector<std::string>& patterns) {
  struct Measurement {
    const char* name;
    Json (*measure)(const RunOptions&);
  };
  for (auto [name, measure] :
       {Measurement{"startup.import", measure_import}, Measurement{"startup.size", measure_size}}) {
    if (arguments.list) {
      std::printf("%s\n", name);
    } else if (matches(name, patterns)) {
      measure_and_emit(arguments, name, [&, m = measure] { return m(arguments.run); });
    }
  }
}

std::set<std::string> finished(const Arguments& arguments) {
  std::set<std::string> names;
  if (!arguments.resume || arguments.json.empty()) return names;
  for (const Json& record : read_records(arguments.json)) names.insert(record["name"]);
  return names;
}

void run_all(const Arguments& arguments) {
  auto patterns = split_commas(arguments.workloads), skipped = split_commas(arguments.skip);
  auto modes = split_commas(arguments.modes);
  bool eager = std::find(modes.begin(), modes.end(), "eager") != modes.end();
  // Start-up is measured when it is asked for by name, not by "*".
  auto named = patterns;
  named.erase(std::remove(named.begin(), named.end(), "*"), named.end());
  run_startup(arguments, named);
  std::set<std::string> done = finished(arguments);
  for (const Workload& w : all_workloads()) {
    if (arguments.list) {
      std::printf("%s eager\n", w.name.c_str());
      continue;
    }
    if (!eager || !matches(w.name, patterns) || matches(w.name, skipped) || done.count(w.name))
      continue;
    measure_and_emit(arguments, w.name, [&] { return run_workload(w, arguments.run); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Runs the baseline's workloads; prints one JSON object for each."};
  app.add_flag("--list", arguments.list, "Print the workloads and their modes");
  app.add_option("--workloads", arguments.workloads, "Shell patterns, comma-separated")
      ->capture_default_str();
  app.add_option("--skip", arguments.skip, "Shell patterns of workloads to leave out");
  app.add_option("--modes", arguments.modes, "Comma-separated")->capture_default_str();
  app.add_option("--threads", arguments.run.threads)
      ->check(CLI::Range(1, fornax::kMaxThreads))
      ->capture_default_str();
  app.add_option("--reps", arguments.run.reps, "Most repetitions of a workload")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--max-seconds", arguments.run.max_seconds, "CPU seconds measured per workload")
      ->capture_default_str();
  app.add_flag("--passive", arguments.passive, "No spinning at barriers (for a loaded machine)");
  app.add_flag("--resume", arguments.resume, "Skip what the --json file holds");
  app.add_option("--json", arguments.json, "Append the records to this file");
  CLI11_PARSE(app, argc, argv);
  if (arguments.passive) restart_passive(argv);
  try {
    fornax::set_num_threads(arguments.run.threads);
    run_all(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fornax-bench: %s\n", error.what());
    return 1;
  }
}
