#include "base/process/memory_group.h"

#include <signal.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/process/subprocess.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Folders(const std::string& groups,
                                 const std::string& mounts) {
  std::vector<std::string> folders;
  for (const MemoryGroupPlace& place : MemoryGroupPlaces(groups, mounts)) {
    folders.push_back((place.unified ? "2 " : "1 ") + place.folder + " from " +
                      place.own);
  }
  return folders;
}

// Both versions may be mounted beside each other.
TEST(MemoryGroupPlaces, VersionOneHasAHierarchyForMemory) {
  EXPECT_THAT(
      Folders("9:name=systemd:/\n4:memory:/jobs/7\n3:cpu,cpuacct:/\n0::/\n",
              "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
              "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - "
              "cgroup cgroup rw,memory\n"
              "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"),
      ElementsAre("1 /sys/fs/cgroup/memory/jobs/7 from "
                  "/sys/fs/cgroup/memory/jobs/7",
                  "2 /sys/fs/cgroup/unified from /sys/fs/cgroup/unified"));
}

TEST(MemoryGroupPlaces, VersionTwoWantsOneBesideUs) {
  const std::string mounts =
      "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
  EXPECT_THAT(
      Folders("0::/user.slice/app.slice/shell.scope\n", mounts),
      ElementsAre("2 /sys/fs/cgroup/user.slice/app.slice/shell.scope "
                  "from /sys/fs/cgroup/user.slice/app.slice/shell.scope",
                  "2 /sys/fs/cgroup/user.slice/app.slice from "
                  "/sys/fs/cgroup/user.slice/app.slice/shell.scope"));
  EXPECT_THAT(Folders("0::/\n", mounts),
              ElementsAre("2 /sys/fs/cgroup from /sys/fs/cgroup"));
}

TEST(MemoryGroupPlaces, AContainerSeesAPart) {
  const std::string mounts =
      "30 24 0:26 /docker/ab /sys/fs/cgroup ro - cgroup cgroup rw,memory\n";
  EXPECT_THAT(Folders("4:memory:/docker/ab/job\n", mounts),
              ElementsAre("1 /sys/fs/cgroup/job from /sys/fs/cgroup/job"));
  EXPECT_THAT(Folders("4:memory:/docker/abc\n", mounts), IsEmpty());
  EXPECT_THAT(Folders("4:memory:/elsewhere\n", mounts), IsEmpty());
  EXPECT_THAT(Folders("4:memory:/../..\n", mounts), IsEmpty());
}

TEST(MemoryGroupPlaces, TornTextsHaveNone) {
  EXPECT_THAT(Folders("", ""), IsEmpty());
  EXPECT_THAT(Folders("4:memory\n:::\n0::", "- cgroup2\n1 2 3 - \n - - -\n"),
              IsEmpty());
}

class MemoryGroupTest : public ::testing::Test {
 protected:
  // In `script`, under a limit of 64 MiB, this process outside again.
  std::unique_ptr<MemoryGroup> Run(const std::string& script) {
    auto group = MemoryGroup::Enter(int64_t{64} << 20);
    if (!group.ok()) {
      // Not everybody may: then there has to be a reason.
      EXPECT_FALSE(group.status().message().empty());
      std::cout << "no control group: " << group.status().message() << "\n";
      return nullptr;
    }
    auto child = Subprocess::Start({"/bin/sh", "-c", script});
    EXPECT_TRUE(child.ok()) << child.status();
    EXPECT_TRUE((*group)->Leave().ok());
    exit_ = (*child)->Wait(absl::Seconds(60));
    return *std::move(group);
  }

  ExitInfo exit_;
};

constexpr char kHog[] = "x=$(head -c 200000000 /dev/zero | tr '\\0' x)";

TEST_F(MemoryGroupTest, TheKernelKillsWhatTakesMore) {
  const auto group = Run(kHog);
  if (group == nullptr) GTEST_SKIP();
  EXPECT_TRUE(group->WasExceeded());
  EXPECT_FALSE(exit_.ok());
  // Of what ran in it, it may have killed another than the shell.
  if (exit_.signal == SIGKILL) {
    EXPECT_EQ(exit_.kind, ExitInfo::Kind::kMachineOutOfMemory);
  }
}

TEST_F(MemoryGroupTest, WhatTakesLessAndReadsFilesMayGoOn) {
  const auto group = Run("head -c 200000000 /dev/zero | wc -c");
  if (group == nullptr) GTEST_SKIP();
  EXPECT_FALSE(group->WasExceeded());
  EXPECT_TRUE(exit_.ok()) << exit_.ToString();
}

TEST_F(MemoryGroupTest, ThisProcessIsOutsideAfterwards) {
  const auto group = Run("true");
  if (group == nullptr) GTEST_SKIP();
  std::vector<char> memory(200'000'000, 1);
  EXPECT_EQ(memory[memory.size() / 2], 1);
  EXPECT_FALSE(group->WasExceeded());
}

}  // namespace
}  // namespace optrail
