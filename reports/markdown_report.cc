#include "reports/markdown_report.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/units.h"
#include "reports/knob_effects.h"
#include "reports/overview.h"

namespace optrail::reports {
namespace {

// Shown beside the verdict's word, never instead of it.
std::string Value(const Series& series) {
  const Point* newest = NewestValue(series);
  if (newest == nullptr) return "not measured";
  if (series.unit == "ns") return FormatDurationNs(newest->value);
  return absl::StrFormat("%.4g %s", newest->value, EscapeMarkdown(series.unit));
}

std::string Change(const Series& series) {
  if (!series.ratio) return "";
  std::string text = FormatRatioAsPercent(*series.ratio);
  if (series.ratio_low && series.ratio_high) {
    absl::StrAppend(&text, " (", FormatRatioAsPercent(*series.ratio_low),
                    " to ", FormatRatioAsPercent(*series.ratio_high), ")");
  }
  return text;
}

std::string Since(const ReportData& data, const Series& series) {
  if (series.change_points.empty() || !series.ratio) {
    return EscapeMarkdown(series.verdict_detail);
  }
  const Point& point = series.points[series.change_points.back().point];
  const Commit& commit = data.commits[point.commit];
  return absl::StrCat(commit.id.empty() ? "" : commit.id.substr(0, 8), " ",
                      EscapeMarkdown(commit.subject));
}

void AppendAttention(const ReportData& data, const Overview& overview,
                     int max_rows, std::string* out) {
  if (overview.attention.empty()) return;
  absl::StrAppend(out,
                  "\n| verdict | series | hardware | newest | change | since "
                  "|\n|---|---|---|---:|---:|---|\n");
  int rows = 0;
  for (int i : overview.attention) {
    if (rows++ == max_rows) break;
    const Series& series = data.series[i];
    absl::StrAppend(
        out, "| ", InfoOf(series.verdict).sign, " ",
        VerdictName(series.verdict), " | ", EscapeMarkdown(series.name), " | ",
        EscapeMarkdown(data.hardware[series.hardware].id), " | ", Value(series),
        " | ", Change(series), " | ", Since(data, series), " |\n");
  }
  const int rest = static_cast<int>(overview.attention.size()) - max_rows;
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
  for (int i = 0; i < pairs.size() && i < max_rows; ++i) {
    const Series& tuned = data.series[pairs[i].tuned_series];
    absl::StrAppend(
        out, "| ", EscapeMarkdown(tuned.operator_name), " ",
        EscapeMarkdown(tuned.shape), " | ",
        EscapeMarkdown(data.hardware[tuned.hardware].id), " | ",
        FormatDurationNs(pairs[i].default_ns), " | ",
        FormatDurationNs(pairs[i].tuned_ns), " | ",
        absl::StrFormat("%.2fx", pairs[i].speedup), " | ",
        tuned.roofline_fraction
            ? absl::StrFormat("%.0f%%", *tuned.roofline_fraction * 100)
            : "",
        " |\n");
  }
  const int rest = static_cast<int>(pairs.size()) - max_rows;
  if (rest > 0) absl::StrAppend(out, "\n", rest, " more are not listed.\n");
}

void AppendSessions(const ReportData& data, int max_rows, std::string* out) {
  if (data.sessions.empty()) return;
  absl::StrAppend(out,
                  "\n### Tuning\n\n| task | hardware | trials | to 95% | "
                  "speedup, verified | winner's curse "
                  "|\n|---|---|---:|---:|---:|---:|\n");
  for (int i = 0; i < data.sessions.size() && i < max_rows; ++i) {
    const TuningSession& session = data.sessions[i];
    const Convergence convergence = Converge(session);
    const absl::optional<double> speedup = VerifiedSpeedup(session);
    const absl::optional<double> curse = WinnersCurse(session);
    absl::StrAppend(out, "| ", EscapeMarkdown(session.task), " | ",
                    EscapeMarkdown(data.hardware[session.hardware].id), " | ",
                    session.trials.size(), " | ",
                    convergence.trials_to_95_percent
                        ? absl::StrCat(*convergence.trials_to_95_percent)
                        : "",
                    " | ", speedup ? absl::StrFormat("%.2fx", *speedup) : "",
                    " | ", curse ? FormatRatioAsPercent(1 + *curse) : "",
                    " |\n");
  }
  const int rest = static_cast<int>(data.sessions.size()) - max_rows;
  if (rest > 0) absl::StrAppend(out, "\n", rest, " more are not listed.\n");
}

}  // namespace

std::string EscapeMarkdown(absl::string_view text) {
  constexpr char kReplacement[] = "\xef\xbf\xbd";
  std::string escaped;
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = text[i];
    const absl::string_view rest = text.substr(i);
    // U+200B..U+200F, U+2028..U+202E, U+2060..U+206F.
    if (absl::StartsWith(rest, "\xe2\x80") && rest.size() > 2) {
      const unsigned char last = rest[2];
      if ((last >= 0x8b && last <= 0x8f) || (last >= 0xa8 && last <= 0xae)) {
        escaped += kReplacement;
        i += 2;
        continue;
      }
    }
    if (absl::StartsWith(rest, "\xe2\x81") && rest.size() > 2 &&
        static_cast<unsigned char>(rest[2]) >= 0xa0 &&
        static_cast<unsigned char>(rest[2]) <= 0xaf) {
      escaped += kReplacement;
      i += 2;
      continue;
    }
    if (c < 0x20 || c == 0x7f) {
      escaped += kReplacement;
    } else if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '@') {
      escaped += "&#64;";  // mentions nobody
    } else {
      if (absl::StrContains("\\`*_{}[]()#+!|~", text[i])) escaped += '\\';
      escaped += text[i];
    }
  }
  return escaped;
}

std::string WriteMarkdownReport(const ReportData& data,
                                const MarkdownReportOptions& options) {
  std::string out = absl::StrCat("## ", EscapeMarkdown(data.title), "\n\n");
  if (data.synthetic) {
    absl::StrAppend(&out, "Synthetic data: every number here is made up.\n\n");
  }
  for (const std::string& warning : data.warnings) {
    absl::StrAppend(&out, "- ", EscapeMarkdown(warning), "\n");
  }
  if (data.series.empty() && data.sessions.empty()) {
    absl::StrAppend(&out,
                    "There is no data to show. Record a first run with\n\n"
                    "    optrail bench --record\n");
    return out;
  }
  const Overview overview = Summarize(data);
  std::vector<std::pair<int, std::string>> counts;
  for (const auto& [verdict, count] : overview.verdicts) {
    counts.emplace_back(VerdictRank(verdict),
                        absl::StrCat(count, " ", VerdictName(verdict)));
  }
  std::sort(counts.begin(), counts.end());
  absl::StrAppend(&out, "**", data.series.size(), " series**: ",
                  absl::StrJoin(counts, ", ",
                                [](std::string* text, const auto& count) {
                                  absl::StrAppend(text, count.second);
                                }),
                  ".\n");
  if (!data.commits.empty()) {
    const Commit& newest = data.commits.back();
    absl::StrAppend(&out, "Newest commit: ",
                    newest.id.empty() ? "unknown" : newest.id.substr(0, 8), " ",
                    EscapeMarkdown(newest.subject), "\n");
  }
  AppendAttention(data, overview, options.max_rows, &out);
  AppendTuned(data, overview, options.max_rows, &out);
  AppendSessions(data, options.max_rows, &out);
  return out;
}

}  // namespace optrail::reports
