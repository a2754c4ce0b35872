// Attacks the command line with histories that somebody hostile wrote: crafted
// records of every kind with checksums that are right, files that are no files,
// and hostile JSON, alone and merged in pairs.
//
//   bazel run -c opt //cli/evaluation:attack_history -- --records=10000
//
// What must hold for every one of them (docs/reference/threats.md):
//   - nothing is written outside of the history and of --out;
//   - no command runs into a signal, an abort or a sanitizer, uses more than
//     5 s of a processor, or waits for anything;
//   - a candidate with a wrong result never passes the gate;
//   - after `history repair`, `history verify` finds nothing damaged;
//   - a merge and a thinning with the default rules lose no intact run.
//
// It is deterministic for a seed: a failure is found again with the --seed and
// --records=N it prints, and the histories are kept.

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/process/subprocess.h"
#include "base/random.h"
#include "google/protobuf/stubs/logging.h"
#include "tracker/history/evaluation/hostile_records.h"
#include "tracker/history/history.h"
#include "tracker/history/record.h"

ABSL_FLAG(std::string, optrail, "", "The binary to attack.");
ABSL_FLAG(int32_t, records, 10000, "How many crafted records in all.");
ABSL_FLAG(int32_t, per_history, 20, "How many of them share a history.");
ABSL_FLAG(uint64_t, seed, 1, "Decides everything.");

namespace optrail {
namespace {

// What waits for nothing ends long before, on the busiest machine.
constexpr absl::Duration kHang = absl::Seconds(120);
constexpr absl::Duration kMostCpu = absl::Seconds(5);

// Every path below `dir` and what is there.
void Snapshot(const std::string& dir, std::map<std::string, uint64_t>* all) {
  std::vector<std::string> names;
  if (FileSystem::Real()->List(dir, &names) != 0) return;
  for (const std::string& name : names) {
    const std::string path = JoinPath(dir, name);
    FileInfo info;
    if (FileSystem::Real()->LinkStat(path, &info) != 0) continue;
    (*all)[path] =
        info.is_directory
            ? 1
            : StableHash(absl::StrCat(info.size_bytes, " ", info.inode, " ",
                                      info.modified_unix_ns));
    if (info.is_directory) Snapshot(path, all);
  }
}

struct Result {
  int64_t commands = 0;
  int64_t failures = 0;
  absl::Duration most_cpu;
  std::string slowest;
  std::map<int, int64_t> exit_codes;
};

class Attack {
 public:
  Attack(std::string optrail, std::string top, uint64_t seed, int records,
         Result* result)
      : optrail_(std::move(optrail)),
        top_(std::move(top)),
        rng_(seed),
        seed_(seed),
        result_(*result) {
    tracker::Lures& lures = lures_;
    lures.outside = JoinPath(top_, "outside/evil");
    for (const char* name : {"outside", "work/out", "work/a", "work/b"}) {
      OPTRAIL_CHECK(CreateDirectories(JoinPath(top_, name)).ok());
    }
    OPTRAIL_CHECK(
        WriteFileAtomically(JoinPath(top_, "outside/canary"), "alive").ok());
    const auto a = *tracker::History::Open(A());
    const auto b = *tracker::History::Open(B());
    for (int minute = 0; minute < 10; ++minute) {
      proto::Run run = tracker::PlausibleRun(rng_, minute);
      if (minute == 9) {
        // What must never pass: one process of five read a wrong result.
        run.mutable_results(1)->set_outcome(proto::WRONG_RESULT);
        wrong_ = run.run_id();
      }
      OPTRAIL_CHECK(a.AppendRun(run).ok());
      if (minute % 2 == 0) OPTRAIL_CHECK(b.AppendRun(run).ok());
      lures.run_ids.push_back(run.run_id());
    }
    for (int i = 0; i < records; ++i) {
      tracker::PlantHostileRecord(rng_, lures, i % 2 == 0 ? A() : B());
    }
    OPTRAIL_CHECK(WriteFileAtomically(JoinPath(top_, "work/hostile.json"),
                                      tracker::HostileJson(rng_, lures))
                      .ok());
  }

