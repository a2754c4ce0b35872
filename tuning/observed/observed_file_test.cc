#include "tuning/observed/observed_file.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

using ::testing::HasSubstr;

std::string Folder(const std::string& name) {
  return testing::TempDir() + "/" + name;
}

ObservedKey Key(const std::string& shape,
                ObservedSource source = ObservedSource::kExact) {
  ObservedKey key;
  key.op = "softmax";
  key.shape = shape;
  key.device = "cpu";
  key.cache_mode = "hot";
  key.hardware_id = "acme-abacus-1c";
  key.source = source;
  return key;
}

TEST(ObservedFile, RowsOfManyFilesAreAdded) {
  const std::string folder = Folder("added");
  for (int process = 0; process < 3; ++process) {
    const auto file = ObservedFile::Create(folder);
    ASSERT_TRUE(file.ok()) << file.status();
    ObservedCounter* const first = (*file)->CounterOf(Key("n=4/f32"));
    EXPECT_EQ((*file)->CounterOf(Key("n=4/f32")), first);
    first->AddLookup();
    first->AddRun(30);
    first->AddRun();
    ObservedCounter* const other =
        (*file)->CounterOf(Key("n=4/f32", ObservedSource::kDefault));
    EXPECT_NE(other, first);
    for (int i = 0; i < 5; ++i) other->AddLookup();
  }
  const auto rows = ReadObservedFiles({folder});
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].key.source, ObservedSource::kDefault);
  EXPECT_EQ((*rows)[0].calls(), 15);
  const ObservedRow& row = (*rows)[1];
  EXPECT_EQ(row.key.op, "softmax");
  EXPECT_EQ(row.key.shape, "n=4/f32");
  EXPECT_EQ(row.key.hardware_id, "acme-abacus-1c");
  EXPECT_EQ(row.lookups, 3);
  EXPECT_EQ(row.calls(), 6);
  EXPECT_EQ(row.timed_runs, 3);
  EXPECT_EQ(row.ns, 90);
}

TEST(ObservedFile, AFileThatIsGivenTwiceIsRefused) {
  const std::string folder = Folder("twice");
  const auto file = ObservedFile::Create(folder);
  ASSERT_TRUE(file.ok()) << file.status();
  (*file)->CounterOf(Key("n=4/f32"))->AddLookup();
  for (const std::string& again : {folder, folder + "/.", (*file)->path()}) {
    EXPECT_THAT(
        std::string(ReadObservedFiles({folder, again}).status().message()),
        HasSubstr("is the same file as"))
        << again;
  }
}

