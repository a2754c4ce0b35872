// Asks all commands about random histories and holds their answers against the
// invariants (invariants.h).
//
//   bazel run //cli/evaluation/agreement:agreement -- --histories=2000
//   bazel run //cli/evaluation/agreement:agreement -- --first=17 --histories=1
//   --keep_in=/tmp/17
//
// Exit code 1 if an invariant is broken by a history that is not among its
// known failures, or holds for one that is. Each contradiction is printed with
// the command that reproduces it.

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file/file.h"
#include "base/process/git.h"
#include "cli/evaluation/agreement/invariants.h"
#include "cli/optrail.h"

ABSL_FLAG(std::string, optrail, "",
          "The program to ask; by default the command line of this build.");
ABSL_FLAG(uint64_t, first, 1, "Seed of the first history.");
ABSL_FLAG(int32_t, histories, 100, "How many.");
ABSL_FLAG(int32_t, printed, 3, "Contradictions printed of each invariant.");
ABSL_FLAG(std::string, only, "", "The one invariant to check; by default all.");
ABSL_FLAG(std::string, keep_in, "", "Keep the last history in this folder.");

namespace optrail::agreement {
namespace {

struct Count {
  int histories = 0;
  int contradictions = 0;
};

// Commands run in the folder of a history, whatever a path was relative to.
std::string Absolute(const std::string& path) {
  return path.empty() || path[0] == '/' ? path
                                        : JoinPath(WorkingDirectory(), path);
}

std::string ScratchFolder() {
  const char* folder = std::getenv("TEST_TMPDIR");
  if (folder == nullptr) folder = std::getenv("TMPDIR");
  return JoinPath(Absolute(folder == nullptr ? "/tmp" : folder),
                  absl::StrCat("agreement-", getpid()));
}

void Print(const Invariant& invariant, const MadeHistory& history,
           const Findings& found) {
  std::cout << "contradiction: " << invariant.name << " (" << invariant.says
            << ")\n  history " << history.summary << "\n";
  constexpr size_t kMost = 3;
  for (size_t i = 0; i < found.wrong().size() && i < kMost; ++i) {
    std::cout << "  " << found.wrong()[i] << "\n";
  }
  if (found.wrong().size() > kMost) {
    std::cout << "  and " << found.wrong().size() - kMost << " more\n";
  }
  std::cout << "  reproduce: bazel run //cli/evaluation/agreement:agreement -- "
               "--histories=1 --first="
            << history.seed << " --only=" << invariant.name
            << " --keep_in=$PWD/history\n";
}

// The part of the histories that this process is to take, as `bazel test` says
// it to the shards of a test.
struct Shard {
  int index = 0, count = 1;
};

Shard ThisShard() {
  Shard shard;
  const char* index = std::getenv("TEST_SHARD_INDEX");
  const char* count = std::getenv("TEST_TOTAL_SHARDS");
  if (index == nullptr || count == nullptr) return shard;
  const char* status = std::getenv("TEST_SHARD_STATUS_FILE");
  if (status != nullptr) std::ofstream(status).flush();
  if (!absl::SimpleAtoi(index, &shard.index) ||
      !absl::SimpleAtoi(count, &shard.count) || shard.count < 1) {
    return Shard();
  }
  return shard;
}

int Run() {
  const std::string optrail = Absolute(absl::GetFlag(FLAGS_optrail));
  const std::string keep = Absolute(absl::GetFlag(FLAGS_keep_in));
  const std::string only = absl::GetFlag(FLAGS_only);
  std::map<std::string, Count> counts;
  bool is_wrong = false;
  const Shard shard = ThisShard();
  for (int i = shard.index; i < absl::GetFlag(FLAGS_histories);
       i += shard.count) {
    const MadeHistory history = MakeHistory(absl::GetFlag(FLAGS_first) + i);
    const Workbench bench(optrail, keep.empty() ? ScratchFolder() : keep,
                          optrail.empty() ? cli::RunOptrail : nullptr);
    RecordHistory(history, bench);
    Examination examination(history, bench);
    for (const Invariant& invariant : Invariants()) {
      if (!only.empty() && only != invariant.name) continue;
      Findings found;
      invariant.check(examination, found);
      Count& count = counts[invariant.name];
      ++count.histories;
      const bool is_known = invariant.IsKnownToFail(history.seed);
      if (found.wrong().empty() == is_known) is_wrong = true;
      if (found.wrong().empty()) {
        if (is_known) {
          std::cout << invariant.name << " holds again for history "
                    << history.seed << "; next: remove its known failure\n";
        }
        continue;
      }
      if (count.contradictions++ < absl::GetFlag(FLAGS_printed)) {
        Print(invariant, history, found);
      }
    }
    if (keep.empty()) bench.Delete("");
  }
  std::cout << "\n";
  for (const Invariant& invariant : Invariants()) {
    const Count& count = counts[invariant.name];
    std::cout << absl::StreamFormat(
        "%5d of %5d  %s%s%s\n", count.contradictions, count.histories,
        invariant.name, *invariant.known_reason ? ": known: " : "",
        invariant.known_reason);
  }
  return is_wrong ? 1 : 0;
}

}  // namespace
}  // namespace optrail::agreement

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return optrail::agreement::Run();
}
