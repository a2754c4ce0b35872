#include "suites/tune/tune_summary.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/stats/statistics.h"
#include "base/text/units.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/stop_reason.h"
#include "tuning/session/objective.h"
#include "tuning/session/results.h"
#include "tuning/session/shared_knobs.h"

namespace optrail::suites {

using tuning::CanonicalText;

std::string ObjectiveValueText(double value,
                               const proto::Objective& objective) {
  if (objective.unit() == "ns") return FormatDurationNs(value);
  return absl::StrCat(absl::StrFormat("%.4g ", value), objective.unit());
}

const proto::Finalist* WinningFinalist(const proto::Session& session) {
  if (!session.has_winner()) return nullptr;
  for (const proto::Finalist& finalist : session.finalists()) {
    if (CanonicalText(finalist.config()) == CanonicalText(session.winner())) {
      return &finalist;
    }
  }
  return nullptr;
}

const proto::Finalist* DefaultFinalist(const proto::Session& session) {
  for (const proto::Finalist& finalist : session.finalists()) {
    if (finalist.is_default()) return &finalist;
  }
  return nullptr;
}

bool HasFront(const proto::Session& session) {
  return !tuning::NamesWinner(tuning::ObjectivesOf(session)) &&
         !tuning::ResultsOf(session).empty();
}

std::string WhyNotTuned(const TuneSummary& summary) {
  if (!summary.error.empty()) return summary.error;
  if (summary.session) return tuning::NoWinnerText(*summary.session);
  return summary.skipped ? "" : "it was not tuned";
}

namespace {

bool IsFailed(proto::Outcome outcome) {
  return outcome != proto::OK && outcome != proto::CENSORED &&
         outcome != proto::CONTENDED && outcome != proto::OUTCOME_UNSPECIFIED;
}

// The gain that the proof found, "12.3% +-0.8%", and the reason if that is
// wider than was requested. A config that was not proven has no gain to show.
Cell GainCell(const proto::Session& session) {
  const proto::Proof& proof = session.proof();
  if (!session.has_proof() || !proof.has_gain()) return Cell::None();
  if (!proof.claimed()) return Cell::Number(0, "none proven");
  std::string text = FormatPercent(proof.gain());
  if (proof.has_gain_low()) {
    absl::StrAppend(&text, " +-",
                    FormatPercent((proof.gain_high() - proof.gain_low()) / 2));
  }
  if (const std::string note = tuning::ProofEndNote(proof); !note.empty()) {
    absl::StrAppend(&text, " (", note, ")");
  }
  return Cell::Number(proof.gain(), std::move(text));
}

}  // namespace

std::string FailuresText(const std::vector<TuneSummary>& summaries) {
  std::string text;
  for (const TuneSummary& summary : summaries) {
    if (!summary.error.empty()) {
      absl::StrAppend(
          &text, ShortTaskText(summary.task), ": ", summary.error,
          !summary.broke_off || absl::StrContains(summary.error, "next: ")
              ? "\n"
              : "; next: mend the cause, and the same command goes "
                "on with the trials made so far\n");
    }
    if (!summary.session.has_value()) continue;
    const proto::Session& session = *summary.session;
    // By outcome: the configs, and the first trial.
    struct Failures {
      std::vector<proto::Config> configs;
      const proto::Trial* first = nullptr;
    };
    std::map<proto::Outcome, Failures> failures;
    std::vector<proto::Config> worked;
    for (int i = session.warm_start_trial_count(); i < session.trials_size();
         ++i) {
      const proto::Trial& trial = session.trials(i);
      if (!IsFailed(trial.outcome())) {
        worked.push_back(trial.config());
        continue;
      }
      Failures& failure = failures[trial.outcome()];
      if (failure.configs.empty()) failure.first = &trial;
      failure.configs.push_back(trial.config());
    }
    for (const auto& [outcome, failure] : failures) {
      const proto::Trial& first = *failure.first;
      const std::string shared =
          tuning::SharedKnobsText(failure.configs, worked);
      absl::StrAppend(&text, ShortTaskText(summary.task), ": ",
                      failure.configs.size(), " x ",
                      tuning::OutcomeName(outcome), shared.empty() ? "" : ", ",
                      shared, ", first ", CanonicalText(first.config()),
                      first.detail().empty() ? "" : ": ", first.detail(), "\n");
    }
    if (!failures.empty()) {
      absl::StrAppend(&text, "  all of them: optrail show ",
                      session.session_id(), "\n");
    }
    if (const std::string why = tuning::NoWinnerText(session); !why.empty()) {
      absl::StrAppend(&text, ShortTaskText(summary.task), ": ", why, "\n");
      continue;
    }
    // These failed in the ranking or the proof, however good the search read
    // them. Without a winner the line above names them.
    for (const proto::Finalist& finalist : session.finalists()) {
      if (!IsFailed(finalist.outcome())) continue;
      absl::StrAppend(
          &text, ShortTaskText(summary.task), ": ",
          finalist.is_default() ? "the default, nothing is proven against it"
                                : CanonicalText(finalist.config()),
          ": ", tuning::OutcomeName(finalist.outcome()),
          finalist.detail().empty() ? "" : ": ", finalist.detail(), "\n");
    }
  }
  return text;
}

std::string TimeText(const std::vector<TuneSummary>& summaries,
                     absl::Duration elapsed) {
  // Less is no compiler's: kernels that are built in are made ready.
  constexpr int64_t kLeastCompileNs = 100'000'000;
  int64_t measure_ns = 0, compile_ns = 0, wait_ns = 0, overlap_ns = 0,
          rank_ns = 0, prove_ns = 0, open_ns = 0, turn_ns = 0, check_ns = 0,
          busy_ns = 0;
  for (const TuneSummary& summary : summaries) {
    if (!summary.session.has_value()) continue;
    const proto::SessionTime& time = summary.session->time();
    measure_ns += time.measure_ns();
    compile_ns += time.compile_ns();
    wait_ns += tuning::WaitedNs(time);
    overlap_ns += tuning::OverlapNs(time);
    rank_ns += time.rank_ns();
    prove_ns += time.prove_ns();
    open_ns += time.effort().open_ns();
    turn_ns += time.effort().turn_ns();
    check_ns += time.effort().check_ns();
    busy_ns += time.effort().busy_ns();
  }
  if (measure_ns + wait_ns + rank_ns + prove_ns == 0) return "";
  std::string text = absl::StrCat(
      "time: ", FormatDurationNs(measure_ns), " measuring, ",
      overlap_ns > 0 ? absl::StrCat(FormatDurationNs(overlap_ns),
                                    " of it at the same time, ")
                     : "",
      FormatDurationNs(wait_ns), " choosing and waiting, ",
      FormatDurationNs(rank_ns), " ranking, ", FormatDurationNs(prove_ns),
      " proving, ", FormatDurationNs(open_ns), " opening processes");
  if (turn_ns > 0) {
    absl::StrAppend(&text, ", ", FormatDurationNs(turn_ns),
                    " waiting for other sessions on the device");
  }
  if (check_ns > 0) {
    absl::StrAppend(&text, "; ", FormatDurationNs(check_ns),
                    " of it checking results");
  }
  if (compile_ns >= kLeastCompileNs) {
    const double beside =
        std::max(0.0, 1 - static_cast<double>(wait_ns) /
                              static_cast<double>(compile_ns));
    absl::StrAppend(&text, "; ", FormatDurationNs(compile_ns), " compiling, ",
                    FormatPercent(beside, 0), " of it beside them");
  }
  if (busy_ns > 0) {
    const double wall_ns = absl::ToDoubleNanoseconds(elapsed);
    absl::StrAppend(&text, "; the device worked ",
                    FormatPercent(static_cast<double>(busy_ns) / wall_ns, 0),
                    " of ", FormatDurationNs(wall_ns));
  }
  return text + "\n";
}

namespace {

using Objectives = std::vector<proto::Objective>;

// Returns the objectives of the sessions without time, which has its own
// columns. One call has the same objectives for all tasks.
Objectives ObjectivesIn(const std::vector<TuneSummary>& summaries) {
  Objectives objectives;
  for (const TuneSummary& summary : summaries) {
    if (!summary.session.has_value()) continue;
    for (proto::Objective& objective : tuning::ObjectivesOf(*summary.session)) {
      if (objective.metric() != tuning::kTimeMetric) {
        objectives.push_back(std::move(objective));
      }
    }
    break;
  }
  return objectives;
}

Cell ValueCell(const absl::optional<double>& value,
               const proto::Objective& objective) {
  return value ? Cell::Number(*value, ObjectiveValueText(*value, objective))
               : Cell::None();
}

// Uses the session's own objective of that name: work per call differs by task.
Cell ObjectiveCell(const proto::Session& session,
                   const proto::Finalist* finalist, const std::string& metric) {
  if (finalist == nullptr) return Cell::None();
  for (const proto::Objective& objective : tuning::ObjectivesOf(session)) {
    if (objective.metric() == metric) {
      return ValueCell(tuning::ValueOf(*finalist, objective), objective);
    }
  }
  return Cell::None();
}

// The times of the default and of the winner. If a proof has them, they come
// from the rounds in which its gain was found; the ranking before it measured
// both at other moments.
struct Times {
  absl::optional<double> fallback, winner;
};

absl::optional<double> MedianOf(
    const google::protobuf::RepeatedPtrField<proto::Measurement>& rounds) {
  std::vector<double> medians;
  for (const proto::Measurement& round : rounds) {
    if (round.has_median_ns()) medians.push_back(round.median_ns());
  }
  if (medians.empty()) return absl::nullopt;
  return Median(medians);
}

Times TimesOf(const proto::Session& session) {
  const proto::Proof& proof = session.proof();
  Times times;
  if (proof.claimed() && proof.metric() == tuning::kTimeMetric) {
    times = {MedianOf(proof.default_measurements()),
             MedianOf(proof.candidate_measurements())};
    if (times.fallback && times.winner) return times;
  }
  const auto ranked = [](const proto::Finalist* finalist) {
    return finalist != nullptr && !IsFailed(finalist->outcome()) &&
                   finalist->has_time_ns()
               ? absl::make_optional(finalist->time_ns())
               : absl::nullopt;
  };
  return {ranked(DefaultFinalist(session)), ranked(WinningFinalist(session))};
}

// A speed-up says nothing more where the gain was proven.
bool AllAreProven(const std::vector<TuneSummary>& summaries) {
  return std::all_of(summaries.begin(), summaries.end(),
                     [](const TuneSummary& summary) {
                       return !summary.session.has_value() ||
                              summary.session->proof().has_gain();
                     });
}

std::vector<Column> SummaryColumns(const Objectives& objectives,
                                   bool with_configs, bool with_speedup) {
  std::vector<Column> columns = {{"task", Align::kLeft, "", Clip::kFold},
                                 {"default", Align::kRight, "default_time_ns"},
                                 {"tuned", Align::kRight, "tuned_time_ns"}};
  if (with_speedup) columns.push_back({"speed-up", Align::kRight, "speedup"});
  columns.insert(columns.end(),
                 std::initializer_list<Column>{
                     {"gain", Align::kRight, "proven_gain", Clip::kFold},
                     {"trials", Align::kRight},
                     {"failed", Align::kRight},
                     {"stopped"}});
  size_t before = 3;
  for (const proto::Objective& objective : objectives) {
    for (const char* which : {"default", "tuned"}) {
      columns.insert(
          columns.begin() + before++,
          {absl::StrCat(which, " ", objective.metric()), Align::kRight,
           absl::StrCat(which, "_", objective.metric())});
    }
  }
  if (with_configs)
    columns.push_back({"config", Align::kLeft, "", Clip::kFold});
  return columns;
}

// Adds the trials, those that failed, why the search ended or has no winner,
// and the config that won.
void AddEnd(const proto::Session& session, std::vector<Cell>& row) {
  const int warm = session.warm_start_trial_count();
  int failed = 0;
  for (int i = warm; i < session.trials_size(); ++i) {
    failed += IsFailed(session.trials(i).outcome());
  }
  row.push_back(Cell::Integer(session.trials_size() - warm));
  row.push_back(Cell::Integer(failed));
  const tuning::NoWinner why = tuning::WhyNoWinner(session);
  row.push_back(why == tuning::NoWinner::kHasOne
                    ? tuning::StopReasonName(session.stop_reason())
                    : tuning::NoWinnerName(why));
  row.push_back(session.has_winner() ? CanonicalText(session.winner()) : "");
}

// `with_errors` adds a column for errors, which people read in lines of their
// own below a table on a terminal.
Table SummaryTable(const std::vector<TuneSummary>& summaries, bool with_configs,
                   bool with_speedup, bool with_errors) {
  const Objectives objectives = ObjectivesIn(summaries);
  std::vector<Column> columns =
      SummaryColumns(objectives, with_configs, with_speedup);
  if (with_errors) columns.push_back({"error"});
  Table table(columns);
  const auto add = [&](std::vector<Cell> row, const std::string& error) {
    if (!with_configs) row.resize(columns.size(), Cell::None());
    if (with_errors) row.push_back(error.empty() ? Cell::None() : Cell(error));
    table.AddRow(std::move(row));
  };
  for (const TuneSummary& summary : summaries) {
    std::vector<Cell> row = {ShortTaskText(summary.task)};
    if (!summary.session.has_value()) {
      row.insert(row.end(), (with_speedup ? 6 : 5) + 2 * objectives.size(),
                 Cell::None());
      row.push_back(summary.skipped ? "in the store" : "failed");
      row.push_back("");
      add(std::move(row), WhyNotTuned(summary));
      continue;
    }
    const proto::Session& session = *summary.session;
    const proto::Finalist* fallback = DefaultFinalist(session);
    const proto::Finalist* winner = WinningFinalist(session);
    const Times times = TimesOf(session);
    const auto cell = [](const absl::optional<double>& time_ns,
                         const proto::Finalist* finalist) {
      if (time_ns) return Cell::Number(*time_ns, FormatDurationNs(*time_ns));
      return finalist != nullptr && IsFailed(finalist->outcome())
                 ? Cell(tuning::OutcomeName(finalist->outcome()))
                 : Cell::None();
    };
    row.push_back(cell(times.fallback, fallback));
    row.push_back(cell(times.winner, winner));
    for (const proto::Objective& objective : objectives) {
      row.push_back(ObjectiveCell(session, fallback, objective.metric()));
      row.push_back(ObjectiveCell(session, winner, objective.metric()));
    }
    if (with_speedup && times.fallback && times.winner) {
      const double speedup = *times.fallback / *times.winner;
      row.push_back(Cell::Number(speedup, absl::StrFormat("%.2fx", speedup)));
    } else if (with_speedup) {
      row.push_back(Cell::None());
    }
    row.push_back(GainCell(session));
    AddEnd(session, row);
    add(std::move(row), WhyNotTuned(summary));
  }
  return table;
}

}  // namespace

std::string FormatTuneSummaries(const std::vector<TuneSummary>& summaries,
                                OutputFormat format) {
  // A narrower terminal has no room for a config beside the other columns.
  constexpr int kRoomForConfigs = 150;
  const int width = format == OutputFormat::kTable ? TerminalWidth() : 0;
  const bool with_configs = width == 0 || width >= kRoomForConfigs;
  const bool for_people =
      format == OutputFormat::kTable || format == OutputFormat::kMarkdown;
  return SummaryTable(summaries, with_configs,
                      /*with_speedup=*/!for_people || !AllAreProven(summaries),
                      /*with_errors=*/format != OutputFormat::kTable)
      .Format(format, width);
}

std::string FormatFronts(const std::vector<TuneSummary>& summaries,
                         OutputFormat format) {
  std::string text;
  for (const TuneSummary& summary : summaries) {
    if (!summary.session || !HasFront(*summary.session)) continue;
    const proto::Session& session = *summary.session;
    const Objectives objectives = tuning::ObjectivesOf(session);
    std::vector<Column> columns = {{"task", Align::kLeft, "", Clip::kFold}};
    for (const proto::Objective& objective : objectives) {
      columns.push_back({objective.metric(), Align::kRight});
    }
    columns.push_back({"config"});
    Table table(std::move(columns));
    const std::vector<tuning::Result> results = tuning::ResultsOf(session);
    for (const int i : tuning::FrontOf(objectives, results)) {
      std::vector<Cell> row = {ShortTaskText(summary.task)};
      for (size_t k = 0; k < objectives.size(); ++k) {
        row.push_back(ValueCell(results[i].values[k], objectives[k]));
      }
      row.push_back(CanonicalText(session.trials(results[i].trial).config()));
      table.AddRow(std::move(row));
    }
    text += table.Format(format,
                         format == OutputFormat::kTable ? TerminalWidth() : 0);
  }
  return text;
}

std::string WorkloadTotalText(const std::vector<TuneSummary>& summaries) {
  double default_ns = 0, tuned_ns = 0;
  int tasks = 0;
  int64_t trials = 0;
  for (const TuneSummary& summary : summaries) {
    if (!summary.session.has_value()) continue;
    const proto::Session& session = *summary.session;
    trials += session.trials_size() - session.warm_start_trial_count();
    const Times times = TimesOf(session);
    if (!times.fallback || !times.winner) continue;
    ++tasks;
    default_ns += summary.count * *times.fallback;
    tuned_ns += summary.count * *times.winner;
  }
  if (tasks == 0) return "";
  return absl::StrFormat(
      "a run of %s: %s by default, %s tuned (%.2fx), after %d trials\n",
      tasks == 1 ? "this task" : absl::StrCat("these ", tasks, " tasks"),
      FormatDurationNs(default_ns), FormatDurationNs(tuned_ns),
      default_ns / tuned_ns, trials);
}

}  // namespace optrail::suites
