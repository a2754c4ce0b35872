#include "ops/core/compile_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <vector>

#include "base/file/file.h"
#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

constexpr char kKey[] = "0123456789abcdef0123456789abcdef";

class CompileCacheTest : public testing::Test {
 protected:
  CompileCacheTest() {
    std::string pattern = testing::TempDir() + "/cache_XXXXXX";
    folder_ = JoinPath(mkdtemp(pattern.data()), "compiled");
  }

  static Artifact Made(const std::string& key, size_t bytes) {
    Artifact artifact;
    artifact.key = key;
    artifact.bytes = std::string(bytes, '\0') + "end\n";
    artifact.log = "two lines\nof warnings";
    artifact.facts = {{"registers", 40}, {"spills", 0}};
    return artifact;
  }

  void Write(const std::string& text) const {
    std::ofstream(PathOf(kKey), std::ios::binary) << text;
  }

  std::string PathOf(const std::string& key) const {
    return JoinPath(folder_, key + ".artifact");
  }

  std::string folder_;
};

TEST_F(CompileCacheTest, GivesBackWhatWasPut) {
  const CompileCache cache(folder_);
  EXPECT_TRUE(absl::IsNotFound(cache.Get(kKey).status()));
  const Artifact made = Made(kKey, 1000);
  ASSERT_TRUE(cache.Put(made).ok());
  const auto found = CompileCache(folder_).Get(kKey);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->bytes, made.bytes);
  EXPECT_EQ(found->log, made.log);
  EXPECT_EQ(found->facts, made.facts);
}

TEST_F(CompileCacheTest, EveryFlippedByteIsAMiss) {
  const CompileCache cache(folder_);
  ASSERT_TRUE(cache.Put(Made(kKey, 100)).ok());
  const std::string sound = *ReadFile(PathOf(kKey));
  for (size_t i = 0; i < sound.size(); ++i) {
    std::string damaged = sound;
    damaged[i] ^= 1;
    Write(damaged);
    ASSERT_TRUE(absl::IsNotFound(cache.Get(kKey).status())) << i;
    EXPECT_FALSE(FileExists(PathOf(kKey))) << i;
  }
}

TEST_F(CompileCacheTest, EveryTruncationIsAMiss) {
  const CompileCache cache(folder_);
  ASSERT_TRUE(cache.Put(Made(kKey, 100)).ok());
  const std::string sound = *ReadFile(PathOf(kKey));
  for (size_t size = 0; size < sound.size(); ++size) {
    Write(sound.substr(0, size));
    ASSERT_TRUE(absl::IsNotFound(cache.Get(kKey).status())) << size;
  }
}

TEST_F(CompileCacheTest, AnEntryUnderAnotherNameIsAMiss) {
  const CompileCache cache(folder_);
  ASSERT_TRUE(cache.Put(Made(kKey, 100)).ok());
  std::string other = kKey;
  other[0] = 'f';
  ASSERT_EQ(rename(PathOf(kKey).c_str(), PathOf(other).c_str()), 0);
  EXPECT_TRUE(absl::IsNotFound(cache.Get(other).status()));
}

