#include "bench/startup.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace fornax::bench {
namespace {

namespace fs = std::filesystem;
constexpr int kStarts = 20;

fs::path own_folder() { return fs::read_symlink("/proc/self/exe").parent_path(); }

struct Start {
  double wall_ms, cpu_ms, rss_mb;
};

Start start_once(const std::string& program) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  char* argv[] = {const_cast<char*>(program.c_str()), nullptr};
  timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  pid_t child;
  int error = posix_spawn(&child, program.c_str(), &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  FX_CHECK(error == 0, kIo, "cannot start ", program, ": ", std::strerror(error));
  int status = 0;
  rusage used;
  wait4(child, &status, 0, &used);
  clock_gettime(CLOCK_MONOTONIC, &end);
  FX_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, kIo, program, " failed");
  auto ms = [](timeval t) { return double(t.tv_sec) * 1e3 + double(t.tv_usec) * 1e-3; };
  double wall =
      double(end.tv_sec - begin.tv_sec) * 1e3 + double(end.tv_nsec - begin.tv_nsec) * 1e-6;
  return {wall, ms(used.ru_utime) + ms(used.ru_stime), double(used.ru_maxrss) / 1024};
}

// Bytes of the file that `strip` would leave: all but symbols, debug information and notes that
// are not loaded.
double stripped_bytes(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  Elf64_Ehdr header;
  in.read(reinterpret_cast<char*>(&header), sizeof header);
  FX_CHECK(in && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0, kIo, file.string(),
           " is not an ELF file");
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  in.seekg(std::streamoff(header.e_shoff));
  in.read(reinterpret_cast<char*>(sections.data()),
          std::streamsize(sections.size() * sizeof(Elf64_Shdr)));
  FX_CHECK(in, kIo, file.string(), ": its section table is cut off");
  double bytes = double(fs::file_size(file));
  for (const Elf64_Shdr& s : sections)
    if (!(s.sh_flags & SHF_ALLOC) && s.sh_type != SHT_NOBITS) bytes -= double(s.sh_size);
  return bytes;
}

fs::path shared_library() {
  fs::path folder = own_folder().parent_path();
  for (const fs::path& path : {folder / "libfornax.so", folder / "lib" / "libfornax.so"})
    if (fs::exists(path)) return path;
  fail(ErrorKind::kIo, "no libfornax.so beside ", own_folder().string());
}

// Path of a library this process has loaded whose file name contains `part`; empty if none.
std::string loaded_library(const char* part) {
  struct Search {
    const char* part;
    std::string path;
  } search{part, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        if (std::strstr(info->dlpi_name, s.part)) s.path = info->dlpi_name;
        return 0;
      },
      &search);
  return search.path;
}

double middle(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return (v[(v.size() - 1) / 2] + v[v.size() / 2]) / 2;
}

}  // namespace

Json measure_import(const RunOptions& options) {
  std::string program = (own_folder() / "fornax-bench-startup").string();
  std::vector<double> wall, cpu, rss;
  start_once(program);
  for (int i = 0; i < kStarts; ++i) {
    Start s = start_once(program);
    wall.push_back(s.wall_ms);
    cpu.push_back(s.cpu_ms);
    rss.push_back(s.rss_mb);
  }
  Json record;
  record["name"] = "startup.import";
  record["mode"] = "eager";
  record["median_ms"] = middle(wall);
  record["min_ms"] = *std::min_element(wall.begin(), wall.end());
  record["cpu_ms"] = middle(cpu);
  record["cpu_min_ms"] = *std::min_element(cpu.begin(), cpu.end());
  record["reps"] = kStarts;
  record["threads"] = options.threads;
  record["peak_rss_mb"] = *std::max_element(rss.begin(), rss.end());
  return record;
}

Json measure_size(const RunOptions& options) {
  Json record;
  record["name"] = "startup.size";
  record["mode"] = "eager";
  record["threads"] = options.threads;
  record["libfornax_mb"] = stripped_bytes(shared_library()) / 1e6;
  for (auto [key, part] : {std::pair("dnnl_mb", "libdnnl"), std::pair("openblas_mb", "openblas")})
    if (std::string path = loaded_library(part); !path.empty())
      record[key] = stripped_bytes(path) / 1e6;
  return record;
}

}  // namespace fornax::bench
