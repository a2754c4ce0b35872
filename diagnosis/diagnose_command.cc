#include "diagnosis/diagnose_command.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/exit_code.h"
#include "base/status_macros.h"
#include "base/text/prose.h"
#include "base/text/table.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "diagnosis/cases.h"
#include "diagnosis/classes.h"
#include "diagnosis/diagnose.h"
#include "diagnosis/evaluators.h"
#include "diagnosis/report.h"
#include "tracker/explain/calibration.h"
#include "tracker/history/history.h"
#include "tuning/proto/canonical.h"

namespace optrail::diagnosis {
namespace {

struct Candidate {
  Subject subject;
  double total_ns = 0;  // of all calls of the workload
  // The part of it that lies above the ceilings of the machine; all of it where
  // they are not known.
  double recoverable_ns = 0;
  absl::optional<double> reached;  // share of the nearest ceiling
};

// A busy machine's time will do to rank by.
absl::optional<double> TimeOf(const suites::Evaluation& evaluation) {
  if (evaluation.trial().has_time_ns()) return evaluation.trial().time_ns();
  if (evaluation.trial().outcome() == proto::CONTENDED &&
      evaluation.trial().measurements_size() > 0 &&
      evaluation.trial().measurements(0).has_median_ns()) {
    return evaluation.trial().measurements(0).median_ns();
  }
  return absl::nullopt;
}

class DiagnoseCall {
 public:
  DiagnoseCall(const DiagnoseCommand& options, std::ostream& out)
      : options_(options),
        out_(out),
        evaluators_(options.bench.worker, options.context) {}

  absl::StatusOr<int> Run() {
    OPTRAIL_ASSIGN_OR_RETURN(const tracker::History history,
                             tracker::History::Open(options_.context.history));
    OPTRAIL_ASSIGN_OR_RETURN(tracker::LoadedDiagnoses earlier,
                             history.LoadDiagnoses());
    tracker::WarnOfBadFiles(earlier.bad_files);
    OPTRAIL_RETURN_IF_ERROR(FindCandidates());
    machine_ = MachineOf(options_.context);
    OPTRAIL_RETURN_IF_ERROR(RankCandidates());
    std::vector<proto::Diagnosis> diagnoses;
    absl::Status refused;
    for (const Candidate& candidate : candidates_) {
      Say(absl::StrCat("diagnosing ", ++begun_, "/", candidates_.size(), ": ",
                       suites::ShortTaskText(candidate.subject.entry.task)));
      absl::StatusOr<proto::Diagnosis> diagnosis = DiagnoseOne(candidate);
      if (!diagnosis.ok()) {
        refused.Update(diagnosis.status());
        std::cerr << "left out: " << diagnosis.status().message() << "\n";
        continue;
      }
      for (const Similar& one : SimilarCases(*diagnosis, earlier.diagnoses)) {
        diagnosis->add_similar(CitationOf(*one.diagnosis));
      }
      Print(*diagnosis);
      if (options_.record) {
        OPTRAIL_RETURN_IF_ERROR(history.AppendDiagnosis(*diagnosis));
      }
      diagnoses.push_back(*std::move(diagnosis));
    }
    if (diagnoses.empty()) return refused;
    if (diagnoses.size() > 1 && tracker::IsForPeople(options_.common.format)) {
      PrintSummary(diagnoses);
    }
    if (options_.common.format == OutputFormat::kJson) {
      out_ << DiagnosesJson(diagnoses);
    }
    SayIfNothingWasTried(diagnoses);
    return ToInt(ExitCode::kOk);
  }

 private:
  void SayIfNothingWasTried(
      const std::vector<proto::Diagnosis>& diagnoses) const {
    if (!options_.try_advice) return;
    for (const proto::Diagnosis& diagnosis : diagnoses) {
      for (const proto::DiagnosisAdvice& advice : diagnosis.advice()) {
        if (!advice.outcome().empty()) return;
      }
    }
    std::cerr << "note: --try tried nothing: there is no advice that a search "
                 "or another backend could follow\n";
  }

  void Say(const std::string& line) const {
    if (!options_.quiet) std::cerr << line << "\n";
  }

