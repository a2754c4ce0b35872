#ifndef OPTRAIL_CLI_EVALUATION_AGREEMENT_CASES_H_
#define OPTRAIL_CLI_EVALUATION_AGREEMENT_CASES_H_

// The cases that contradicted: histories and projects for which two commands
// once gave two answers, or a command answered another question than it was
// asked. cases_test.cc runs them all.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/random.h"
#include "cli/evaluation/agreement/made_run.h"
#include "cli/evaluation/agreement/workbench.h"

namespace optrail::agreement {

// The failures that a case found.
class Findings {
 public:
  void Expect(bool holds, const absl::AlphaNum& what) {
    if (!holds) wrong_.push_back(std::string(what.Piece()));
  }
  // The exit code is `code`; else the answer is part of the finding.
  void ExpectExit(const Answer& answer, int code);
  void ExpectExitIsNot(const Answer& answer, int code);

  const std::vector<std::string>& wrong() const { return wrong_; }

 private:
  std::vector<std::string> wrong_;
};

struct Case {
  const char* name;
  void (*run)(Workbench& bench, Findings& found);
  // Why it still fails; "" of a case that must hold.
  const char* known_failure = "";
};

// By what they ask about.
std::vector<Case> CandidateCases();  // which runs are judged
std::vector<Case> PairCases();       // two sides
std::vector<Case> RowCases();        // the numbers of one row
std::vector<Case> SeriesCases();     // one series over time
std::vector<Case> PageCases();       // what commands report of its changes
std::vector<Case> AnswerCases();     // what people say of changes
std::vector<Case> SessionCases();    // tuning sessions
std::vector<Case> RecordCases();     // what is recorded, imported, kept
std::vector<Case> ScriptCases();     // ci/'s scripts, commands, the bench

// Helpers of the cases ------------------------------------------------------

// "BM_0", "BM_1", ... of one microsecond each and more.
std::vector<MadeBenchmark> Benchmarks(int count);
// The same with the level of one of them, or (-1) of all, times `factor`.
std::vector<MadeBenchmark> Slower(std::vector<MadeBenchmark> benchmarks,
                                  int which, double factor);

// `count` commits of the git repository of `bench`, oldest first.
std::vector<std::string> Commits(const Workbench& bench, int count);

// A run of commits[i] for each of them, an hour apart, of four benchmarks that
// stay as they are.
void RecordCalmLine(const Workbench& bench,
                    const std::vector<std::string>& commits, Rng* rng);
// The specification of the run of commit `i` in that line.
RunSpec CalmSpec(const std::vector<std::string>& commits, size_t i);

// A file of Google Benchmark with one row per time, in nanoseconds.
std::string GoogleBenchmarkText(
    const std::vector<std::pair<std::string, std::vector<double>>>& times,
    absl::string_view date = "2026-01-02T09:08:07+00:00");

// Records the commits 1 to `commits` of main (MadeCommit), an hour apart, of
// three benchmarks; `change` may alter the run at a position.
using ChangeOfRun = std::function<void(RunSpec& spec, int position)>;
std::vector<std::string> RecordSeries(Workbench& bench, int commits,
                                      uint64_t seed, const ChangeOfRun& change);

// Records the run of commit `position` of main: three benchmarks, of which the
// second takes `factor` times its usual time.
void RecordCommit(Workbench& bench, Rng* rng, int position, double factor);

// Fourteen commits of four benchmarks, calm; the last as `change` makes it.
// Returns the ids of the runs.
std::vector<std::string> RecordLine(
    Workbench& bench, uint64_t seed,
    const std::function<void(RunSpec& spec, int i, bool last)>& change,
    int commits = 14, int benchmarks = 4);

// The row of a benchmark in what `compare` or `gate` say, and its verdict.
Json RowOf(const Json& rows, const std::string& name);
std::string VerdictOf(const Json& rows, const std::string& name);

// The row of `changes` of a benchmark whose first commit is `commit`.
Json ChangeAt(const Json& changes, const std::string& benchmark,
              const std::string& commit);
// The report as JSON, and the series of this name in it.
Json ReportOf(const Workbench& bench);
Json ReportSeries(const Json& report, const std::string& name);

// The text that commands print.
inline std::string Short(const std::string& commit) {
  return commit.substr(0, 12);
}

// All runs of the history.
std::vector<proto::Run> RunsOf(const Workbench& bench);

// The runs that a gate judged.
std::vector<std::string> CandidateCommits(const Json& gate);
std::vector<std::string> CandidateHardware(const Json& gate);
bool AreAll(const std::vector<std::string>& texts, absl::string_view text);

}  // namespace optrail::agreement

#endif  // OPTRAIL_CLI_EVALUATION_AGREEMENT_CASES_H_
