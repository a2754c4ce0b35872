#include "reports/markdown_report.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/text/markdown.h"
#include "base/text/units.h"
#include "reports/overview.h"
#include "tracker/series/value_text.h"

namespace optrail::reports {
namespace {

// "`softmax/...` and 3 more".
std::string Benchmarks(const ReportData& data, const AttentionRow& row) {
  std::string text = EscapeForMarkdown(data.series[row.series[0]].name);
  if (row.series.size() > 1) {
    absl::StrAppend(&text, " and ", row.series.size() - 1, " more");
  }
  return text;
}

// The change of one series with its interval, or the smallest and the largest
// change of several.
std::string Change(const ReportData& data, const AttentionRow& row) {
  if (!row.change_low) return "";
  const SeriesView& series = data.series[row.series[0]];
  if (row.series.size() > 1) {
    return absl::StrCat(FormatChange(*row.change_low), " to ",
                        FormatChange(*row.change_high));
  }
  std::string text = FormatChange(*series.ratio - 1);
  if (series.ratio_low && series.ratio_high) {
    absl::StrAppend(&text, " (", FormatChange(*series.ratio_low - 1), " to ",
                    FormatChange(*series.ratio_high - 1), ")");
  }
  return text;
}

// "`1a2b3c4d..5e6f7a8b`, 3 commits"; of one suspect its subject.
std::string Suspects(const ReportData& data, const AttentionRow& row) {
  if (row.range.empty()) return EscapeForMarkdown(row.text);
  std::string text = EscapeForMarkdown(row.range);
  if (row.suspect_count == 1 || (!row.suspect_count && row.good < 0)) {
    return absl::StrCat(text, " ",
                        EscapeForMarkdown(data.commits[row.bad].subject));
  }
  if (row.suspect_count) {
    absl::StrAppend(&text, ", ", *row.suspect_count, " commits");
  }
  return text;
}

void AppendAttention(const ReportData& data, const Overview& overview,
                     int max_rows, std::string* out) {
  if (overview.attention.empty()) return;
  absl::StrAppend(out,
                  "\n| verdict | benchmarks | hardware | change | suspected "
                  "|\n|---|---|---|---:|---|\n");
  int rows = 0;
  for (const AttentionRow& row : overview.attention) {
    if (rows++ == max_rows) break;
    const std::string hardware =
        absl::StrJoin(row.hardware, ", ", [&](std::string* text, const int i) {
          absl::StrAppend(text, EscapeForMarkdown(data.hardware[i].id));
        });
    absl::StrAppend(out, "| ", tracker::InfoOf(row.verdict).sign, " ",
                    tracker::VerdictName(row.verdict), " | ",
                    Benchmarks(data, row), " | ", hardware, " | ",
                    Change(data, row), " | ", Suspects(data, row), " |\n");
  }
  const int rest = static_cast<int>(overview.attention.size()) - max_rows;
  if (rest > 0) absl::StrAppend(out, "\n", rest, " more are not listed.\n");
}

// Appends the evidence for each change for the worse, and commands that answer
// it.
void AppendEvidence(const ReportData& data, const Overview& overview,
                    int max_rows, std::string* out) {
  int rows = 0;
  for (const AttentionRow& row : overview.attention) {
    const SeriesView& first = data.series[row.series[0]];
    if (!first.decided_by || !(first.decided_by->worse_by > 0)) continue;
    if (rows++ == max_rows) break;
    absl::StrAppend(out, rows == 1 ? "\n" : "", "- ",
                    EscapeForMarkdown(row.text));
    for (const NextCommand& command : row.commands) {
      absl::StrAppend(out, "\n  - ", command.what, ": ",
                      CodeForMarkdown(command.text));
    }
    absl::StrAppend(out, "\n");
  }
}

// Benchmarks over hardware, where some verdict says something new.
void AppendMatrix(const ReportData& data, const Overview& overview,
                  int max_rows, std::string* out) {
  const HardwareMatrix& matrix = overview.matrix;
  if (matrix.rows.empty()) return;
  absl::StrAppend(out, "\n### By hardware\n\n| benchmark |");
  for (const int i : matrix.hardware) {
    absl::StrAppend(out, " ", EscapeForMarkdown(data.hardware[i].id), " |");
  }
  absl::StrAppend(out, "\n|---|");
  for (size_t i = 0; i < matrix.hardware.size(); ++i) {
    absl::StrAppend(out, "---|");
  }
  absl::StrAppend(out, "\n");
  for (size_t k = 0; k < matrix.rows.size() && k < max_rows; ++k) {
    std::string name, cells;
    for (const int i : matrix.rows[k].series) {
      if (i == HardwareMatrix::kNotThere) {
        absl::StrAppend(&cells, " not measured |");
        continue;
      }
      const SeriesView& series = data.series[i];
      name = series.name;
      absl::StrAppend(&cells, " ", tracker::InfoOf(series.verdict).sign, " ",
                      tracker::VerdictName(series.verdict),
                      series.ratio ? " " + FormatChange(*series.ratio - 1) : "",
                      " |");
    }
    absl::StrAppend(out, "| ", EscapeForMarkdown(name), " |", cells, "\n");
  }
  const int rest = static_cast<int>(matrix.rows.size()) - max_rows;
  if (rest > 0) absl::StrAppend(out, "\n", rest, " more are not listed.\n");
}

void AppendTuned(const ReportData& data, const Overview& overview, int max_rows,
                 std::string* out) {
  if (overview.pairs.empty()) return;
  absl::StrAppend(out,
                  "\n### Default vs tuned\n\n| series | hardware | default | "
                  "tuned | speedup | of roofline "
                  "|\n|---|---|---:|---:|---:|---:|\n");
  std::vector<TunedPair> pairs = overview.pairs;
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const TunedPair& a, const TunedPair& b) {
                     return a.speedup > b.speedup;
                   });
  bool all_bound = true;
  for (int i = 0; i < pairs.size() && i < max_rows; ++i) {
    const SeriesView& tuned = data.series[pairs[i].tuned_series];
    all_bound &=
        tracker::IsBoundByRoofline(tuned.roofline_fraction.value_or(0));
    absl::StrAppend(out, "| ", EscapeForMarkdown(tuned.operator_name), " ",
                    EscapeForMarkdown(tuned.shape), " | ",
                    EscapeForMarkdown(data.hardware[tuned.hardware].id), " | ",
                    FormatDurationNs(pairs[i].default_ns), " | ",
                    FormatDurationNs(pairs[i].tuned_ns), " | ",
                    pairs[i].same_config
                        ? "same config"
                        : absl::StrFormat("%.2fx", pairs[i].speedup),
                    " | ",
                    tuned.roofline_fraction
                        ? tracker::RooflineText(*tuned.roofline_fraction)
                        : "",
                    " |\n");
  }
  const int rest = static_cast<int>(pairs.size()) - max_rows;
  if (rest > 0) absl::StrAppend(out, "\n", rest, " more are not listed.\n");
  if (!all_bound) absl::StrAppend(out, "\n", tracker::kNoBoundText, ".\n");
}

