#include "bench/runner.h"

#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "fornax/device/allocator.h"

namespace fornax::bench {
namespace {

Seconds repetition(const Prepared& p) {
  if (p.run_selftimed) return p.run_selftimed();
  Stopwatch watch;
  Tensor result = p.run();
  return watch.read();
}

// A field of /proc/self/status in KiB; 0 if there is none.
double status_mb(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind(field + ":", 0) == 0) return std::stod(line.substr(field.size() + 1)) / 1024;
  return 0;
}

// Memory that earlier workloads left behind counts for none of them; the high-water mark restarts.
void reset_memory() {
  cpu_memory::empty_cache();
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  size_t n = v.size();
  return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

struct Times {
  std::vector<double> wall, cpu;
};

Times measure(const Prepared& p, const RunOptions& options) {
  Times times;
  double spent = 0;
  while (int(times.wall.size()) < options.reps &&
         (times.wall.size() < 3 || spent < options.max_seconds)) {
    Seconds s = repetition(p);
    times.wall.push_back(s.wall);
    times.cpu.push_back(s.cpu);
    spent += s.cpu;
  }
  return times;
}

void add_rate(Json& record, const char* unit, const char* unit_per_cpu, double amount) {
  if (amount == 0) return;
  record[unit] = amount / record["median_ms"].get<double>() / 1e6;
  record[std::string(unit) + "_best"] = amount / record["min_ms"].get<double>() / 1e6;
  record[unit_per_cpu] = amount / record["cpu_ms"].get<double>() / 1e6;
}

void add_per_op(Json& record, int64_t inner) {
  if (inner == 0) return;
  double scale = 1e6 / double(inner);
  record["ns_per_op"] = record["median_ms"].get<double>() * scale;
  record["cpu_ns_per_op"] = record["cpu_ms"].get<double>() * scale;
  record["cpu_min_ns_per_op"] = record["cpu_min_ms"].get<double>() * scale;
}

}  // namespace

Json run_workload(const Workload& workload, const RunOptions& options) {
  reset_memory();
  Stopwatch setup;
  Prepared p = workload.make();
  double setup_s = setup.read().wall;
  double base_mb = status_mb("VmRSS");
  Stopwatch first_watch;
  repetition(p);
  Seconds first = first_watch.read();
  if (first.cpu < 1) repetition(p);
  Times times = measure(p, options);

  Json record;
  record["name"] = workload.name;
  record["mode"] = "eager";
  record["median_ms"] = median(times.wall) * 1e3;
  record["min_ms"] = *std::min_element(times.wall.begin(), times.wall.end()) * 1e3;
  record["cpu_ms"] = median(times.cpu) * 1e3;
  record["cpu_min_ms"] = *std::min_element(times.cpu.begin(), times.cpu.end()) * 1e3;
  record["reps"] = times.wall.size();
  record["threads"] = options.threads;
  record["peak_rss_mb"] = status_mb("VmHWM");
  record["base_rss_mb"] = base_mb;
  record["first_s"] = first.wall;
  record["first_cpu_s"] = first.cpu;
  record["setup_s"] = setup_s;
  add_per_op(record, p.inner);
  add_rate(record, "gb_s", "gb_per_cpu_s", p.bytes);
  add_rate(record, "gflops", "gflops_per_cpu_s", p.flops);
  if (p.check && !p.check->empty()) record["check"] = *p.check;
  return record;
}

Json failed_workload(const std::string& name, const RunOptions& options, const std::string& what) {
  Json record;
  record["name"] = name;
  record["mode"] = "eager";
  record["threads"] = options.threads;
  record["error"] = what.substr(0, 300);
  return record;
}

Json rounded(Json record) {
  for (auto& [key, value] : record.items()) {
    if (!value.is_number_float()) continue;
    char text[32];
    std::snprintf(text, sizeof text, "%.5g", value.get<double>());
    value = std::strtod(text, nullptr);
  }
  return record;
}

}  // namespace fornax::bench
