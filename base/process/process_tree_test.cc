#include "base/process/process_tree.h"

#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class ProcessTreeTest : public ::testing::Test {
 protected:
  ProcessTreeTest() {
    std::string pattern = ::testing::TempDir() + "/proc_XXXXXX";
    proc_ = mkdtemp(pattern.data());
  }
  void Add(int process, int thread, const std::string& children) {
    const std::string task =
        absl::StrCat(proc_, "/", process, "/task/", thread);
    ASSERT_TRUE(CreateDirectories(task).ok());
    ASSERT_TRUE(WriteFileAtomically(task + "/children", children).ok());
  }

  std::string proc_;
};

TEST_F(ProcessTreeTest, HoldsChildrenOfEveryThreadAndTheirs) {
  Add(7, 7, "20 ");
  Add(7, 8, "30 40 ");
  Add(20, 20, "");
  Add(30, 30, "50 ");
  Add(50, 50, "");
  const ProcessTree tree = ListProcessTree(7, proc_);
  EXPECT_TRUE(tree.lists_children);
  // 40 has ended meanwhile.
  ASSERT_THAT(tree.processes, SizeIs(4));
  EXPECT_EQ(tree.processes[0].pid, 7);
  EXPECT_THAT(tree.processes[0].threads, UnorderedElementsAre(7, 8));
  EXPECT_EQ(tree.processes[3].pid, 50);
}

TEST_F(ProcessTreeTest, ACircleOfNumbersEnds) {
  Add(7, 7, "20");
  Add(20, 20, "7 20");
  EXPECT_THAT(ListProcessTree(7, proc_).processes, SizeIs(2));
}

TEST_F(ProcessTreeTest, AThousandChildrenAreAllThere) {
  std::string children;
  for (int pid = 1000; pid < 2000; ++pid) absl::StrAppend(&children, pid, " ");
  Add(7, 7, children);
  for (int pid = 1000; pid < 2000; ++pid) Add(pid, pid, "");
  EXPECT_THAT(ListProcessTree(7, proc_).processes, SizeIs(1001));
}

TEST_F(ProcessTreeTest, WithoutListsTheRootIsAlone) {
  ASSERT_TRUE(CreateDirectories(proc_ + "/7/task/8").ok());
  const ProcessTree tree = ListProcessTree(7, proc_);
  EXPECT_FALSE(tree.lists_children);
  ASSERT_THAT(tree.processes, SizeIs(1));
  EXPECT_THAT(tree.processes[0].threads, ElementsAre(8));
}

TEST(ProcessTree, OfThisProcessHasItsChild) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[1]);
    char byte;
    _exit(static_cast<int>(read(ends[0], &byte, 1)));  // until we close ours
  }
  const ProcessTree tree = ListProcessTree(getpid());
  if (tree.lists_children) {
    std::vector<pid_t> pids;
    for (const TreeProcess& process : tree.processes) {
      pids.push_back(process.pid);
    }
    EXPECT_THAT(pids, Contains(child));
  }
  close(ends[0]);
  close(ends[1]);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace optrail