void AppendWorkloads(const ReportData& data, int max_rows, std::string* out) {
  for (const WorkloadView& workload : data.workloads) {
    const tracker::WorkloadTime& time = workload.time;
    absl::StrAppend(out, "\n### ", EscapeForMarkdown(time.name), " on ",
                    EscapeForMarkdown(data.hardware[workload.hardware].id),
                    "\n\n");
    for (absl::string_view line : absl::StrSplit(tracker::WorkloadSummary(time),
                                                 '\n', absl::SkipEmpty())) {
      absl::StrAppend(out, "- ", EscapeForMarkdown(line), "\n");
    }
    absl::StrAppend(out,
                    "\n| layer | calls | default | tuned | best | by | share "
                    "|\n|---|---:|---:|---:|---:|---|---:|\n");
    const auto text = [](double ns) {
      return ns > 0 ? FormatDurationNs(ns) : std::string();
    };
    for (int i = 0; i < time.layers.size() && i < max_rows; ++i) {
      const tracker::LayerTime& layer = time.layers[i];
      absl::StrAppend(out, "| ", EscapeForMarkdown(layer.layer.operator_name()),
                      " ", EscapeForMarkdown(layer.layer.shape()), " | ",
                      layer.layer.count(), " | ", text(layer.default_ns), " | ",
                      text(layer.tuned_ns), " | ", text(layer.best_ns), " | ",
                      EscapeForMarkdown(layer.best_backend), " | ",
                      layer.counts ? FormatPercent(layer.share)
                                   : EscapeForMarkdown(layer.layer.way()),
                      " |\n");
    }
    const int rest = static_cast<int>(time.layers.size()) - max_rows;
    if (rest > 0) absl::StrAppend(out, "\n", rest, " more are not listed.\n");
  }
}

// "10.4% faster" is told by the proof; how the finalists of a session without
// one compared is no proof.
std::string SpeedupText(const tracker::SessionAnalysis& session) {
  if (!session.speedup_over_default) return "";
  return absl::StrFormat("%.2fx%s", *session.speedup_over_default,
                         session.header.has_proof() ? "" : ", not proven");
}

