// `optrail predict`: what tuning is expected to bring, before it is tried.

#include "suites/predict/predict.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/exit_code.h"
#include "base/status_macros.h"
#include "base/text/table.h"
#include "base/text/units.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "suites/command/command_flags.h"
#include "suites/predict/start_order.h"
#include "suites/worker/run_context.h"
#include "suites/workload/tasks.h"
#include "tracker/command/command_support.h"
#include "tracker/history/history.h"

namespace optrail::cli {
namespace {

// Bounds that too few sessions leave open are empty.
Cell GainCell(absl::optional<double> gain) {
  return gain.has_value() && std::isfinite(*gain)
             ? Cell::Number(*gain, FormatPercent(*gain))
             : Cell::None();
}

struct Row {
  suites::StartTask task;
  suites::Start start;
  absl::optional<suites::Prediction> prediction;  // absent: see Predict
};

Cell NsCell(const suites::Start& start, double ns) {
  return start.known() ? Cell::Number(ns, FormatDurationNs(ns)) : Cell::None();
}

Cell SecondsCell(double seconds) {
  if (!std::isfinite(seconds)) return Cell::None();
  return Cell::Number(seconds, FormatDurationNs(seconds * 1e9));
}

// Says how far the predictions of this history can be believed.
std::string ScoreText(const suites::GainPredictor& predictor) {
  const suites::PredictionScore score =
      suites::ScorePredictions(predictor.LeaveOneOut(/*estimates=*/true));
  // Intervals without a bound hold for anything.
  if (score.predictions <= suites::kFewestForBounds) return "";
  return absl::StrFormat(
      "note: of the %d tuned tasks of this history, each predicted from the "
      "others, %d lie in their intervals; the order of the gains agrees by "
      "%.2f (1: the same order, 0: none)\n",
      score.predictions, score.covered, score.rank_correlation);
}

// Says why upper bounds are empty; "" where none is.
std::string BoundsText(const std::vector<Row>& rows) {
  const bool lacks_bounds =
      std::any_of(rows.begin(), rows.end(), [](const Row& row) {
        return row.prediction &&
               row.prediction->sessions < suites::kFewestForBounds;
      });
  if (!lacks_bounds) return "";
  return absl::StrCat("note: fewer than ", suites::kFewestForBounds,
                      " sessions of other tasks give no upper bounds; next: "
                      "optrail tune for more shapes\n");
}

constexpr char kNextOfNone[] =
    "; next: optrail tune for some shapes, or --history=FOLDER with sessions "
    "of other hardware\n";

std::string ReasonOfNone(const tracker::History& history) {
  return absl::StrCat("no session of another task in ", history.dir(),
                      " says what its winner gained");
}

absl::StatusOr<int> Predict() {
  OPTRAIL_ASSIGN_OR_RETURN(
      const suites::TaskSelection selection,
      suites::SelectionFromFlags("", absl::GetFlag(FLAGS_workload)));
  // Nothing is measured, so the device need not be here.
  std::string note;
  OPTRAIL_ASSIGN_OR_RETURN(
      const suites::RunContext context,
      suites::PlanRunContext(selection.device, absl::GetFlag(FLAGS_history),
                             absl::GetFlag(FLAGS_store), &note));
  if (!note.empty()) std::cerr << "note: " << note << "\n";
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<suites::TaskEntry> tasks,
                           suites::SelectTasks(selection, context.hardware));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::History history,
                           tracker::OpenHistory(TrackerOptions()));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::SessionList list,
                           history.ListSessions());
  const suites::GainPredictor predictor(list.sessions, suites::WorkOf);
  std::vector<suites::StartTask> weighted;
  for (const suites::TaskEntry& entry : tasks) {
    weighted.push_back({entry.task, static_cast<double>(entry.count)});
  }
  // In the order in which `tune --workload` begins; of anything else, the
  // largest gain first.
  std::vector<Row> rows;
  for (const suites::Start& start : suites::StartOrder(predictor, weighted)) {
    const suites::StartTask& task = weighted[start.task];
    const auto prediction =
        start.known() ? start.prediction : predictor.Predict(task.task);
    // A task that alone was tuned has no other to be predicted from.
    if (prediction || predictor.Realised(task.task)) {
      rows.push_back({task, start, prediction});
    }
  }
  if (rows.empty()) {
    const std::string reason = ReasonOfNone(history);
    std::cerr << reason << kNextOfNone;
    if (absl::GetFlag(FLAGS_format) == OutputFormat::kJson) {
      Table why({{"exit_code"}, {"reason"}});
      why.AddRow({Cell::Integer(ToInt(ExitCode::kNotEnoughData)), reason});
      std::cout << why.Format(OutputFormat::kJson);
    }
    return ToInt(ExitCode::kNotEnoughData);
  }
  if (absl::GetFlag(FLAGS_workload).empty()) {
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      const auto gain = [](const Row& row) {
        return row.prediction ? row.prediction->gain : -1;
      };
      return gain(a) > gain(b);
    });
  }
  Table table({{"task", Align::kLeft, "", Clip::kFold},
               {"calls", Align::kRight},
               {"a call", Align::kRight, "call_ns"},
               {"a run saves", Align::kRight, "saved_ns"},
               {"gain", Align::kRight},
               {"at least", Align::kRight, "gain_low"},
               {"at most", Align::kRight, "gain_high"},
               {"tuning takes", Align::kRight, "seconds"},
               {"95% within", Align::kRight, "seconds_high"},
               {"tuned here", Align::kRight, "realised_gain"},
               {"most alike", Align::kLeft, "nearest_session"}});
  for (const Row& row : rows) {
    std::vector<Cell> cells = {
        suites::ShortTaskText(row.task.task),
        Cell::Integer(static_cast<int64_t>(row.task.calls)),
        NsCell(row.start, row.start.call_ns),
        NsCell(row.start, row.start.saved_ns)};
    const Cell realised = GainCell(predictor.Realised(row.task.task));
    if (row.prediction) {
      const suites::Prediction& one = *row.prediction;
      cells.insert(
          cells.end(),
          {GainCell(one.gain), GainCell(one.gain_low), GainCell(one.gain_high),
           SecondsCell(one.seconds), SecondsCell(one.seconds_high), realised,
           one.nearest_session});
    } else {
      cells.resize(cells.size() + 5, Cell::None());
      cells.insert(cells.end(), {realised, Cell::None()});
    }
    table.AddRow(std::move(cells));
  }
  std::cout << table.Format(absl::GetFlag(FLAGS_format), TerminalWidth());
  std::cerr << ScoreText(predictor) << BoundsText(rows);
  const bool one_is_predicted =
      std::any_of(rows.begin(), rows.end(),
                  [](const Row& row) { return row.prediction.has_value(); });
  if (!one_is_predicted) std::cerr << ReasonOfNone(history) << kNextOfNone;
  return ToInt(one_is_predicted ? ExitCode::kOk : ExitCode::kNotEnoughData);
}

}  // namespace

suites::Command PredictCommand() {
  suites::Command command;
  command.name = "predict";
  command.summary =
      "Says what tuning is expected to bring, and how long it takes.";
  command.details = HelpText("predict");
  command.flags = {"op",      "shape",   "workload", "threads",
                   "device",  "backend", "cache",    "launch",
                   "history", "store",   "format"};
  command.run = [](const std::vector<std::string>&) { return Predict(); };
  return command;
}

}  // namespace optrail::cli
