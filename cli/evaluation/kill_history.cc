// Kills (SIGKILL) commands that change a history at random moments of their
// lives, and lets them run against each other: nothing that was there is lost,
// nothing acknowledged is lost, and the command, run again, completes its work.
//
//   bazel run -c opt //cli/evaluation:kill_history -- --kills=300
//
// The moments are drawn from the time that the command takes when nobody kills
// it, so they fall on starts, reads, writes and ends alike.

#include <unistd.h>

#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "base/random.h"
#include "tracker/history/evaluation/hostile_records.h"
#include "tracker/history/history.h"

ABSL_FLAG(std::string, optrail, "", "The binary to kill.");
ABSL_FLAG(int32_t, kills, 112, "How often.");
ABSL_FLAG(uint64_t, seed, 1, "Decides the moments.");

namespace optrail {
namespace {

using tracker::History;

constexpr absl::Duration kHang = absl::Seconds(120);
constexpr int kRuns = 40;
constexpr int kDamaged = 3;

struct Case {
  std::string name;
  std::vector<std::string> arguments;
  int exit_code = 0;  // when it is not killed
};

class Killer {
 public:
  Killer(std::string optrail, std::string top, uint64_t seed)
      : optrail_(std::move(optrail)), top_(std::move(top)), rng_(seed) {
    Rng contents(seed);
    const History here = *History::Open(JoinPath(top_, "template/h"));
    const History there = *History::Open(JoinPath(top_, "template/other"));
    for (int i = 0; i < kRuns; ++i) {
      OPTRAIL_CHECK(here.AppendRun(tracker::PlausibleRun(contents, i)).ok());
      OPTRAIL_CHECK(
          there.AppendRun(tracker::PlausibleRun(contents, 1000 + i)).ok());
    }
    const std::string folder = JoinPath(top_, "template/h/runs/2026");
    for (int i = 0; i < kDamaged; ++i) {
      const std::string name =
          absl::StrCat("20261120T09080", i, "Z-1a2b3c4d5e6f.pb");
      OPTRAIL_CHECK(WriteFileAtomically(JoinPath(folder, name), name).ok());
    }
    const tracker::RunList mine = *here.ListRuns();
    const tracker::RunList theirs = *there.ListRuns();
    for (const tracker::RunInfo& run : mine.runs) runs_.insert(run.id());
    for (const tracker::RunInfo& run : theirs.runs) others_.insert(run.id());
    OPTRAIL_CHECK(runs_.size() == kRuns && others_.size() == kRuns);
    OPTRAIL_CHECK(WriteFileAtomically(
                      JoinPath(top_, "results.json"),
                      "{\"context\": {}, \"benchmarks\": [{\"name\": \"BM_x\", "
                      "\"real_time\": 1, \"iterations\": 9}]}")
                      .ok());
  }

  static std::vector<Case> Cases() {
    return {
        {"merge", {"history", "merge", "other", "--history=h"}, 0},
        {"thin", {"history", "thin", "--keep_runs=5", "--keep_days=0"}, 0},
        {"repair", {"history", "repair"}, 0},
        {"index", {"history", "index", "--rebuild"}, 0},
        {"mute",
         {"mute", "BM_.*", "--until=2099-12-24", "--reason=new disk"},
         0},
        {"import", {"import", "results.json", "--suite=imported"}, 0},
    };
  }

  bool Try(const Case& one) {
    Fresh();
    const ExitInfo whole = Start(one)->Wait(kHang);
    if (whole.kind != ExitInfo::Kind::kExited || whole.code != one.exit_code) {
      return Fail(one, absl::StrCat("not killed: ", whole.ToString()));
    }
    Fresh();
    const ExitInfo killed =
        Start(one)->Wait(whole.wall_time * rng_.UniformReal());
    kills_ += killed.kind == ExitInfo::Kind::kTimedOut;
    if (!Check(one, killed.ok())) return false;
    // Again, to its end.
    const ExitInfo again = Start(one)->Wait(kHang);
    if (again.kind != ExitInfo::Kind::kExited || again.code != one.exit_code) {
      return Fail(one, absl::StrCat("after a kill: ", again.ToString()));
    }
    if (!Check(one, true)) return false;
    if (one.name == "repair" && !Open().Verify()->bad_files.empty()) {
      return Fail(one, "damage is left");
    }
    return true;
  }

