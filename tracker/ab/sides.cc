#include "tracker/ab/sides.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/text/progress.h"
#include "base/text/prose.h"
#include "base/text/table.h"
#include "re2/re2.h"
#include "tracker/ab/rounds.h"
#include "tracker/compare/row_table.h"
#include "tracker/explain/explain.h"
#include "tracker/gate/gate.h"
#include "tracker/gate/gate_report.h"
#include "tracker/gate/policy.h"
#include "tracker/history/history.h"
#include "tracker/history/record.h"
#include "tracker/history/selectors.h"
#include "tracker/notify/notify.h"
#include "tracker/series/series.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

std::string Heading(const Sides& sides) {
  return absl::StrCat("A ", EscapeForTerminal(sides.a.name), "\nB ",
                      EscapeForTerminal(sides.b.name), "\n");
}

// What the options say of thresholds, and the policy if there is one.
class Rules {
 public:
  static absl::StatusOr<Rules> From(const AbCommand& options) {
    Rules rules;
    OPTRAIL_ASSIGN_OR_RETURN(rules.filter_,
                             CompilePattern("filter", options.filter));
    OPTRAIL_ASSIGN_OR_RETURN(rules.metric_,
                             CompilePattern("metric", options.metric));
    if (options.policy.has_value()) {
      OPTRAIL_ASSIGN_OR_RETURN(rules.policy_,
                               Policy::LoadOr(*options.policy, options.metric));
      if (rules.policy_->proto().has_quorum()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--policy=", *options.policy, ": its quorum asks for ",
            rules.policy_->proto().quorum().hardware_size(),
            " hardware, and --run measures this one; next: `bench --record` or "
            "`import` on each of them, then `gate` without --run"));
      }
    }
    return rules;
  }

  AbOptions Options(const AbCommand& options) const {
    AbOptions ab;
    ab.max_rounds = options.max_rounds;
    ab.seed = options.seed;
    ab.compare.false_alarm_rate = options.false_alarm_rate;
    ab.compare.effects.min_effect = options.min_effect;
    ab.compare.effects.detect_effect = options.detect_effect;
    if (policy_.has_value()) {
      ab.compare = CompareOptionsFor(*policy_, /*comparisons=*/1);
    }
    ab.compare.threshold =
        [this, effects = ab.compare.effects](
            absl::string_view name,
            absl::string_view metric) -> absl::optional<Threshold> {
      if (!MatchesPart(*filter_, name)) return absl::nullopt;
      if (policy_.has_value()) {
        const RuleView rule = policy_->RuleFor(name, metric);
        if (rule.action == proto::IGNORE) return absl::nullopt;
        return rule.threshold;
      }
      if (!MatchesWhole(*metric_, metric)) return absl::nullopt;
      return effects;
    };
    return ab;
  }

  const absl::optional<Policy>& policy() const { return policy_; }
  bool Wants(absl::string_view name) const {
    return MatchesPart(*filter_, name);
  }

 private:
  std::unique_ptr<RE2> filter_, metric_;
  absl::optional<Policy> policy_;
};

RunInfo InfoOf(const proto::Run& run) {
  RunInfo info;
  info.header = run;
  info.header.clear_results();
  info.result_count = run.results_size();
  return info;
}

// Rows were judged before Describe() had named the run of their side.
void Name(const proto::Run& run, Side* side) {
  side->commit = run.commit();
  for (std::string& id : side->run_ids) id = run.run_id();
}

// The worst row says how the code differs; that explains the others, too.
void ExplainWorstRow(const Sides& sides, const AbResult& result,
                     GateReport* report) {
  for (GateRow& row : report->rows) {
    if (!IsRed(row)) continue;
    const std::string benchmark = CanonicalText(row.row.key);
    Recorded before, after;
    before.run = &result.base;
    before.result = FindResult(result.base, benchmark);
    after.run = &result.candidate;
    after.result = FindResult(result.candidate, benchmark);
    if (before.result == nullptr || after.result == nullptr) continue;
    row.changed = WhatChanged(before, after, 1 + row.row.worse_by,
                              sides.code_difference == nullptr
                                  ? std::vector<std::string>()
                                  : sides.code_difference());
    return;
  }
}

