// Processes that take turns, and what happens when one is killed.

#include "ops/device/cuda/turns.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "base/file/file.h"
#include "gtest/gtest.h"

namespace optrail::ops::cuda {
namespace {

std::string PathFor(const std::string& test) {
  return JoinPath(::testing::TempDir(), test, "gpu.turns");
}

// A process that takes part, and tells once it does what it was started for.
class Other {
 public:
  Other(const std::string& path, bool takes_turn) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_ = fork();
    if (pid_ == 0) {
      const auto turns = Turns::Join(path);
      if (!turns.ok()) _exit(1);
      if (takes_turn) {
        const Turns::Turn turn = turns->Take([] {});
        (void)!write(ready[1], "x", 1);
        while (true) pause();
      }
      (void)!write(ready[1], "x", 1);
      while (true) pause();
    }
    close(ready[1]);
    char told = 0;
    EXPECT_EQ(read(ready[0], &told, 1), 1);
    close(ready[0]);
  }
  ~Other() { Kill(); }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  int pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

TEST(Turns, WhoeverWaitsComesBeforeTheOneThatHadIt) {
  const std::string path = PathFor("fair");
  auto one = Turns::Join(path), other = Turns::Join(path);
  ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
  std::vector<std::string> order;  // whoever has the turn writes to it
  absl::Notification waits;
  bool one_waited = false;
  std::thread thread;
  {
    const Turns::Turn turn = one->Take([&] { one_waited = true; });
    EXPECT_FALSE(one_waited);
    order.push_back("one");
    thread = std::thread([&] {
      const Turns::Turn turn = other->Take([&] { waits.Notify(); });
      order.push_back("other");
    });
    waits.WaitForNotification();
  }
  // At once again.
  {
    const Turns::Turn turn = one->Take([] {});
    order.push_back("one again");
  }
  thread.join();
  EXPECT_EQ(order, (std::vector<std::string>{"one", "other", "one again"}));
}

TEST(Turns, WhoTakesPartIsKnownUntilItDies) {
  const std::string path = PathFor("part");
  const auto turns = Turns::Join(path);
  ASSERT_TRUE(turns.ok()) << turns.status();
  Other other(path, /*takes_turn=*/false);
  const int pid = other.pid();
  EXPECT_TRUE(turns->TakesPart(pid));
  EXPECT_FALSE(turns->TakesPart(getppid()));
  other.Kill();
  EXPECT_FALSE(turns->TakesPart(pid));
}

TEST(Turns, AProcessThatIsKilledGivesItsTurnBack) {
  const std::string path = PathFor("killed");
  const auto turns = Turns::Join(path);
  ASSERT_TRUE(turns.ok()) << turns.status();
  for (int i = 0; i < 3; ++i) {
    Other other(path, /*takes_turn=*/true);
    bool waited = false;
    // Killed once this one waits for it.
    const Turns::Turn turn = turns->Take([&] {
      waited = true;
      other.Kill();
    });
    EXPECT_TRUE(waited) << i;
  }
}

// Three processes count in one file, each with a turn for each count.
TEST(Turns, NobodyMeetsAnother) {
  const std::string path = PathFor("alone");
  constexpr int kProcesses = 3, kCounts = 200;
  const auto turns = Turns::Join(path);
  ASSERT_TRUE(turns.ok()) << turns.status();
  const std::string counter = JoinPath(DirectoryOf(path), "counter");
  ASSERT_TRUE(WriteFileAtomically(counter, "0").ok());
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    const auto own = Turns::Join(path);
    if (!own.ok()) _exit(1);
    for (int count = 0; count < kCounts; ++count) {
      const Turns::Turn turn = own->Take([] {});
      const auto text = ReadFile(counter);
      if (!text.ok()) _exit(2);
      const std::string next = std::to_string(std::stoi(*text) + 1);
      if (!WriteFileAtomically(counter, next).ok()) _exit(3);
    }
    _exit(0);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(*ReadFile(counter), std::to_string(kProcesses * kCounts));
}

TEST(Turns, WhereNoFileCanBeHadNobodyTakesTurns) {
  const std::string file = JoinPath(::testing::TempDir(), "no_folder");
  ASSERT_TRUE(WriteFileAtomically(file, "").ok());
  EXPECT_FALSE(Turns::Join(JoinPath(file, "gpu.turns")).ok());
}

TEST(Turns, AreTakenInTheUsersCache) {
  setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(Turns::PathOf("ab"), "/cache/optrail/gpu-ab.turns");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/home/one", 1);
  EXPECT_EQ(Turns::PathOf("ab"), "/home/one/.cache/optrail/gpu-ab.turns");
}

}  // namespace
}  // namespace optrail::ops::cuda
