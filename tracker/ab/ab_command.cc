#include "tracker/ab/ab_command.h"

#include <iostream>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/status_macros.h"
#include "base/table.h"
#include "tracker/ab/benchmark_process.h"
#include "tracker/ab/interruptible.h"
#include "tracker/ab/rounds.h"
#include "tracker/ab/temporary_folder.h"
#include "tracker/ab/worktree.h"
#include "tracker/gate/gate_report.h"

namespace optrail::tracker {
namespace {

int Report(const AbCommand& options, const AbResult& result,
           std::ostream& out) {
  const OutputFormat format = options.common.format;
  if (IsForPeople(format)) {
    out << "A " << EscapeForTerminal(options.a) << "\nB "
        << EscapeForTerminal(options.b) << "\n"
        << result.rounds << (result.rounds == 1 ? " round" : " rounds")
        << ", a fresh process of each in every one\n";
    if (!result.candidate_failure.empty()) {
      out << "B " << EscapeForTerminal(result.candidate_failure) << "\n";
    }
    for (const std::string& note : result.comparison.notes) {
      out << "note: " << EscapeForTerminal(note) << "\n";
    }
    out << "\n";
  }
  out << ComparisonTable(result.comparison, options.only_changes)
             .Format(format, TerminalWidth());
  if (result.worse > 0) return 1;
  const bool compared = result.comparison.Count(Verdict::kUnchanged) +
                            result.comparison.Count(Verdict::kFaster) >
                        0;
  if (!compared && result.undecided == 0) {
    std::cerr << "the programs have no benchmark in common\n";
    return 3;
  }
  return result.undecided > 0 ? 3 : 0;
}

int ReportIdentical(const AbCommand& options, std::ostream& out) {
  if (IsForPeople(options.common.format)) {
    out << "A " << EscapeForTerminal(options.a) << "\nB "
        << EscapeForTerminal(options.b)
        << "\nidentical: the programs are equal byte for byte; nothing was "
           "measured\n";
  } else {
    Table table({{"verdict"}, {"a"}, {"b"}});
    table.AddRow({"identical", options.a, options.b});
    out << table.Format(options.common.format);
  }
  return 0;
}

absl::StatusOr<int> ComparePrograms(const AbCommand& options,
                                    const std::string& path_a,
                                    const std::string& path_b,
                                    const std::string& scratch_folder,
                                    Interruptible& interruptible,
                                    std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const auto filter,
                           CompilePattern("filter", options.filter));
  OPTRAIL_ASSIGN_OR_RETURN(const auto metric,
                           CompilePattern("metric", options.metric));
  OPTRAIL_ASSIGN_OR_RETURN(const bool identical, AreIdentical(path_a, path_b));
  if (identical) return ReportIdentical(options, out);

  ProgressOptions progress_options;
  progress_options.quiet = options.quiet;
  Progress progress("comparing", 2 * options.max_rounds, progress_options);
  int done = 0;
  std::string detail = "round 1";

  AbOptions ab;
  ab.test.false_alarm_rate = options.false_alarm_rate;
  ab.test.min_effect = options.min_effect;
  ab.test.detect_effect = options.detect_effect;
  ab.max_rounds = options.max_rounds;
  ab.seed = options.seed;
  ab.wanted = [&](absl::string_view name, absl::string_view metric_name) {
    return MatchesPart(*filter, name) && MatchesWhole(*metric, metric_name);
  };
  ab.progress = [&](int rounds, int forecast, int open, int compared) {
    progress.SetTotal(2 * forecast);
    detail =
        absl::StrFormat("round %d, %d of %d open", rounds + 1, open, compared);
    progress.Update(done, detail);
  };
  BenchmarkProgram programs[2];
  programs[0].path = path_a;
  programs[1].path = path_b;
  for (BenchmarkProgram& program : programs) {
    program.args = options.args;
    program.working_directory = options.common.workspace;
    program.deadline = options.deadline;
  }
  const absl::StatusOr<AbResult> result =
      RunRounds(ab, [&](Program program, int) -> absl::StatusOr<ProcessResult> {
        progress.Update(done, detail);
        ++done;
        return RunBenchmarkProcess(programs[program == Program::kB],
                                   scratch_folder, interruptible);
      });
  if (!result.ok()) {
    progress.Clear();
    return result.status();
  }
  progress.SetTotal(done);
  progress.Update(done, "");
  progress.Finish();
  return Report(options, *result, out);
}

// An interrupted command has cleaned up once this returns.
absl::StatusOr<int> Cleanly(const absl::StatusOr<int>& code) {
  if (absl::IsCancelled(code.status())) {
    std::cerr << code.status().message() << "\n";
  }
  return code;
}

}  // namespace

absl::StatusOr<int> RunCompareBinaries(const AbCommand& options,
                                       std::ostream& out) {
  Interruptible interruptible;
  OPTRAIL_RETURN_IF_ERROR(CheckExecutable(options.a));
  OPTRAIL_RETURN_IF_ERROR(CheckExecutable(options.b));
  OPTRAIL_ASSIGN_OR_RETURN(const auto folder, TemporaryFolder::Create("ab"));
  return Cleanly(ComparePrograms(options, options.a, options.b, folder->path(),
                                 interruptible, out));
}

absl::StatusOr<int> RunCompareCommits(const AbCommand& options,
                                      std::ostream& out) {
  Interruptible interruptible;
  BuildOptions build;
  build.repository = options.common.workspace;
  build.target = options.target;
  build.deadline = options.build_deadline;
  build.quiet = options.quiet;
  OPTRAIL_ASSIGN_OR_RETURN(const auto builder,
                           CommitBuilder::Create(build, interruptible));
  // Both names first: a typing error in B should not cost a build of A.
  OPTRAIL_ASSIGN_OR_RETURN(const std::string a, builder->Resolve(options.a));
  OPTRAIL_ASSIGN_OR_RETURN(const std::string b, builder->Resolve(options.b));
  absl::StatusOr<std::string> binary_a = builder->Build(a);
  if (!binary_a.ok()) return Cleanly(binary_a.status());
  absl::StatusOr<std::string> binary_b = builder->Build(b);
  if (!binary_b.ok()) return Cleanly(binary_b.status());
  return Cleanly(ComparePrograms(options, *binary_a, *binary_b,
                                 builder->folder(), interruptible, out));
}

}  // namespace optrail::tracker
