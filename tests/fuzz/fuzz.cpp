#include "tests/fuzz/fuzz.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>

#include "fornax/base/atomic_file.h"
#include "fornax/base/error.h"

namespace {

thread_local constinit size_t largest_allocation = 0;

void* try_allocate(size_t bytes) noexcept {
  largest_allocation = std::max(largest_allocation, bytes);
  return bytes <= fornax::fuzz::kMaxAllocation ? std::malloc(bytes ? bytes : 1) : nullptr;
}

void* allocate(size_t bytes) {
  void* memory = try_allocate(bytes);
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

// GCC takes free() of what operator new gave for a mistake; here both are ours.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(size_t bytes) { return allocate(bytes); }
void* operator new[](size_t bytes) { return allocate(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return try_allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
#pragma GCC diagnostic pop

namespace fornax::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMaxSeconds = 2;
constexpr size_t kMaxInput = 1 << 20;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void put_integer(Bytes& bytes, Random& random) {
  constexpr uint64_t kInteresting[] = {0,
                                       1,
                                       0x7f,
                                       0x80,
                                       0xff,
                                       0x7fff,
                                       0x8000,
                                       0xffff,
                                       0x7fffffff,
                                       0x80000000,
                                       0xffffffff,
                                       0x7fffffffffffffff,
                                       uint64_t(1) << 63,
                                       ~uint64_t(0)};
  uint64_t value = kInteresting[random.below(std::size(kInteresting))];
  size_t width = size_t(1) << random.below(4);
  if (bytes.size() < width) return;
  std::memcpy(bytes.data() + random.below(bytes.size() - width + 1), &value, width);
}

void put_digits(Bytes& bytes, Random& random) {
  constexpr std::string_view kNumbers[] = {
      "0",          "1",     "-1", "2147483648", "9223372036854775807", "18446744073709551615",
      "4294967296", "1e999", "nan"};
  ByteSpan word = as_bytes(kNumbers[random.below(std::size(kNumbers))]);
  auto digit = [](std::byte b) { return b >= std::byte{'0'} && b <= std::byte{'9'}; };
  auto at = std::find_if(bytes.begin() + ptrdiff_t(random.below(bytes.size())), bytes.end(), digit);
  auto end = std::find_if_not(at, bytes.end(), digit);
  at = bytes.erase(at, end);
  bytes.insert(at, word.begin(), word.end());
}

// A random piece of `bytes`, mostly short.
ByteSpan piece(ByteSpan bytes, Random& random) {
  size_t from = random.below(bytes.size() + 1);
  size_t most = random.below(8) == 0 ? bytes.size() : 16;
  return bytes.subspan(from, std::min(bytes.size() - from, random.below(most + 1)));
}

void insert(Bytes& bytes, ByteSpan what, Random& random) {
  if (bytes.size() + what.size() > kMaxInput) return;
  Bytes copy(what.begin(), what.end());  // `what` may lie in `bytes`
  bytes.insert(bytes.begin() + ptrdiff_t(random.below(bytes.size() + 1)), copy.begin(), copy.end());
}

void edit(Bytes& bytes, const Corpus& corpus, Random& random) {
  if (bytes.empty()) bytes.push_back(std::byte(random.next()));
  switch (random.below(10)) {
    case 0: bytes[random.below(bytes.size())] ^= std::byte(1 << random.below(8)); return;
    case 1: bytes[random.below(bytes.size())] = std::byte(random.next()); return;
    case 2: return put_integer(bytes, random);
    case 3: return put_digits(bytes, random);
    case 4: {
      ByteSpan gone = piece(bytes, random);
      auto from = bytes.begin() + (gone.data() - bytes.data());
      bytes.erase(from, from + ptrdiff_t(gone.size()));
      return;
    }
    case 5: return insert(bytes, piece(bytes, random), random);
    case 6:
      if (!corpus.words.empty())
        insert(bytes, as_bytes(corpus.words[random.below(corpus.words.size())]), random);
      return;
    case 7:
      return insert(bytes, piece(corpus.seeds[random.below(corpus.seeds.size())], random), random);
    case 8: bytes.resize(random.below(bytes.size())); return;
    default: {
      ByteSpan from = piece(bytes, random);
      std::memmove(bytes.data() + random.below(bytes.size() - from.size() + 1), from.data(),
                   from.size());
    }
  }
}

// What went wrong, or empty.
std::string problem_with(const Bytes& input, void (*read)(const Bytes&)) {
  take_largest_allocation();
  Clock::time_point start = Clock::now();
  std::string problem;
  try {
    read(input);
  } catch (const Error&) {
  } catch (const std::exception& error) {
    problem = error.what();
  }
  if (double spent = seconds_since(start); spent > kMaxSeconds) problem = str("took ", spent, " s");
  if (size_t bytes = take_largest_allocation(); bytes > kMaxAllocation)
    problem = str("asked for ", bytes, " bytes");
  return problem;
}

// False after a failure.
bool try_input(const Corpus& corpus, const Bytes& input, int64_t round,
               void (*read)(const Bytes&)) {
  std::string problem = problem_with(input, read);
  if (problem.empty() && !::testing::Test::HasFailure()) return true;
  std::string path = str(::testing::TempDir(), "fuzz-", corpus.name, "-", round);
  AtomicFile file(path);
  file.write(input);
  file.commit();
  ADD_FAILURE() << corpus.name << ", round " << round << ": " << problem << "; input in " << path;
  return false;
}

}  // namespace

uint64_t Random::next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Bytes mutate(const Corpus& corpus, Random& random) {
  Bytes bytes = corpus.seeds[random.below(corpus.seeds.size())];
  for (size_t edits = 1 + random.below(8); edits > 0; --edits) edit(bytes, corpus, random);
  return bytes;
}

void run(const Corpus& corpus, int rounds, void (*read)(const Bytes&)) {
  for (const Bytes& seed : corpus.seeds)
    if (!try_input(corpus, seed, -1, read)) return;
  const char* text = std::getenv("FORNAX_FUZZ_SECONDS");
  double seconds = text ? std::atof(text) : 0;
  Clock::time_point start = Clock::now();
  for (int64_t round = 0; seconds > 0 ? seconds_since(start) < seconds : round < rounds; ++round) {
    Random random(uint64_t(round) + 1);  // of the round alone, so that it can be repeated alone
    if (!try_input(corpus, mutate(corpus, random), round, read)) return;
  }
}

size_t take_largest_allocation() { return std::exchange(largest_allocation, 0); }

}  // namespace fornax::fuzz