TEST(ObservedFile, NoCallOf64ThreadsIsLost) {
  const std::string folder = Folder("threads");
  const auto file = ObservedFile::Create(folder);
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<std::thread> threads;
  for (int t = 0; t < 64; ++t) {
    threads.emplace_back([&, t] {
      ObservedCounter* const shared = (*file)->CounterOf(Key("n=1/f32"));
      ObservedCounter* const own =
          (*file)->CounterOf(Key("n=" + std::to_string(t + 2) + "/f32"));
      for (int i = 0; i < 2000; ++i) {
        shared->AddLookup();
        own->AddRun();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto rows = ReadObservedFiles({(*file)->path()});
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 65u);
  EXPECT_EQ((*rows)[0].calls(), 64 * 2000);
  for (size_t i = 1; i < rows->size(); ++i) {
    EXPECT_EQ((*rows)[i].calls(), 2000);
  }
}

TEST(ObservedFile, ChildrenCountIntoItAndKillingLosesNothing) {
  const std::string folder = Folder("children");
  const auto file = ObservedFile::Create(folder);
  ASSERT_TRUE(file.ok()) << file.status();
  ObservedCounter* const counter = (*file)->CounterOf(Key("n=4/f32"));
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      for (int call = 0; call < 100; ++call) counter->AddLookup();
      (*file)->CounterOf(Key("n=" + std::to_string(i) + "/f32"))->AddLookup();
      raise(SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
  }
  const auto rows = ReadObservedFiles({folder});
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 4u);
  EXPECT_EQ((*rows)[0].calls(), 300);
  EXPECT_EQ((*rows)[1].calls(), 1);
}

TEST(ObservedFile, WhatHasNoRoomIsCountedTogether) {
  const auto file = ObservedFile::Create(Folder("full"));
  ASSERT_TRUE(file.ok()) << file.status();
  (*file)->CounterOf(Key(std::string(600, 'n')))->AddLookup();
  (*file)->CounterOf(Key("n=1\tm=2/f32"))->AddLookup();
  const int kKeys = ObservedFile::kMostKeys + 10;
  for (int i = 0; i < kKeys; ++i) {
    (*file)->CounterOf(Key("n=" + std::to_string(i) + "/f32"))->AddLookup();
  }
  const auto rows = ReadObservedFiles({(*file)->path()});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->size(), static_cast<size_t>(ObservedFile::kMostKeys));
  int64_t calls = 0;
  for (const ObservedRow& row : *rows) calls += row.calls();
  EXPECT_EQ(calls, kKeys + 2);
  EXPECT_EQ((*rows)[0].key.op, "");
  EXPECT_EQ((*rows)[0].calls(), 13);
}

TEST(ObservedFile, WrongFilesAreRefused) {
  const std::string folder = Folder("wrong");
  ASSERT_TRUE(CreateDirectories(folder).ok());
  const auto refused = [](const std::string& path) {
    return std::string(ReadObservedFiles({path}).status().message());
  };
  EXPECT_THAT(refused(folder), HasSubstr("OPTRAIL_OBSERVE=" + folder));
  EXPECT_THAT(refused(folder + "/none"), HasSubstr("/none"));
  const std::string path = JoinPath(folder, "a.observed");
  ASSERT_TRUE(WriteFileAtomically(path, "text").ok());
  EXPECT_THAT(refused(folder), HasSubstr("too short"));
  ASSERT_TRUE(WriteFileAtomically(path, std::string(5000, '\0')).ok());
  EXPECT_TRUE(ReadObservedFiles({folder}).ok());  // begun, and no more
  ASSERT_TRUE(WriteFileAtomically(path, std::string(9000, 'x')).ok());
  EXPECT_THAT(refused(path), HasSubstr("no counts of calls"));

  // One whose key was overwritten, and one that was cut off.
  const auto file = ObservedFile::Create(folder + "/whole");
  ASSERT_TRUE(file.ok()) << file.status();
  (*file)->CounterOf(Key("n=4/f32"))->AddLookup();
  auto bytes = ReadFile((*file)->path());
  ASSERT_TRUE(bytes.ok());
  ASSERT_TRUE(WriteFileAtomically(path, bytes->substr(0, 4096 + 1500)).ok());
  EXPECT_THAT(refused(path), HasSubstr("cut off after 5596 bytes"));
  ASSERT_TRUE(
      WriteFileAtomically(path, bytes->substr(0, bytes->size() - 1)).ok());
  EXPECT_THAT(refused(path), HasSubstr("cut off after"));
  // Part of a second group is none, and loses nothing of the first.
  ASSERT_TRUE(WriteFileAtomically(path, *bytes + std::string(8192, '\0')).ok());
  std::vector<std::string> notes;
  const auto rows = ReadObservedFiles({path}, &notes);
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_EQ((*rows)[0].calls(), 1);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], HasSubstr("its last 8192 bytes are no whole group"));
  bytes->replace(4096 + 512, 7, "soft\tma");
  ASSERT_TRUE(WriteFileAtomically(path, *bytes).ok());
  EXPECT_THAT(refused(path), HasSubstr("how a lookup ended"));

  ASSERT_TRUE(WriteFileAtomically(folder + "/file", "x").ok());
  EXPECT_FALSE(ObservedFile::Create(folder + "/file").ok());
}

}  // namespace
}  // namespace optrail::tuning