void AppendSessions(const ReportData& data, int max_rows, std::string* out) {
  if (data.sessions.empty()) return;
  absl::StrAppend(
      out,
      "\n### Tuning\n\n| task | hardware | trials | winner | to 95% | "
      "speedup | proof | winner's curse "
      "|\n|---|---|---:|---:|---:|---:|---|---:|\n");
  for (int i = 0; i < data.sessions.size() && i < max_rows; ++i) {
    const TuningSession& session = data.sessions[i];
    const tracker::SessionAnalysis& of = session.of;
    absl::StrAppend(
        out, "| ", EscapeForMarkdown(of.task_text), " | ",
        EscapeForMarkdown(data.hardware[session.hardware].id), " | ",
        of.trial_count(), " | ",
        of.winner_value
            ? EscapeForMarkdown(absl::StrCat(
                  of.is_time() ? "" : of.metric() + " ",
                  tracker::FormatValue(*of.winner_value, of.unit())))
            : "",
        " | ",
        of.trials_to_95_percent ? absl::StrCat(*of.trials_to_95_percent) : "",
        " | ", SpeedupText(of), " | ",
        EscapeForMarkdown(of.header.has_proof() ? of.proof_text
                                                : of.no_winner_text),
        " | ", of.winners_curse ? FormatChange(*of.winners_curse) : "", " |\n");
  }
  const int rest = static_cast<int>(data.sessions.size()) - max_rows;
  if (rest > 0) absl::StrAppend(out, "\n", rest, " more are not listed.\n");
}

// The configs of a session with several objectives that no other beats in all.
void AppendFronts(const ReportData& data, int max_rows, std::string* out) {
  for (const TuningSession& session : data.sessions) {
    const tracker::SessionAnalysis& of = session.of;
    if (of.front.empty()) continue;
    absl::StrAppend(out, "\n#### Front of ", EscapeForMarkdown(of.task_text),
                    "\n\n| config |");
    for (const proto::Objective& objective : of.objectives) {
      absl::StrAppend(
          out, " ", EscapeForMarkdown(objective.metric()),
          objective.unit().empty()
              ? ""
              : absl::StrCat(", ", EscapeForMarkdown(objective.unit())),
          " |");
    }
    absl::StrAppend(out, "\n|---|");
    for (size_t i = 0; i < of.objectives.size(); ++i) {
      absl::StrAppend(out, "---:|");
    }
    absl::StrAppend(out, "\n");
    int rows = 0;
    for (const tracker::SessionAnalysis::FrontPoint& point : of.front) {
      if (++rows > max_rows) break;
      absl::StrAppend(out, "| ",
                      EscapeForMarkdown(of.trials[point.trial].config_text),
                      " |");
      for (const absl::optional<double>& value : point.values) {
        absl::StrAppend(out, " ", absl::StrFormat("%.4g", value.value_or(0)),
                        " |");
      }
      absl::StrAppend(out, "\n");
    }
    const int rest = static_cast<int>(of.front.size()) - max_rows;
    if (rest > 0) absl::StrAppend(out, "\n", rest, " more are not listed.\n");
  }
}

}  // namespace

std::string WriteMarkdownReport(const ReportData& data,
                                const MarkdownReportOptions& options) {
  std::string out = absl::StrCat("## ", EscapeForMarkdown(data.title), "\n\n");
  if (data.synthetic) {
    absl::StrAppend(&out, "Synthetic data: every number here is made up.\n\n");
  }
  for (const std::string& warning : data.warnings) {
    absl::StrAppend(&out, "- ", EscapeForMarkdown(warning), "\n");
  }
  if (data.series.empty() && data.sessions.empty()) {
    absl::StrAppend(&out,
                    "There is no data to show. Record a first run with\n\n"
                    "    optrail bench --record\n");
    return out;
  }
  const Overview overview = Summarize(data);
  if (overview.series > 0) {
    absl::StrAppend(&out, "**", overview.series,
                    " series**: ", tracker::CountsText(overview.verdicts),
                    ".\n", data.changes.Text(tracker::kLeastEffect), ".\n");
  }
  const int others = static_cast<int>(data.series.size()) - overview.series;
  if (others > 0) {
    absl::StrAppend(&out, others,
                    " series of other metrics are not counted.\n");
  }
  if (!data.commits.empty()) {
    const Commit& newest = data.commits.back();
    absl::StrAppend(&out, "Newest commit: ",
                    EscapeForMarkdown(absl::StrCat(
                        newest.id.empty() ? "unknown" : newest.id.substr(0, 8),
                        " ", newest.subject)),
                    "\n");
  }
  AppendAttention(data, overview, options.max_rows, &out);
  AppendEvidence(data, overview, options.max_rows, &out);
  AppendMatrix(data, overview, options.max_rows, &out);
  AppendTuned(data, overview, options.max_rows, &out);
  AppendWorkloads(data, options.max_rows, &out);
  AppendSessions(data, options.max_rows, &out);
  AppendFronts(data, options.max_rows, &out);
  return out;
}

}  // namespace optrail::reports
