#include "suites/graph/graph_page.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text/html_page.h"
#include "base/text/units.h"

namespace optrail::suites {
namespace {

double TotalNs(const GraphPage& page) {
  double total = 0;
  for (const GraphPage::Step& step : page.steps) total += step.time_ns;
  return total;
}

std::string Row(const std::vector<std::string>& texts,
                const std::vector<std::string>& numbers) {
  std::string row = "<tr>";
  for (const std::string& text : texts) {
    absl::StrAppend(&row, "<td>", EscapeHtml(text), "</td>");
  }
  for (const std::string& number : numbers) {
    absl::StrAppend(&row, "<td class=\"n\">", EscapeHtml(number), "</td>");
  }
  return row + "</tr>\n";
}

std::string Table(const std::string& caption, const std::string& head,
                  const std::string& rows) {
  return absl::StrCat("<table><caption>", EscapeHtml(caption),
                      "</caption>\n<tr>", head, "</tr>\n", rows, "</table>\n");
}

std::string TimeText(double ns) {
  return ns == 0 ? "unknown" : FormatDurationNs(ns);
}

std::string KernelsTable(const GraphPage& page) {
  const double total = TotalNs(page);
  std::map<std::string, std::pair<int, double>> kernels;
  for (const GraphPage::Step& step : page.steps) {
    auto& [count, ns] = kernels[step.kernel];
    ++count;
    ns += step.time_ns;
  }
  std::string rows;
  for (const auto& [kernel, of] : kernels) {
    rows += Row({kernel}, {absl::StrCat(of.first), TimeText(of.second),
                           total == 0 ? "" : FormatPercent(of.second / total)});
  }
  return Table("Kernels",
               "<th>kernel</th><th>steps</th><th>time</th><th>share</th>",
               rows);
}

std::string StepsTable(const GraphPage& page) {
  const double total = TotalNs(page);
  std::vector<size_t> order(page.steps.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return page.steps[a].time_ns > page.steps[b].time_ns;
  });
  order.resize(std::min(order.size(), kMostRows));
  std::string rows;
  for (const size_t s : order) {
    const GraphPage::Step& step = page.steps[s];
    rows += Row({step.name, step.kernel, step.computes},
                {absl::StrCat(s), TimeText(step.time_ns),
                 total == 0 ? "" : FormatPercent(step.time_ns / total)});
  }
  const std::string caption =
      order.size() == page.steps.size()
          ? absl::StrCat(page.steps.size(), " steps, by time")
          : absl::StrCat("The ", order.size(), " longest of ",
                         page.steps.size(), " steps");
  return Table(caption,
               "<th>node</th><th>kernel</th><th>computes</th>"
               "<th>step</th><th>time</th><th>share</th>",
               rows);
}

std::string RulesTable(const GraphPage& page) {
  if (page.rules.empty()) return "<p>No fusion rule matched.</p>\n";
  std::string rows;
  for (const GraphPage::Rule& rule : page.rules) {
    rows += Row({rule.rule, rule.why_not.empty()
                                ? "fused"
                                : absl::StrCat("not fused: ", rule.why_not)},
                {absl::StrCat(rule.places)});
  }
  return Table("Fusion rules", "<th>rule</th><th>decision</th><th>places</th>",
               rows);
}

// Offsets upwards, steps to the right.
std::string ArenaPicture(const GraphPage& page) {
  constexpr double kWidth = 900, kHeight = 360;
  if (page.buffers.empty() || page.arena_bytes <= 0) {
    return "<p>The arena is empty.</p>\n";
  }
  std::vector<GraphPage::Buffer> drawn = page.buffers;
  std::stable_sort(
      drawn.begin(), drawn.end(),
      [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  drawn.resize(std::min(drawn.size(), kMostRows));
  const double step =
      kWidth / static_cast<double>(std::max<size_t>(1, page.steps.size()));
  const double byte = kHeight / static_cast<double>(page.arena_bytes);
  std::string text = absl::StrFormat(
      "<figure><svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
      "aria-label=\"Arena\">\n",
      kWidth, kHeight);
  for (const GraphPage::Buffer& buffer : drawn) {
    const double height = static_cast<double>(buffer.bytes) * byte;
    absl::StrAppend(
        &text,
        absl::StrFormat(
            "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
            "fill=\"#9bb8d3\" stroke=\"#1a1a1a\" stroke-width=\".3\"><title>",
            static_cast<double>(buffer.first) * step,
            kHeight - static_cast<double>(buffer.offset) * byte - height,
            static_cast<double>(buffer.last - buffer.first + 1) * step, height),
        EscapeHtml(absl::StrCat(buffer.name, ": ",
                                FormatBytes(static_cast<double>(buffer.bytes)),
                                " at ", buffer.offset, ", steps ", buffer.first,
                                " to ", buffer.last)),
        "</title></rect>\n");
  }
  absl::StrAppend(&text, "</svg><figcaption>The arena of ",
                  FormatBytes(static_cast<double>(page.arena_bytes)),
                  ": offsets upwards, steps to the right",
                  drawn.size() == page.buffers.size()
                      ? ""
                      : absl::StrCat("; the ", drawn.size(), " largest of ",
                                     page.buffers.size(), " buffers"),
                  ".</figcaption></figure>\n");
  return text;
}

}  // namespace

std::string GraphPageText(const GraphPage& page) {
  std::string body;
  for (const std::string& fact : page.facts) {
    absl::StrAppend(&body, "<p>", EscapeHtml(fact), "</p>\n");
  }
  return PageText(page.title,
                  absl::StrCat(body, KernelsTable(page), RulesTable(page),
                               ArenaPicture(page), StepsTable(page)));
}

}  // namespace optrail::suites