  absl::Status FindCandidates() {
    absl::Status unavailable;
    std::vector<suites::TaskEntry> available;
    for (const suites::TaskEntry& task : options_.tasks) {
      if (task.available.ok()) {
        available.push_back(task);
      } else {
        unavailable.Update(task.available);
      }
    }
    if (available.empty()) return unavailable;
    OPTRAIL_ASSIGN_OR_RETURN(
        const std::vector<suites::BenchCase> cases,
        suites::MakeBenchCases(available, options_.context, options_.bench));
    std::map<std::string, proto::Config> configs;  // the last of each task
    for (const suites::BenchCase& one : cases) {
      configs[tuning::TaskText(one.task)] = one.config;
    }
    for (const suites::TaskEntry& task : available) {
      const auto config = configs.find(tuning::TaskText(task.task));
      if (config == configs.end()) continue;
      candidates_.push_back({{task, config->second}});
    }
    return absl::OkStatus();
  }

  // Puts the tasks first that could save the most time.
  absl::Status RankCandidates() {
    if (candidates_.size() < 2) return absl::OkStatus();
    suites::EvaluationOptions options;
    options.sampling = PairSampling();
    for (Candidate& candidate : candidates_) {
      const suites::TaskEntry& entry = candidate.subject.entry;
      const suites::Evaluation evaluation =
          evaluators_.Of(entry.task)
              .Evaluate(candidate.subject.config, options);
      const absl::optional<double> time_ns = TimeOf(evaluation);
      if (time_ns) {
        candidate.total_ns = *time_ns * entry.count;
        Numbers numbers;
        AddRoofline(entry, machine_, *time_ns, &numbers);
        const double reached = std::min(ReachedShare(numbers), 1.);
        if (reached > 0) candidate.reached = reached;
        candidate.recoverable_ns = candidate.total_ns * (1 - reached);
      } else {
        std::cerr << "not timed: " << suites::ShortTaskText(entry.task) << ": "
                  << proto::Outcome_Name(evaluation.trial().outcome()) << ": "
                  << EscapeForTerminal(evaluation.trial().detail()) << "\n";
      }
      total_ns_ += candidate.total_ns;
    }
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) {
                       return a.recoverable_ns > b.recoverable_ns;
                     });
    if (tracker::IsForPeople(options_.common.format)) PrintRanking();
    if (candidates_.size() > static_cast<size_t>(options_.slowest)) {
      candidates_.resize(static_cast<size_t>(options_.slowest));
    }
    return absl::OkStatus();
  }

  void PrintRanking() {
    constexpr size_t kMostShown = 10;
    Table table({{"task"},
                 {"calls", Align::kRight},
                 {"time", Align::kRight, "total_ns"},
                 {"share", Align::kRight},
                 {"of ceiling", Align::kRight, "reached"},
                 {"above it", Align::kRight, "recoverable_ns"}});
    for (size_t i = 0; i < candidates_.size() && i < kMostShown; ++i) {
      const Candidate& candidate = candidates_[i];
      const double share = total_ns_ > 0 ? candidate.total_ns / total_ns_ : 0;
      table.AddRow({suites::ShortTaskText(candidate.subject.entry.task),
                    Cell::Integer(candidate.subject.entry.count),
                    Cell::Number(candidate.total_ns,
                                 FormatDurationNs(candidate.total_ns)),
                    Cell::Number(share, absl::StrFormat("%.1f%%", 100 * share)),
                    candidate.reached
                        ? Cell::Number(*candidate.reached,
                                       absl::StrFormat(
                                           "%.0f%%", 100 * *candidate.reached))
                        : Cell::None(),
                    Cell::Number(candidate.recoverable_ns,
                                 FormatDurationNs(candidate.recoverable_ns))});
    }
    tracker::PrintTable(table, options_.common.format, out_);
    out_ << "\n";
  }