  bool Run() {
    Snapshot(top_, &before_);
    Optrail({"import", "hostile.json", "--history=out/imported"});
    for (const std::string& history : {A(), B()}) {
      Read(history);
    }
    const std::set<std::string> intact = Intact(A());
    Optrail({"history", "merge", B(), Of(A())});
    Optrail({"history", "merge", B(), Of(A()), "--accept_removals"});
    Optrail({"history", "thin", Of(A()), "--dry_run"});
    Optrail({"history", "thin", Of(A())});
    for (const std::string& id : intact) {
      if (Intact(A()).count(id) == 0) {
        Fail(absl::StrCat("lost the intact run ", id));
      }
    }
    for (const std::string& history : {A(), B()}) {
      Optrail({"history", "repair", Of(history), "--dry_run"});
      Optrail({"history", "repair", Of(history)});
      if (const int code = Optrail({"history", "verify", Of(history)});
          code != 0) {
        Fail(absl::StrCat("verify after repair exits ", code));
      }
    }
    Read(A());
    Optrail({"history", "thin", Of(A()), "--keep_runs=0", "--keep_days=0",
             "--keep_every=3", "--accept_removals"});
    Optrail({"history", "export", Of(A()), "--out=out/series.csv"});
    Optrail({"log", "series", Of(A())});
    CheckTree();
    return failed_.empty();
  }

  const std::vector<std::string>& failed() const { return failed_; }

 private:
  std::string A() const { return JoinPath(top_, "work/a/history"); }
  std::string B() const { return JoinPath(top_, "work/b/history"); }
  static std::string Of(const std::string& history) {
    return absl::StrCat("--history=", history);
  }

  void Read(const std::string& history) {
    Optrail({"history", "verify", Of(history)});
    for (const char* what : {"runs", "sessions", "series"}) {
      Optrail({"log", what, Of(history), "--format=json"});
    }
    Optrail({"show", "latest", Of(history)});
    Optrail({"show", lures_.run_ids[0], Of(history), "--format=markdown"});
    Optrail({"compare", "latest~1", "latest", Of(history)});
    Optrail({"compare", lures_.run_ids[2], lures_.run_ids[4], Of(history),
             "--format=markdown"});
    Optrail({"gate", Of(history), "--markdown_out=out/gate.md",
             "--verdict_out=out/gate.json"});
    if (history == A() && Optrail({"gate", absl::StrCat("--candidate=", wrong_),
                                   Of(history)}) == 0) {
      Fail("a wrong result passed the gate");
    }
    Optrail({"changes", Of(history)});
    Optrail({"triage", Of(history)});
    Optrail({"convergence", Of(history)});
    Optrail({"report", Of(history), "--out=out/report.html"});
    Optrail({"report", Of(history), "--report_format=markdown",
             "--out=out/report.md"});
  }

  // The runs that read as a whole.
  static std::set<std::string> Intact(const std::string& history) {
    std::set<std::string> ids;
    const auto loaded = tracker::History::Open(history)->LoadRuns({}, 1);
    for (const proto::Run& run : loaded->runs) ids.insert(run.run_id());
    return ids;
  }