// One process of two equal sides.
struct MeasuredOnce {
  int benchmarks = 0;               // that work and have a reading
  std::vector<std::string> failed;  // "BM_x (CRASHED: no input)"
};

// Counts what `rules` would judge. A benchmark that failed by itself is named
// whichever metric is judged, since it has none.
MeasuredOnce CountMeasured(const proto::Run& run, const Rules& rules,
                           const CompareOptions& compare) {
  MeasuredOnce once;
  for (const proto::BenchmarkResult& result : run.results()) {
    const std::string name = DisplayName(result.key());
    if (!rules.Wants(name)) continue;
    if (result.outcome() != proto::OK &&
        result.outcome() != proto::OUTCOME_UNSPECIFIED) {
      once.failed.push_back(absl::StrCat(
          name, " (", tuning::OutcomeName(result.outcome()),
          result.detail().empty() ? "" : ": ", result.detail(), ")"));
      continue;
    }
    const std::vector<MetricInfo> metrics = MetricsOf(result);
    once.benchmarks += std::any_of(
        metrics.begin(), metrics.end(), [&](const MetricInfo& metric) {
          return compare.threshold(name, metric.metric).has_value() &&
                 std::any_of(
                     result.measurements().begin(), result.measurements().end(),
                     [&](const proto::Measurement& measurement) {
                       return ReadingOf(measurement, metric.metric).has_value();
                     });
        });
  }
  return once;
}

void ConcludeIdentical(const MeasuredOnce& once, GateReport* report) {
  constexpr size_t kNamed = 3;
  const std::string failed = JoinFirst(once.failed, kNamed);
  if (once.benchmarks > 0) {
    report->exit_code = 0;
    report->reason = GateReason::kIdentical;
    report->summary = absl::StrCat(
        "fine: both sides are equal byte for byte; nothing was compared, one "
        "process measured ",
        once.benchmarks, once.benchmarks == 1 ? " benchmark" : " benchmarks",
        failed.empty() ? "" : "; not measured, on neither side: ", failed);
    return;
  }
  report->exit_code = 3;
  report->reason =
      failed.empty() ? GateReason::kNoBenchmark : GateReason::kInconclusive;
  report->summary = absl::StrCat(
      "can't tell: both sides are equal byte for byte, and one process "
      "measured no benchmark",
      failed.empty() ? " that a rule gates; next: a rule of the policy, or "
                       "--metric, that matches what was measured"
                     : ": ",
      failed);
}

