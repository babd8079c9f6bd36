#include "fornax/base/atomic_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/files.h"

namespace fornax {
namespace {

using namespace testing;

std::string content(const std::string& path) {
  Bytes bytes = read_file(path, 1 << 20);
  return std::string(as_text(bytes));
}

void write(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

TEST(AtomicFile, ReplacesOnlyOnCommit) {
  TempDir dir;
  std::string path = dir.file("a");
  write(path, "old");
  {
    AtomicFile file(path);
    file.write("new");
    file.write(std::string(200000, 'x'));
    EXPECT_EQ(file.position(), 200003u);
    EXPECT_EQ(content(path), "old");
    EXPECT_EQ(dir.count(), 2u);
  }
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(dir.count(), 1u);
  {
    AtomicFile file(path);
    file.write("new");
    file.write(std::string(200000, 'x'));
    file.commit();
    expect_error(ErrorKind::kIo, "closed already", [&] { file.write("more"); });
  }
  EXPECT_EQ(content(path), "new" + std::string(200000, 'x'));
  EXPECT_EQ(dir.count(), 1u);
}

TEST(AtomicFile, TwoWritersDontMeet) {
  TempDir dir;
  AtomicFile a(dir.file("a")), b(dir.file("a"));
  a.write("first");
  b.write("second");
  b.commit();
  EXPECT_EQ(content(dir.file("a")), "second");
  a.commit();
  EXPECT_EQ(content(dir.file("a")), "first");
  EXPECT_EQ(dir.count(), 1u);
}

TEST(AtomicFile, KeepsModeAndLinks) {
  TempDir dir;
  write(dir.file("real"), "1");
  ::chmod(dir.file("real").c_str(), 0640);
  ASSERT_EQ(::symlink("real", dir.file("link").c_str()), 0);
  write(dir.file("link"), "2");
  EXPECT_EQ(content(dir.file("real")), "2");
  struct stat info;
  ASSERT_EQ(::lstat(dir.file("link").c_str(), &info), 0);
  EXPECT_TRUE(S_ISLNK(info.st_mode));
  ASSERT_EQ(::stat(dir.file("real").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
}

TEST(AtomicFile, ErrorsNamePathAndReason) {
  TempDir dir;
  expect_error(ErrorKind::kIo, "/none/a: No such file or directory",
               [&] { AtomicFile file(dir.file("none/a")); });
  expect_error(ErrorKind::kIo, "Is a directory", [&] { AtomicFile file(dir.path()); });
  EXPECT_EQ(dir.count(), 0u);
}

TEST(InputFile, Errors) {
  TempDir dir;
  expect_error(ErrorKind::kIo, "cannot open", [&] { InputFile file(dir.file("a")); });
  expect_error(ErrorKind::kIo, "it is a directory", [&] { InputFile file(dir.path()); });
  expect_error(ErrorKind::kIo, "no regular file", [&] { InputFile file("/dev/null"); });
  write(dir.file("a"), "12345");
  InputFile file(dir.file("a"));
  EXPECT_EQ(file.size(), 5u);
  Bytes middle = file.read_at(1, 3);
  EXPECT_EQ(as_text(middle), "234");
  expect_error(ErrorKind::kIo, "3 bytes at offset 3 are needed, it has 5",
               [&] { file.read_at(3, 3); });
  expect_error(ErrorKind::kIo, "cut short", [&] { file.read_at(UINT64_MAX, 2); });
  expect_error(ErrorKind::kIo, "cut short", [&] { file.read_at(1, UINT64_MAX); });
  ASSERT_EQ(::truncate(dir.file("a").c_str(), 2), 0);
  expect_error(ErrorKind::kIo, "became shorter", [&] { file.read_at(1, 3); });
  expect_error(ErrorKind::kIo, "more than the limit of 1", [&] { read_file(dir.file("a"), 1); });
}

}  // namespace
}  // namespace fornax
