#ifndef OPTRAIL_TRACKER_CHECKOUT_REPOSITORY_TEST_FIXTURE_H_
#define OPTRAIL_TRACKER_CHECKOUT_REPOSITORY_TEST_FIXTURE_H_

// A git repository for tests whose ./bazelw is a script that builds
// //bench:program by copying another script, which pretends to be a program
// with Google Benchmark's flags: real processes, worktrees and files, and times
// that are known.
//
//   FakeRepository repository;
//   repository.Commit(1000);
//   const std::string slower = repository.Commit(1200);

#include <memory>
#include <string>
#include <vector>

#include "tracker/checkout/temporary_folder.h"

namespace optrail::tracker {

class FakeRepository {
 public:
  FakeRepository();

  // Each commits and returns the id. The benchmark BM_x takes `time_ns`, give
  // or take half a percent.
  std::string Commit(int time_ns);
  // BM_x reports an error instead of a time.
  std::string CommitThatFails();
  std::string CommitThatDoesNotBuild();
  std::string CommitWithoutTarget();
  // Building kills the process group's starter with SIGINT and hangs.
  std::string CommitThatInterrupts();

  std::string path() const;
  // A program as Commit's, outside the repository.
  std::string Program(const std::string& name, int time_ns) const;
  // A program as CommitThatFails'.
  std::string ProgramThatFails(const std::string& name) const;

  // What ./bazelw was asked to do, a word each: "build", "info", "shutdown".
  std::vector<std::string> BazelCommands() const;
  // Lines of `git worktree list`: 1 for none but the repository itself.
  int Worktrees() const;

 private:
  void Write(const std::string& name, const std::string& text) const;
  std::string WriteProgram(const std::string& name,
                           const std::string& text) const;
  std::string CommitAll();
  std::string Git(const std::vector<std::string>& args) const;

  std::unique_ptr<TemporaryFolder> folder_;
  int commits_ = 0;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_CHECKOUT_REPOSITORY_TEST_FIXTURE_H_