  // All of them at the same time.
  bool TryTogether() {
    Fresh();
    std::vector<std::unique_ptr<Subprocess>> running;
    const std::vector<Case> cases = Cases();
    for (const Case& one : cases) running.push_back(Start(one));
    for (size_t i = 0; i < cases.size(); ++i) {
      const ExitInfo exit = running[i]->Wait(kHang);
      if (exit.kind != ExitInfo::Kind::kExited || exit.code > 1) {
        return Fail(cases[i], absl::StrCat("beside others: ", exit.ToString()));
      }
    }
    for (const Case& one : cases) {
      if (!Check(one, true)) return false;
    }
    return true;
  }

  int kills() const { return kills_; }

 private:
  std::string Work() const { return JoinPath(top_, "work"); }
  History Open() const { return *History::Open(JoinPath(Work(), "h")); }

  void Fresh() {
    OPTRAIL_CHECK(RunCommand({"rm", "-rf", Work()})->exit.ok());
    OPTRAIL_CHECK(RunCommand({"cp", "-r", JoinPath(top_, "template"), Work()})
                      ->exit.ok());
    OPTRAIL_CHECK(
        RunCommand({"cp", JoinPath(top_, "results.json"), Work()})->exit.ok());
  }

  std::unique_ptr<Subprocess> Start(const Case& one) {
    SubprocessOptions options;
    options.working_directory = Work();
    options.stderr_mode = StderrMode::kDiscard;
    options.environment = {{"BUILD_WORKING_DIRECTORY", Work()},
                           {"BUILD_WORKSPACE_DIRECTORY", Work()},
                           {"GIT_CEILING_DIRECTORIES", top_}};
    std::vector<std::string> argv = one.arguments;
    argv.insert(argv.begin(), optrail_);
    if (one.name != "merge") argv.push_back("--history=h");
    auto started = Subprocess::Start(argv, options);
    OPTRAIL_CHECK(started.ok()) << started.status();
    return *std::move(started);
  }

  bool Fail(const Case& one, absl::string_view what) {
    std::cout << "FAILED: " << one.name << ": " << what << "; kept in "
              << Work() << "\n";
    return false;
  }

  bool Check(const Case& one, bool acknowledged) {
    const auto loaded = Open().LoadRuns({}, 1);
    if (!loaded.ok()) return Fail(one, loaded.status().message());
    std::set<std::string> ids;
    int64_t imported = 0;
    for (const proto::Run& run : loaded->runs) {
      ids.insert(run.run_id());
      imported += run.suite() == "imported";
      if (run.results_size() == 0) return Fail(one, "a run without results");
    }
    for (const std::string& id : runs_) {
      if (ids.count(id) == 0) return Fail(one, absl::StrCat("lost ", id));
    }
    // A file is damaged because it was before, or it is in quarantine.
    const auto quarantined =
        ListRecursively(JoinPath(Work(), "h/quarantine"), ".pb");
    if (static_cast<int>(loaded->bad_files.size() + quarantined->size()) !=
        kDamaged) {
      return Fail(one, absl::StrCat(loaded->bad_files.size(), " damaged and ",
                                    quarantined->size(), " in quarantine"));
    }
    if (!acknowledged) return true;
    if (one.name == "merge") {
      for (const std::string& id : others_) {
        if (ids.count(id) == 0)
          return Fail(one, absl::StrCat("not merged: ", id));
      }
    }
    if (one.name == "mute" && Open().LoadTriage()->records.empty()) {
      return Fail(one, "the record of triage is lost");
    }
    if (one.name == "import" && imported == 0) {
      return Fail(one, "the import is lost");
    }
    return true;
  }

  const std::string optrail_, top_;
  Rng rng_;
  std::set<std::string> runs_, others_;
  int kills_ = 0;
};

int Main() {
  std::string optrail = absl::GetFlag(FLAGS_optrail);
  char* here = getcwd(nullptr, 0);
  if (!absl::StartsWith(optrail, "/")) optrail = JoinPath(here, optrail);
  free(here);
  const char* scratch = getenv("TEST_TMPDIR");
  const std::string top =
      absl::StrCat(scratch != nullptr ? scratch : "/tmp", "/kill_", getpid());
  Killer killer(optrail, top, absl::GetFlag(FLAGS_seed));
  const std::vector<Case> cases = Killer::Cases();
  int failures = 0;
  for (int i = 0; i < absl::GetFlag(FLAGS_kills); ++i) {
    failures += !killer.Try(cases[static_cast<size_t>(i) % cases.size()]);
    if (i % 10 == 0) failures += !killer.TryTogether();
  }
  std::cout << absl::GetFlag(FLAGS_kills) << " runs, " << killer.kills()
            << " killed before their end, " << failures << " failures\n";
  if (failures == 0) (void)RunCommand({"rm", "-rf", top}).ok();
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace optrail

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return optrail::Main();
}
