#include "tracker/checkout/worktree.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "base/file/file.h"
#include "tracker/checkout/interruptible.h"
#include "tracker/checkout/repository_test_fixture.h"

namespace optrail::tracker {
namespace {

std::unique_ptr<Worktrees> CreateIn(const FakeRepository& repository,
                                    Interruptible& interruptible) {
  WorktreeOptions options;
  options.repository = repository.path();
  auto trees = Worktrees::Create(options, interruptible);
  EXPECT_TRUE(trees.ok()) << trees.status();
  return trees.ok() ? std::move(*trees) : nullptr;
}

TEST(WorktreesTest, TreesOfAKilledProcessGoWithTheNextOne) {
  FakeRepository repository;
  const std::string commit = repository.Commit(1000);
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    Interruptible interruptible;
    const auto trees = CreateIn(repository, interruptible);
    if (!trees->CheckOut("a", commit).ok()) _exit(1);
    const std::string& folder = trees->folder();
    if (!WriteFileAtomically(JoinPath(folder, "other"), "x").ok()) _exit(1);
    if (write(pipe_ends[1], folder.data(), folder.size()) < 0) _exit(1);
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  char folder[4096];
  const ssize_t size = read(pipe_ends[0], folder, sizeof(folder));
  ASSERT_GT(size, 0);
  const std::string abandoned(folder, size);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  ASSERT_EQ(repository.Worktrees(), 2);
  ASSERT_TRUE(FileExists(abandoned));

  Interruptible interruptible;
  const auto trees = CreateIn(repository, interruptible);
  EXPECT_EQ(repository.Worktrees(), 1);
  EXPECT_FALSE(FileExists(abandoned));
}

TEST(WorktreesTest, TreesOfAProcessThatRunsStay) {
  FakeRepository repository;
  const std::string commit = repository.Commit(1000);
  Interruptible interruptible;
  const auto first = CreateIn(repository, interruptible);
  const auto path = first->CheckOut("a", commit);
  ASSERT_TRUE(path.ok()) << path.status();
  const auto second = CreateIn(repository, interruptible);
  EXPECT_EQ(repository.Worktrees(), 2);
  EXPECT_TRUE(FileExists(*path));
}

}  // namespace
}  // namespace optrail::tracker
