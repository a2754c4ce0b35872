#include "carbon/plan_page.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/text/html_page.h"
#include "base/text/units.h"
#include "carbon/grid.h"
#include "nlohmann/json.hpp"

namespace optrail::carbon {
namespace {

// In units of the drawing.
constexpr double kWidth = 900, kChart = 160, kLane = 14, kLeft = 66, kTop = 10;

// One window of a job: hours that follow each other.
struct Window {
  int start = 0, length = 0;
};

std::vector<Window> WindowsOf(const std::vector<int>& hours) {
  std::vector<Window> windows;
  for (const int hour : hours) {
    if (!windows.empty() &&
        windows.back().start + windows.back().length == hour) {
      ++windows.back().length;
    } else {
      windows.push_back({hour, 1});
    }
  }
  return windows;
}

std::string Rect(double x, double y, double width, double height,
                 const char* fill, const std::string& title) {
  return absl::StrFormat(
      "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
      "fill=\"%s\"><title>%s</title></rect>\n",
      x, y, std::max(width, .2), height, fill, EscapeHtml(title));
}

std::string Drawing(const PlanProblem& problem, const Plan& plan,
                    int64_t start_unix_s) {
  const auto hours = static_cast<double>(problem.grams_per_kwh.size());
  const double most =
      std::max(1., *std::max_element(problem.grams_per_kwh.begin(),
                                     problem.grams_per_kwh.end()));
  const double step = (kWidth - kLeft) / hours;
  const int lanes = std::min<int>(kDrawnJobs, plan.jobs.size());
  const double height = kTop + kChart + 10 + kLane * lanes + 20;
  std::string svg = absl::StrFormat(
      "<figure><svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
      "aria-label=\"Intensity by hour, and the hours in which jobs run; the "
      "table below says the same\" font-size=\"10\">\n"
      "<text x=\"0\" y=\"%.0f\">%.0f</text><text x=\"0\" y=\"%.0f\">0</text>"
      "<text x=\"0\" y=\"%.0f\">gCO2e/kWh</text>\n",
      kWidth, height, kTop + 8, most, kTop + kChart, kTop + 20);
  for (size_t hour = 0; hour < problem.grams_per_kwh.size(); ++hour) {
    const double grams = problem.grams_per_kwh[hour];
    const double bar = kChart * std::max(grams, 0.) / most;
    svg += Rect(kLeft + step * hour, kTop + kChart - bar, step, bar, "#9aa5b1",
                absl::StrFormat("%s: %.4g gCO2e/kWh",
                                TimeText(start_unix_s + kHourS * hour), grams));
  }
  for (int i = 0; i < lanes; ++i) {
    const double y = kTop + kChart + 10 + kLane * i;
    const PlanJob& job = problem.jobs[i];
    absl::StrAppendFormat(&svg, "<text x=\"0\" y=\"%.2f\">%s</text>\n",
                          y + kLane - 4, EscapeHtml(job.id.substr(0, 10)));
    svg += Rect(kLeft + step * job.release, y + kLane / 2 - .5,
                step * (job.deadline - job.release), 1, "#c3cad2",
                absl::StrCat(job.id, ": from release to deadline"));
    for (const Window& window : WindowsOf(plan.jobs[i].hours)) {
      svg += Rect(kLeft + step * window.start, y + 2, step * window.length,
                  kLane - 4, "#1b6e3c",
                  absl::StrCat(job.id, ": ",
                               TimeText(start_unix_s + kHourS * window.start),
                               ", ", window.length, "h"));
    }
  }
  absl::StrAppendFormat(
      &svg,
      "<text x=\"%.0f\" y=\"%.0f\">%s</text>\n"
      "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\">%s</text>\n"
      "</svg></figure>\n",
      kLeft, height - 4, TimeText(start_unix_s), kWidth, height - 4,
      TimeText(start_unix_s +
               kHourS * static_cast<int64_t>(problem.grams_per_kwh.size())));
  return svg;
}

// The power that the file states; without one the mean over whole hours.
std::string PowerText(const PlanJob& job, const PlanFacts& facts, size_t i) {
  if (facts.stated.empty()) return absl::StrFormat("%.4g", job.watts);
  return absl::StrCat(absl::StrFormat("%.4g", facts.stated[i].watts),
                      facts.stated[i].estimated ? " (estimated)" : "");
}

std::string JobsTable(const PlanProblem& problem, const Plan& plan,
                      const PlanFacts& facts) {
  const bool has_prices = !problem.price_per_kwh.empty();
  std::string html = absl::StrCat(
      "<table><caption>Jobs</caption><tr><th scope=\"col\">job</th>"
      "<th scope=\"col\" class=\"n\">power, W</th><th scope=\"col\" "
      "class=\"n\">energy, kWh</th>"
      "<th scope=\"col\" class=\"n\">emitted, gCO2e</th>",
      has_prices ? absl::StrCat("<th scope=\"col\" class=\"n\">cost, ",
                                EscapeHtml(facts.currency), "</th>")
                 : "",
      "<th scope=\"col\">hours</th></tr>\n");
  for (size_t i = 0; i < plan.jobs.size(); ++i) {
    const PlacedJob& placed = plan.jobs[i];
    absl::StrAppendFormat(
        &html,
        "<tr><th scope=\"row\">%s</th><td class=\"n\">%s</td>"
        "<td class=\"n\">%.4g</td><td class=\"n\">%s</td>%s<td>%s</td></tr>\n",
        EscapeHtml(problem.jobs[i].id), PowerText(problem.jobs[i], facts, i),
        problem.jobs[i].watts / 1000 * problem.jobs[i].hours,
        placed.hours.empty() ? "" : absl::StrFormat("%.4g", placed.grams),
        !has_prices ? ""
        : placed.hours.empty()
            ? "<td></td>"
            : absl::StrFormat("<td class=\"n\">%.4g</td>", placed.cost),
        placed.hours.empty() ? "no place"
                             : HoursText(placed.hours, facts.start_unix_s));
  }
  return html + "</table>\n";
}

}  // namespace

std::string PlanJson(const PlanProblem& problem, const Plan& plan,
                     const PlanFacts& facts) {
  using Json = nlohmann::ordered_json;
  const bool has_prices = !problem.price_per_kwh.empty();
  const auto time = [&](int64_t hour) {
    return TimeText(facts.start_unix_s + hour * kHourS);
  };
  Json json = {{"zone", facts.zone},
               {"intensity_kind", facts.intensity_kind},
               {"made_up", facts.intensity_kind == kMadeUpKind},
               {"machines", problem.machines},
               {"kwh", plan.kwh},
               {"gco2e", plan.grams},
               {"gco2e_starting_now", plan.now_grams},
               {"gco2e_unlimited_machines", plan.unlimited_grams},
               {"gco2e_lower_bound", plan.bound_grams},
               {"saved_against_now", plan.SavedAgainstNow()},
               {"most_possible", plan.MostThatCanBeSaved()},
               {"gap", plan.Gap()},
               {"exact", plan.exact},
               {"unplaced", plan.unplaced},
               {"least_unplaced", plan.least_unplaced}};
  if (has_prices) {
    json["currency"] = facts.currency;
    json["cost"] = plan.cost;
    json["cost_starting_now"] = plan.now_cost;
  }
  json["hours"] = Json::array();
  for (size_t hour = 0; hour < problem.grams_per_kwh.size(); ++hour) {
    Json one = {{"start", time(static_cast<int64_t>(hour))},
                {"gco2e_per_kwh", problem.grams_per_kwh[hour]}};
    if (has_prices) one["price_per_kwh"] = problem.price_per_kwh[hour];
    json["hours"].push_back(std::move(one));
  }
  json["jobs"] = Json::array();
  for (size_t i = 0; i < plan.jobs.size(); ++i) {
    const PlanJob& job = problem.jobs[i];
    const PlacedJob& placed = plan.jobs[i];
    Json windows = Json::array();
    for (const Window& window : WindowsOf(placed.hours)) {
      windows.push_back(
          {{"start", time(window.start)}, {"hours", window.length}});
    }
    Json one = {{"id", job.id},
                {"watts", job.watts},
                {"hours", job.hours},
                {"release", time(job.release)},
                {"deadline", time(job.deadline)},
                {"preemptible", job.preemptible},
                {"gco2e", placed.hours.empty() ? Json() : Json(placed.grams)},
                {"windows", std::move(windows)}};
    if (has_prices && !placed.hours.empty()) one["cost"] = placed.cost;
    if (!facts.stated.empty()) {
      const StatedJob& stated = facts.stated[i];
      one["stated"] = {{"watts", stated.watts},
                       {"hours", stated.hours},
                       {"release", TimeText(stated.release_unix_s)},
                       {"deadline", TimeText(stated.deadline_unix_s)}};
      if (!stated.session.empty()) one["stated"]["session"] = stated.session;
      one["estimated"] = stated.estimated;
    }
    json["jobs"].push_back(std::move(one));
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string HoursText(const std::vector<int>& hours, int64_t start_unix_s) {
  std::vector<std::string> parts;
  for (const Window& window : WindowsOf(hours)) {
    parts.push_back(absl::StrCat(TimeText(start_unix_s + window.start * kHourS),
                                 " ", window.length, "h"));
  }
  return absl::StrJoin(parts, ", ");
}

std::string UnplacedText(const Plan& plan) {
  const std::string jobs = absl::StrCat(
      plan.unplaced, plan.unplaced == 1 ? " job" : " jobs", " found no place");
  constexpr char kNext[] = "next: more machines or later deadlines";
  if (plan.least_unplaced == plan.unplaced) {
    return absl::StrCat(jobs, ": these machines cannot hold all jobs; ", kNext);
  }
  if (plan.least_unplaced > 0) {
    return absl::StrCat(jobs, ": these machines leave at least ",
                        plan.least_unplaced,
                        " out, and whether they can hold more than these is "
                        "not known; ",
                        kNext);
  }
  return absl::StrCat(jobs,
                      ", which does not prove that there is none: the search "
                      "stopped early; ",
                      kNext);
}

static std::string MadeUpText(const PlanFacts& facts) {
  if (facts.intensity_kind != kMadeUpKind) return "";
  return "<p><strong>Made-up data.</strong> The intensity is no grid's.</p>\n";
}

// The kind of the intensity, the cost, and what is a model's answer.
static std::string MoreText(const PlanProblem& problem, const Plan& plan,
                            const PlanFacts& facts) {
  std::string text;
  if (!facts.intensity_kind.empty()) {
    absl::StrAppend(&text, "<p>Intensity: ", EscapeHtml(facts.intensity_kind),
                    ".</p>\n");
  }
  if (!problem.price_per_kwh.empty()) {
    absl::StrAppendFormat(&text, "<p>Cost: %.4g %s, starting now %.4g.</p>\n",
                          plan.cost, EscapeHtml(facts.currency), plan.now_cost);
  }
  const auto estimated =
      std::count_if(facts.stated.begin(), facts.stated.end(),
                    [](const StatedJob& job) { return job.estimated; });
  if (estimated > 0) {
    absl::StrAppend(&text, "<p><span class=\"estimated\">estimated</span> The ",
                    "power of ", estimated, estimated == 1 ? " job" : " jobs",
                    " is a model's answer, not a reading.</p>\n");
  }
  return text;
}

std::string PlanPage(const PlanProblem& problem, const Plan& plan,
                     const PlanFacts& facts) {
  const std::string summary = absl::StrFormat(
      "<p>Zone %s, %d machine%s: %.4g kWh, %.4g gCO2e, %s less than starting "
      "now (%.4g gCO2e). %s</p>\n",
      EscapeHtml(facts.zone), problem.machines,
      problem.machines == 1 ? "" : "s", plan.kwh, plan.grams,
      FormatPercent(plan.SavedAgainstNow()), plan.now_grams,
      plan.exact
          ? std::string("No plan of these jobs on these machines emits less.")
          : absl::StrCat("Within ", FormatPercent(plan.Gap(), 2),
                         " of the least possible."));
  const std::string left_out =
      plan.jobs.size() > kDrawnJobs
          ? absl::StrCat("<p>The first ", kDrawnJobs, " of ", plan.jobs.size(),
                         " jobs are drawn.</p>\n")
          : "";
  return PageText(
      "Carbon plan",
      absl::StrCat(MadeUpText(facts), summary, MoreText(problem, plan, facts),
                   plan.unplaced > 0
                       ? absl::StrCat("<p>", UnplacedText(plan), ".</p>\n")
                       : "",
                   Drawing(problem, plan, facts.start_unix_s), left_out,
                   JobsTable(problem, plan, facts)));
}

}  // namespace optrail::carbon