  // The exit code.
  int Optrail(std::vector<std::string> arguments) {
    CommandOptions options;
    options.working_directory = JoinPath(top_, "work");
    options.timeout = kHang;
    options.max_resident_bytes = 4LL << 30;
    options.environment = {
        {"HOME", JoinPath(top_, "work/out")},
        {"TMPDIR", JoinPath(top_, "work/out")},
        {"BUILD_WORKING_DIRECTORY", options.working_directory},
        {"BUILD_WORKSPACE_DIRECTORY", options.working_directory},
        {"GIT_CEILING_DIRECTORIES", top_}};
    arguments.insert(arguments.begin(), optrail_);
    const auto ran = RunCommand(arguments, options);
    OPTRAIL_CHECK(ran.ok()) << ran.status();
    const std::string shown = absl::StrJoin(arguments, " ");
    ++result_.commands;
    if (ran->exit.cpu_time > result_.most_cpu) {
      result_.most_cpu = ran->exit.cpu_time;
      result_.slowest = shown;
    }
    if (ran->exit.kind != ExitInfo::Kind::kExited) {
      Fail(absl::StrCat(shown, " ", ran->exit.ToString(), "\n",
                        ran->stderr_text));
      return -1;
    }
    ++result_.exit_codes[ran->exit.code];
    if (ran->exit.code > 3 || ran->exit.code < 0) {
      Fail(absl::StrCat(shown, " exited with code ", ran->exit.code, "\n",
                        ran->stderr_text));
    }
    if (ran->exit.cpu_time > kMostCpu) {
      Fail(absl::StrCat(shown, " took ",
                        absl::FormatDuration(ran->exit.cpu_time)));
    }
    return ran->exit.code;
  }

  void CheckTree() {
    std::map<std::string, uint64_t> after;
    Snapshot(top_, &after);
    const auto may_change = [&](const std::string& path) {
      for (const std::string& allowed :
           {A(), B(), JoinPath(top_, "work/out")}) {
        if (path == allowed || absl::StartsWith(path, allowed + "/")) {
          return true;
        }
      }
      return false;
    };
    for (const auto& [path, hash] : after) {
      const auto known = before_.find(path);
      if ((known == before_.end() || known->second != hash) &&
          !may_change(path)) {
        Fail(absl::StrCat("written outside: ", path));
      }
    }
    for (const auto& [path, hash] : before_) {
      if (after.count(path) == 0 && !may_change(path)) {
        Fail(absl::StrCat("gone: ", path));
      }
    }
  }

  void Fail(const std::string& what) {
    ++result_.failures;
    failed_.push_back(absl::StrCat("seed ", seed_, ": ", what));
  }

  const std::string optrail_, top_;
  Rng rng_;
  const uint64_t seed_;
  tracker::Lures lures_;
  std::string wrong_;
  std::map<std::string, uint64_t> before_;
  std::vector<std::string> failed_;
  Result& result_;
};

int Main() {
  google::protobuf::SetLogHandler(nullptr);
  std::string optrail = absl::GetFlag(FLAGS_optrail);
  char* here = getcwd(nullptr, 0);
  if (!absl::StartsWith(optrail, "/")) optrail = JoinPath(here, optrail);
  free(here);
  const char* scratch = getenv("TEST_TMPDIR");
  const std::string top =
      absl::StrCat(scratch != nullptr ? scratch : "/tmp", "/attack_", getpid());
  const int records = absl::GetFlag(FLAGS_records);
  const int per_history = absl::GetFlag(FLAGS_per_history);
  Result result;
  for (int done = 0, round = 0; done < records; ++round) {
    const int now = std::min(per_history, records - done);
    const std::string folder = JoinPath(top, absl::StrCat(round));
    Attack attack(optrail, folder, absl::GetFlag(FLAGS_seed) + round, now,
                  &result);
    if (attack.Run()) {
      // Only what is found to be right is cleaned up.
      (void)RunCommand({"rm", "-rf", folder}).ok();
    } else {
      for (const std::string& what : attack.failed()) {
        std::cout << "FAILED: " << what << "\n";
      }
      std::cout << "  kept in " << folder
                << "; again: --seed=" << absl::GetFlag(FLAGS_seed) + round
                << " --records=" << now << std::endl;
    }
    done += now;
  }
  std::cout << records << " records, " << result.commands << " commands, "
            << result.failures << " failures; most processor time "
            << absl::FormatDuration(result.most_cpu) << " (" << result.slowest
            << "); exit codes";
  for (const auto& [code, count] : result.exit_codes) {
    std::cout << " " << code << ": " << count;
  }
  std::cout << "\n";
  return result.failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace optrail

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return optrail::Main();
}