// By a policy: as `optrail gate` says it. Without a result both sides are
// equal, and `once` was measured of them.
absl::StatusOr<int> ReportGate(const AbCommand& options, const Sides& sides,
                               const Policy& policy, const AbResult* result,
                               const MeasuredOnce& once, std::ostream& out) {
  GateReport report;
  report.notes = options.notes;
  report.candidate =
      sides.b.commit.id().empty()
          ? sides.b.name
          : absl::StrCat("commit ", ShortHash(sides.b.commit.id()), " (",
                         sides.b.name, ")");
  report.measured_by = FlagsOf(options.build);
  report.run_false_alarm_rate = policy.proto().run_false_alarm_rate();
  GateReport::ResolvedBaseline baseline;
  baseline.text = sides.a.name;
  if (result != nullptr) {
    baseline.suite = result->candidate.suite();
    baseline.hardware_id = result->candidate.hardware().id();
    baseline.runs = {InfoOf(result->base)};
    report.candidate_runs = {InfoOf(result->candidate)};
  }
  report.baselines.push_back(baseline);
  if (result == nullptr) {
    ConcludeIdentical(once, &report);
  } else {
    Judge(policy, result->comparison, sides.a.name,
          NowUnixNs(options.common) / 1'000'000'000, &report);
    for (GateRow& row : report.rows) {
      Name(result->base, &row.row.baseline);
      Name(result->candidate, &row.row.candidate);
      row.suite = result->candidate.suite();
      row.hardware_id = result->candidate.hardware().id();
    }
    report.rounds = result->rounds;
    report.notes.push_back(
        absl::StrCat(result->rounds, result->rounds == 1 ? " round" : " rounds",
                     ", a fresh process of each side in every one",
                     options.record ? "" : "; --record would keep both runs"));
    if (!result->candidate_failure.empty()) {
      report.notes.push_back(
          absl::StrCat("the candidate ", result->candidate_failure));
    }
    Conclude(&report);
    ExplainWorstRow(sides, *result, &report);
  }
  OPTRAIL_RETURN_IF_ERROR(Publish(options.outputs, report));
  out << FormatGate(report, options.common.format, TerminalWidth());
  return report.exit_code;
}

absl::StatusOr<int> Report(const AbCommand& options, const Sides& sides,
                           const AbResult& result, std::ostream& out) {
  const OutputFormat format = options.common.format;
  if (IsForPeople(format)) {
    out << Heading(sides) << result.rounds
        << (result.rounds == 1 ? " round" : " rounds")
        << ", a fresh process of each in every one\n";
    if (!result.candidate_failure.empty()) {
      out << "B " << EscapeForTerminal(result.candidate_failure) << "\n";
    }
    for (const std::string& note : result.comparison.notes) {
      out << WrapProse(absl::StrCat("note: ", EscapeForTerminal(note), "\n"),
                       TerminalWidth());
    }
    out << "\n";
  }
  const Table table = ComparisonTable(result.comparison, options.only_changes);
  out << table.Format(format, TerminalWidth());
  OPTRAIL_RETURN_IF_ERROR(WriteOut(options.outputs.markdown_out,
                                   table.Format(OutputFormat::kMarkdown)));
  if (result.worse > 0 && IsForPeople(format) &&
      sides.code_difference != nullptr) {
    out << "\nchanged with it, the likeliest cause first:\n" << std::flush;
    for (const std::string& line : sides.code_difference()) {
      out << WrapProse(absl::StrCat("  ", EscapeForTerminal(line), "\n"),
                       TerminalWidth());
    }
  }
  if (result.worse > 0) return 1;
  if (result.comparison.CountTold() == 0 && result.undecided == 0) {
    std::cerr << "the programs have no benchmark in common\n";
    return 3;
  }
  return result.undecided > 0 ? 3 : 0;
}

absl::StatusOr<int> ReportIdentical(const AbCommand& options,
                                    const Sides& sides, const Rules& rules,
                                    std::ostream& out) {
  if (rules.policy().has_value()) {
    // A gate that can measure nothing is never green.
    OPTRAIL_ASSIGN_OR_RETURN(
        const proto::Run run,
        MeasureOnce([&](Program, int) { return sides.a.run(); }));
    return ReportGate(options, sides, *rules.policy(), /*result=*/nullptr,
                      CountMeasured(run, rules, rules.Options(options).compare),
                      out);
  }
  Table table({{"verdict"}, {"a"}, {"b"}});
  table.AddRow({"identical", sides.a.name, sides.b.name});
  OPTRAIL_RETURN_IF_ERROR(WriteOut(options.outputs.markdown_out,
                                   table.Format(OutputFormat::kMarkdown)));
  if (IsForPeople(options.common.format)) {
    out << Heading(sides)
        << "identical: the programs are equal byte for byte; nothing was "
           "measured\n";
  } else {
    out << table.Format(options.common.format);
  }
  return 0;
}

// What the results themselves do not say of where they come from.
void Describe(const AbCommand& options, const Sides& sides, AbResult* result) {
  const int64_t now_ns = NowUnixNs(options.common);
  const std::string pairing = NewRecordId(now_ns);
  for (const bool is_candidate : {false, true}) {
    proto::Run& run = is_candidate ? result->candidate : result->base;
    // The order of the sides is the order of their times, too.
    run.set_started_unix_ns(now_ns + (is_candidate ? 1 : 0));
    run.set_run_id(NewRecordId(now_ns));
    run.set_pairing_id(pairing);
    run.clear_source_digests();  // measured here, not imported
    *run.mutable_commit() = is_candidate ? sides.b.commit : sides.a.commit;
    if (!options.suite.empty()) run.set_suite(options.suite);
    if (!options.hardware.id().empty()) {
      *run.mutable_hardware() = options.hardware;
    }
  }
}

absl::Status RecordSides(const AbCommand& options, const AbResult& result) {
  OPTRAIL_ASSIGN_OR_RETURN(const History history,
                           History::Open(options.common.history));
  for (const proto::Run* run : {&result.base, &result.candidate}) {
    OPTRAIL_RETURN_IF_ERROR(ValidateRun(*run));
    OPTRAIL_RETURN_IF_ERROR(history.AppendRun(*run));
    std::cerr << "recorded " << (run == &result.base ? "A" : "B") << " as "
              << run->run_id() << ", suite " << EscapeForTerminal(run->suite())
              << ", in " << history.dir() << "\n";
  }
  return absl::OkStatus();
}

absl::StatusOr<AbResult> Measure(const AbCommand& options, AbOptions ab,
                                 const Sides& sides) {
  ProgressOptions progress_options;
  progress_options.quiet = options.quiet;
  Progress progress("comparing", 2 * ab.max_rounds, progress_options);
  int done = 0;
  std::string detail = "round 1";
  ab.progress = [&](int rounds, int forecast, int open, int compared) {
    progress.SetTotal(2 * forecast);
    detail =
        absl::StrFormat("round %d, %d of %d open", rounds + 1, open, compared);
    progress.Update(done, detail);
  };
  if (sides.narrow != nullptr) {
    ab.narrow = [&](const std::set<std::string>& names) {
      sides.narrow(BenchmarkFilter(names));
    };
  }
  absl::StatusOr<AbResult> result =
      RunRounds(ab, [&](Program program, int) -> absl::StatusOr<ProcessResult> {
        progress.Update(done, detail);
        ++done;
        return program == Program::kA ? sides.a.run() : sides.b.run();
      });
  if (!result.ok()) {
    progress.Clear();
    return result;
  }
  progress.SetTotal(done);
  progress.Update(done, "");
  progress.Finish();
  return result;
}

}  // namespace

absl::StatusOr<int> CompareSides(const AbCommand& options, const Sides& sides,
                                 std::ostream& out) {
  OPTRAIL_RETURN_IF_ERROR(CheckOutputs(options.outputs));
  OPTRAIL_ASSIGN_OR_RETURN(const Rules rules, Rules::From(options));
  OPTRAIL_RETURN_IF_ERROR(CheckName("suite", options.suite));
  if (options.record) {
    OPTRAIL_RETURN_IF_ERROR(CheckHistoryIsWritable(options.common.history));
  }
  if (sides.identical) return ReportIdentical(options, sides, rules, out);
  OPTRAIL_ASSIGN_OR_RETURN(AbResult result,
                           Measure(options, rules.Options(options), sides));
  Describe(options, sides, &result);
  if (options.record) {
    OPTRAIL_RETURN_IF_ERROR(RecordSides(options, result));
  }
  if (rules.policy().has_value()) {
    return ReportGate(options, sides, *rules.policy(), &result, MeasuredOnce(),
                      out);
  }
  return Report(options, sides, result, out);
}

}  // namespace optrail::tracker