  AdviceTools Tools() {
    AdviceTools tools;
    tools.evaluator_for =
        [this](const proto::Task& task) -> suites::Evaluator& {
      return evaluators_.Of(task);
    };
    tools.hardware = options_.context.hardware;
    if (options_.context.hardware.device_kind() == proto::CPU) {
      tools.cores = options_.context.hardware.cores();
    }
    if (!options_.try_advice) return tools;
    tools.search = [this](const suites::TaskEntry& entry,
                          const suites::SearchWithin& within)
        -> absl::StatusOr<proto::Config> {
      suites::TuneDriverOptions tune = options_.tune;
      tune.within = within;
      tune.keep = false;
      evaluators_.Rest();
      OPTRAIL_ASSIGN_OR_RETURN(
          const std::vector<suites::TuneSummary> summaries,
          suites::TuneTasks({entry}, options_.context, tune));
      const suites::TuneSummary& summary = summaries[0];
      if (!summary.session || !summary.session->has_winner()) {
        return absl::NotFoundError(
            absl::StrCat("the search found no winner: ", summary.error));
      }
      return summary.session->winner();
    };
    return tools;
  }

  absl::StatusOr<proto::Diagnosis> DiagnoseOne(const Candidate& candidate) {
    OPTRAIL_ASSIGN_OR_RETURN(
        proto::Diagnosis diagnosis,
        Diagnose(candidate.subject, machine_, Tools(), {options_.try_advice}));
    diagnosis.set_diagnosis_id(
        tracker::NewRecordId(diagnosis.created_unix_ns()));
    *diagnosis.mutable_commit() = options_.context.commit;
    diagnosis.set_workload(options_.workload);
    if (total_ns_ > 0) {
      diagnosis.set_workload_share(candidate.total_ns / total_ns_);
    }
    return diagnosis;
  }

  void Print(const proto::Diagnosis& diagnosis) {
    if (options_.common.format == OutputFormat::kJson) return;
    const bool markdown = options_.common.format == OutputFormat::kMarkdown;
    // Several tasks lack the same numbers, which the summary names once.
    out_ << WrapProse(DiagnosisText(diagnosis, markdown,
                                    /*with_unknown=*/candidates_.size() < 2),
                      markdown ? 0 : TerminalWidth())
         << "\n";
  }

  void PrintSummary(const std::vector<proto::Diagnosis>& diagnoses) {
    tracker::PrintTable(SummaryOf(diagnoses), options_.common.format, out_);
    const std::string unknown = UnknownText(diagnoses);
    if (unknown.empty()) return;
    const bool markdown = options_.common.format == OutputFormat::kMarkdown;
    out_ << "\n"
         << WrapProse(absl::StrCat(markdown ? "- " : "",
                                   "not known: ", SanitiseText(unknown), "\n"),
                      markdown ? 0 : TerminalWidth());
  }

  const DiagnoseCommand& options_;
  std::ostream& out_;
  Evaluators evaluators_;
  std::vector<Candidate> candidates_;
  double total_ns_ = 0;
  int begun_ = 0;
  Machine machine_;
};

}  // namespace

absl::StatusOr<int> RunDiagnose(const DiagnoseCommand& options,
                                std::ostream& out) {
  if (options.common.format == OutputFormat::kCsv) {
    return absl::InvalidArgumentError(
        "flag --format=csv: a diagnosis is no table; expected table, json or "
        "markdown");
  }
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(options.slowest >= 1, "slowest",
                                             options.slowest, "at least 1"));
  // The last check: it makes the folder.
  if (options.record) {
    OPTRAIL_RETURN_IF_ERROR(
        tracker::CheckHistoryIsWritable(options.common.history));
  }
  return DiagnoseCall(options, out).Run();
}

absl::StatusOr<int> RunCalibration(const tracker::CommonOptions& options,
                                   std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::History history,
                           tracker::OpenHistory(options));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::LoadedDiagnoses loaded,
                           history.LoadDiagnoses());
  tracker::WarnOfBadFiles(loaded.bad_files);
  tracker::PrintTable(tracker::CalibrationTable(loaded.diagnoses),
                      options.format, out);
  for (const proto::Diagnosis& diagnosis : loaded.diagnoses) {
    for (const proto::DiagnosisAdvice& advice : diagnosis.advice()) {
      if (tracker::WasTried(advice)) return ToInt(ExitCode::kOk);
    }
  }
  std::cerr
      << "no advice was tried yet; next: optrail diagnose --op=NAME --try\n";
  return ToInt(ExitCode::kNotEnoughData);
}

}  // namespace optrail::diagnosis