TEST_F(CompileCacheTest, APipeInItsPlaceIsAMissAndDoesNotHang) {
  ASSERT_TRUE(CreateDirectories(folder_).ok());
  ASSERT_EQ(mkfifo(PathOf(kKey).c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsNotFound(CompileCache(folder_).Get(kKey).status()));
}

TEST_F(CompileCacheTest, StaysBelowItsSizeAndKeepsWhatIsUsed) {
  const CompileCache cache(folder_, /*shared=*/nullptr, 10'000);
  ASSERT_TRUE(cache.Put(Made("used", 3000)).ok());
  const timespec long_ago[2] = {{1000, 0}, {1000, 0}};
  for (const char* key : {"a", "b", "c", "d", "e", "f"}) {
    ASSERT_TRUE(cache.Get("used").ok()) << key;
    ASSERT_TRUE(cache.Put(Made(key, 3000)).ok());
    utimensat(AT_FDCWD, PathOf(key).c_str(), long_ago, 0);
  }
  int64_t bytes = 0;
  const std::vector<std::string> names = *ListDirectory(folder_);
  for (const std::string& name : names) {
    struct stat info;
    ASSERT_EQ(stat(JoinPath(folder_, name).c_str(), &info), 0);
    bytes += info.st_size;
  }
  EXPECT_LE(bytes, 10'000);
  EXPECT_TRUE(cache.Get("used").ok());
  EXPECT_FALSE(cache.Put(Made("huge", 20'000)).ok());
  EXPECT_TRUE(cache.Get("used").ok());
}

class SharedFolderTest : public CompileCacheTest {
 protected:
  SharedFolderTest() {
    shared_ = folder_ + "_shared";
    EXPECT_TRUE(CreateDirectories(shared_).ok());
  }
  std::string SharedPath() const {
    return JoinPath(shared_, std::string(kKey) + ".artifact");
  }
  void Replace(const std::string& text) const {
    std::ofstream(SharedPath(), std::ios::binary) << text;
    ASSERT_EQ(chmod(SharedPath().c_str(), 0644), 0);
  }
  // The answer for a machine that has nothing in a folder of its own.
  absl::Status Fetched(const std::set<uid_t>& owners) const {
    return SharedFolder(shared_, owners).Get(kKey).status();
  }

  std::string shared_;
  const std::set<uid_t> us_ = {geteuid()};
};

TEST_F(SharedFolderTest, WhatOneMachineCompiledAnotherOneFinds) {
  const SharedFolder level(shared_, us_);
  const Artifact made = Made(kKey, 1000);
  ASSERT_TRUE(CompileCache(folder_ + "1", &level).Put(made).ok());
  const CompileCache other(folder_ + "2", &level);
  const auto found = other.Get(kKey);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->bytes, made.bytes);
  EXPECT_EQ(found->facts, made.facts);
  // From now on it is there, too.
  ASSERT_EQ(unlink(SharedPath().c_str()), 0);
  EXPECT_TRUE(CompileCache(folder_ + "2", nullptr).Get(kKey).ok());
}

TEST_F(SharedFolderTest, EveryFlippedByteAndTruncationIsAMiss) {
  const SharedFolder level(shared_, us_);
  const CompileCache cache(folder_, &level);
  ASSERT_TRUE(level.Put(kKey, "code").ok());
  const std::string sound = *ReadFile(SharedPath());
  for (size_t i = 0; i < sound.size(); ++i) {
    std::string damaged = sound;
    damaged[i] ^= 1;
    for (const std::string& text : {damaged, sound.substr(0, i)}) {
      Replace(text);
      ASSERT_TRUE(absl::IsNotFound(Fetched(us_))) << i;
    }
  }
  Replace(sound);
  EXPECT_TRUE(Fetched(us_).ok());
}

TEST_F(SharedFolderTest, CodeOfAnotherUserIsRefusedByNameAndNeverKept) {
  ASSERT_TRUE(SharedFolder(shared_, us_).Put(kKey, "code").ok());
  const SharedFolder level(shared_, {geteuid() + 1});
  const CompileCache cache(folder_, &level);
  absl::Status refused;
  EXPECT_TRUE(absl::IsNotFound(cache.Get(kKey, &refused).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_NE(refused.message().find("who is not trusted"), std::string::npos);
  EXPECT_FALSE(FileExists(PathOf(kKey)));
  EXPECT_TRUE(FileExists(SharedPath()));
}

TEST_F(SharedFolderTest, WhatOthersMayWriteIsRefused) {
  ASSERT_TRUE(SharedFolder(shared_, us_).Put(kKey, "code").ok());
  EXPECT_TRUE(Fetched(us_).ok());
  for (const mode_t mode : {0664, 0646}) {
    ASSERT_EQ(chmod(SharedPath().c_str(), mode), 0);
    EXPECT_TRUE(absl::IsPermissionDenied(Fetched(us_))) << mode;
  }
}

TEST_F(SharedFolderTest, ALinkOrAPipeIsRefusedAndDoesNotHang) {
  ASSERT_TRUE(SharedFolder(shared_, us_).Put(kKey, "code").ok());
  const std::string elsewhere = JoinPath(shared_, "elsewhere");
  ASSERT_EQ(rename(SharedPath().c_str(), elsewhere.c_str()), 0);
  ASSERT_EQ(symlink(elsewhere.c_str(), SharedPath().c_str()), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(Fetched(us_)));
  ASSERT_EQ(unlink(SharedPath().c_str()), 0);
  ASSERT_EQ(mkfifo(SharedPath().c_str(), 0644), 0);
  EXPECT_TRUE(absl::IsNotFound(Fetched(us_)));
}

TEST_F(SharedFolderTest, SoundCodeUnderAnotherKeyIsAMiss) {
  std::string other = kKey;
  other[0] = 'f';
  const SharedFolder level(shared_, us_);
  ASSERT_TRUE(level.Put(other, "code").ok());
  ASSERT_EQ(rename(JoinPath(shared_, other + ".artifact").c_str(),
                   SharedPath().c_str()),
            0);
  EXPECT_TRUE(absl::IsNotFound(Fetched(us_)));
}

TEST_F(SharedFolderTest, AnEntryOfAnotherVersionIsReplacedByItsOwner) {
  const SharedFolder level(shared_, us_);
  ASSERT_TRUE(level.Put(kKey, "sound, and of another version").ok());
  const CompileCache cache(folder_ + "1", &level);
  EXPECT_TRUE(absl::IsNotFound(cache.Get(kKey).status()));
  ASSERT_TRUE(cache.Put(Made(kKey, 100)).ok());
  const CompileCache other(folder_ + "2", &level);
  EXPECT_TRUE(other.Get(kKey).ok());
}

TEST_F(SharedFolderTest, AFolderThatIsGoneCostsNoResult) {
  const SharedFolder level(shared_ + "/not/there", us_);
  const CompileCache cache(folder_, &level);
  EXPECT_FALSE(cache.Put(Made(kKey, 100)).ok());
  EXPECT_TRUE(cache.Get(kKey).ok());
}

TEST(ParseOwnersTest, TakesNamesAndNumbersOfThisMachine) {
  EXPECT_EQ(*ParseOwners("root,4711"), (std::set<uid_t>{0, 4711}));
  EXPECT_TRUE(ParseOwners("")->empty());
  EXPECT_NE(
      ParseOwners("nobody-of-that-name")
          .status()
          .message()
          .find("\"nobody-of-that-name\", expected users of this machine"),
      absl::string_view::npos);
}

TEST(RecipeKey, CoversEverythingAndNoTwoTextsMeet) {
  Recipe recipe;
  recipe.compiler = "g++ 12";
  recipe.options = {"-O3", "-DX=1"};
  recipe.sources = {{"a.cc", "int x;"}};
  const std::string key = recipe.Key();
  EXPECT_EQ(key.size(), 32);
  EXPECT_EQ(recipe.Key(), key);
  const auto differs = [&](void (*change)(Recipe&)) {
    Recipe other = recipe;
    change(other);
    return other.Key() != key;
  };
  EXPECT_TRUE(differs([](Recipe& r) { r.compiler = "g++ 13"; }));
  EXPECT_TRUE(differs([](Recipe& r) { r.options = {"-O3"}; }));
  EXPECT_TRUE(differs([](Recipe& r) { r.options = {"-DX=1", "-O3"}; }));
  EXPECT_TRUE(differs([](Recipe& r) { r.options = {"-O3-DX=1"}; }));
  EXPECT_TRUE(differs([](Recipe& r) { r.sources[0].contents += " "; }));
  EXPECT_TRUE(differs([](Recipe& r) { r.sources[0].path = "b.cc"; }));
  EXPECT_TRUE(differs([](Recipe& r) { r.sources.push_back({"b.h", ""}); }));
  EXPECT_TRUE(differs([](Recipe& r) { r.index = 0; }));
}

}  // namespace
}  // namespace optrail::ops
