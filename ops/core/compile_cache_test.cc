#include "ops/core/compile_cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "base/file.h"
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
  const CompileCache cache(folder_, 10'000);
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
