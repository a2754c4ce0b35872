// The report says what `changes` says, and so does `detect` on an export.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/evaluation/agreement/invariants.h"
#include "re2/re2.h"

namespace optrail::agreement {
namespace {

// "new +0.123456" for each change of the code, by series.
using Story = std::map<std::string, std::multiset<std::string>>;

std::string Told(const std::string& state, double change) {
  return absl::StrFormat("%s %+.6f", state.substr(0, state.find(':')), change);
}

// A change that is worse by less than this is no alert.
constexpr double kLeastChange = .03;

// The changes of the code in rows of `changes`, but for smaller ones.
Story StoryOf(const Json& rows, double least) {
  Story story;
  for (const Json& row : rows) {
    const std::string state = TextOf(row, "state");
    // The report has epochs and failures elsewhere.
    if (state == "new epoch" || state == "failed") continue;
    if (std::abs(NumberOf(row, "worse_by")) < least) continue;
    story[TextOf(row, "series")].insert(
        Told(state, NumberOf(row, "relative_change")));
  }
  return story;
}

// A threshold hides rows and changes none.
void AThresholdOnlyHides(Examination& of, Findings& found) {
  for (const double least : {.01, kLeastChange, .1}) {
    const Json rows = of.AskJson({"changes", "--metric=.*",
                                  absl::StrCat("--min_effect=", least)})
                          .Parsed();
    found.Expect(StoryOf(rows, 0) == StoryOf(of.Changes(), least),
                 absl::StrCat("changes --min_effect=", least,
                              " tells other changes than --min_effect=0"));
  }
}

void TheReportSaysWhatChangesSays(Examination& of, Findings& found) {
  const Story changes = StoryOf(of.Changes(), 0);
  Story report;
  for (const Json& series : At(of.Report(), "series")) {
    for (const Json& change : At(series, "change_points")) {
      report[SeriesText(series)].insert(
          Told(TextOf(change, "state"), NumberOf(change, "relative_change")));
    }
  }
  for (const auto& [text, told] : changes) {
    found.Expect(
        report[text] == told,
        absl::StrCat(text, ": changes tells ", told.size(), " changes, first ",
                     *told.begin(), ", the report ", report[text].size(),
                     ", first ",
                     report[text].empty() ? "none" : *report[text].begin()));
  }
  for (const auto& [text, told] : report) {
    found.Expect(told.empty() || changes.count(text) > 0,
                 absl::StrCat(text, ": only the report tells of changes"));
  }
}

// A change of that size that makes the exit code 1; a failure is none.
bool IsAlert(const Json& row) {
  return NumberOf(row, "alert") == 1 &&
         NumberOf(row, "worse_by") >= kLeastChange;
}

void SlowerOnThePageIsAnAlertOfChanges(Examination& of, Findings& found) {
  std::set<std::string> alerts;
  for (const Json& row : of.Changes()) {
    if (IsAlert(row)) alerts.insert(TextOf(row, "series"));
  }
  std::set<std::string> slower;
  int counted_here = 0;  // of the main metric of a benchmark
  for (const Json& series : At(of.Report(), "series")) {
    const std::string verdict = TextOf(series, "verdict");
    const std::string text = SeriesText(series);
    if (verdict == "slower" || verdict == "worse") {
      slower.insert(text);
      const Json main = At(series, "main");
      counted_here += !main.is_boolean() || main.get<bool>();
    }
    // What failed or is gone says that instead.
    const bool other = verdict == "failed" || verdict == "crashed" ||
                       verdict == "missing" || verdict == "can't tell" ||
                       verdict == "renamed" || verdict == "new version" ||
                       verdict == "wrong result";
    if (other) alerts.erase(text);
  }
  for (const std::string& text : alerts) {
    found.Expect(slower.count(text) > 0,
                 absl::StrCat(text,
                              " is an alert of changes, not slower on "
                              "the page"));
  }
  for (const std::string& text : slower) {
    found.Expect(alerts.count(text) > 0,
                 absl::StrCat(text,
                              " is slower on the page, no alert of "
                              "changes"));
  }
  double counted = 0;
  const Json verdicts = At(of.Report(), "verdicts");
  for (const auto& [verdict, count] : verdicts.items()) {
    if (verdict == "slower" || verdict == "worse") counted += count.get<int>();
  }
  found.Expect(counted == counted_here,
               absl::StrCat("the report counts ", counted, " slower and has ",
                            counted_here));
}

void TheExitCodeOfChangesIsThatOfItsRows(Examination& of, Findings& found) {
  const Answer answer = of.AskJson({"changes"});
  const Json rows = answer.Parsed();
  const bool alert =
      rows.is_array() && std::any_of(rows.begin(), rows.end(), IsAlert);
  int failures = 0;
  for (const Json& row : rows) {
    if (TextOf(row, "state") == "failed") {
      ++failures;
      continue;
    }
    const double worse = NumberOf(row, "worse_by");
    found.Expect(std::abs(worse) >= .03,
                 absl::StrCat("a change of ", worse, " is below 3%"));
    const std::string state = TextOf(row, "state");
    const bool must = (state == "new" || state == "renamed, new") && worse > 0;
    const bool may =
        must ||
        ((state == "provisional, new" || state == "creep, new") && worse > 0);
    found.Expect(IsAlert(row) ? may : !must,
                 absl::StrCat("a change of ", worse, " that is ", state, " is ",
                              IsAlert(row) ? "an alert" : "no alert"));
  }
  found.Expect(answer.exit_code == (alert || failures > 0 ? 1 : 0),
               absl::StrCat("changes exits with ", answer.exit_code,
                            alert ? " beside an alert" : " without an alert",
                            " and with ", failures, " failures"));
  const Json verdicts = At(of.Report(), "verdicts");
  const Json failed = At(verdicts, "failed");
  const int on_the_page = failed.is_number() ? failed.get<int>() : 0;
  found.Expect(failures == on_the_page,
               absl::StrCat("changes has ", failures, " failures, the report ",
                            on_the_page));
}

// The number before ` word` in the text; 0 if it has none.
int CountOf(const std::string& text, const std::string& word) {
  int count = 0;
  RE2::PartialMatch(text, absl::StrCat("(\\d+) ", word), &count);
  return count;
}

void TheCountsOfChangesAreOfItsRows(Examination& of, Findings& found) {
  const Answer text = of.Ask({"changes"});
  std::string counts;
  // Long lines are wrapped.
  const bool has_counts = RE2::PartialMatch(
      absl::StrReplaceAll(text.out, {{"\n", " "}}),
      "(\\d+ new for the worse, .*?%(?: \\([^)]*\\))?)", &counts);
  int rows = 0, alerts = 0, muted = 0, answered = 0;
  for (const Json& row : of.AskJson({"changes"}).Parsed()) {
    const std::string state = TextOf(row, "state");
    if (state == "failed") continue;
    ++rows;
    alerts += IsAlert(row);
    muted += absl::EndsWith(state, "muted");
    answered += absl::EndsWith(state, "acknowledged") ||
                absl::EndsWith(state, "expected");
  }
  if (!has_counts) return found.Expect(rows == 0, "rows, and no counts");
  found.Expect(
      CountOf(counts, "new for the worse") == alerts &&
          CountOf(counts, "change") == rows &&
          CountOf(counts, "muted") == muted &&
          CountOf(counts, "answered") == answered,
      absl::StrCat("\"", counts, "\" of ", rows, " rows with ", alerts,
                   " alerts, ", muted, " muted, ", answered, " answered"));
}

// "3 slower, 7 unchanged" of the map.
std::string CountsOf(const std::vector<std::pair<std::string, int>>& counts) {
  return absl::StrJoin(counts, ", ", [](std::string* text, const auto& count) {
    absl::StrAppend(text, count.second, " ", count.first);
  });
}

void TheReportCountsWhatChangesCounts(Examination& of, Findings& found) {
  std::string text = of.Ask({"changes"}).out;
  absl::RemoveExtraAsciiWhitespace(&text);  // long lines are wrapped
  const Json report = of.Report();
  std::vector<std::pair<std::string, int>> verdicts;
  int all = 0;
  const Json counted = At(report, "verdicts");
  for (const auto& [verdict, count] : counted.items()) {
    verdicts.emplace_back(verdict, count.get<int>());
    all += count.get<int>();
  }
  // By severity, which JSON does not keep.
  std::sort(verdicts.begin(), verdicts.end(),
            [&](const auto& a, const auto& b) {
              const auto place = [&](const auto& count) {
                return text.find(CountsOf({count}), text.find(" series: "));
              };
              return place(a) < place(b);
            });
  const std::string told = absl::StrCat(all, " series: ", CountsOf(verdicts));
  found.Expect(all == 0 || absl::StrContains(text, told),
               absl::StrCat("the report counts ", told, "; changes: ", text));
  std::string counts;
  if (!RE2::PartialMatch(
          text, "(\\d+ new for the worse, .*?%(?: \\([^)]*\\))?)", &counts)) {
    return;
  }
  const Json changes = At(report, "changes");
  for (const auto& [field, word] : {std::make_pair("all", "change"),
                                    {"new_for_the_worse", "new for the worse"},
                                    {"muted", "muted"},
                                    {"answered", "answered"}}) {
    found.Expect(NumberOf(changes, field) == CountOf(counts, word),
                 absl::StrCat("the report has ", changes.dump(),
                              ", changes says: ", counts));
  }
}

// Whether `changes` has it from the same detector: a confirmed change of the
// series' values, whatever the machine or people say of it.
bool IsOfTheDetector(const Json& row) {
  const std::string state = TextOf(row, "state");
  for (const char* other :
       {"new epoch", "provisional", "creep", "renamed", "failed"}) {
    if (absl::StartsWith(state, other)) return false;
  }
  return true;
}

void DetectOnTheExportSaysWhatChangesSays(Examination& of, Findings& found) {
  const Answer exported = of.Ask({"history", "export", "--out=export.csv"});
  const Answer answer = of.Ask({"detect", "--csv=export.csv"});
  const Json detected = answer.Parsed();
  if (!detected.is_array()) {
    // An export without a row has no series.
    return found.Expect(of.Export().empty(),
                        absl::StrCat("no JSON: ", answer.out, answer.err));
  }
  // Relative changes by series, which detect prints with seven digits.
  std::map<std::string, std::vector<double>> of_detect, of_changes;
  for (const Json& series : detected) {
    for (const Json& point : At(series, "change_points")) {
      const Json provisional = At(point, "provisional");
      if (provisional.is_boolean() && provisional.get<bool>()) continue;
      of_detect[TextOf(series, "id")].push_back(
          NumberOf(point, "relative_change"));
    }
  }
  for (const Json& row : of.Changes()) {
    if (!IsOfTheDetector(row)) continue;
    of_changes[TextOf(row, "series")].push_back(
        NumberOf(row, "relative_change"));
  }
  for (const auto& [text, rows] : of.Export()) {
    std::vector<double>& a = of_changes[text];
    std::vector<double>& b = of_detect[text];
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    found.Expect(std::equal(a.begin(), a.end(), b.begin(), b.end(),
                            [](double of_a, double of_b) {
                              return std::abs(of_a - of_b) < 1e-6;
                            }),
                 absl::StrCat(text, ": changes has ", of_changes[text].size(),
                              " changes, detect ", of_detect[text].size(),
                              " or other ones"));
  }
}

void WhatIsPlantedIsFound(Examination& of, Findings& found) {
  const MadeHistory& history = of.history();
  if (!history.is_calm || history.is_thinned) return;
  // Checks a benchmark that changed once, in the middle of a long line.
  for (const PlantedStep& step : history.steps) {
    const int same = static_cast<int>(
        std::count_if(history.steps.begin(), history.steps.end(),
                      [&](const PlantedStep& other) {
                        return other.benchmark == step.benchmark;
                      }));
    if (same > 1 || std::abs(std::log(step.factor)) < .1) continue;
    const std::string text =
        absl::StrCat(step.benchmark, "|time|ns|amd-epyc-zen4-2c|main");
    const auto rows = of.Export().find(text);
    if (rows == of.Export().end()) continue;
    const int points = static_cast<int>(rows->second.size());
    if (step.at < 13 || points - step.at < 12) continue;
    std::set<std::string> epochs;
    for (const auto& row : rows->second) epochs.insert(row.at("epoch"));
    if (epochs.size() > 1) continue;
    bool is_there = false;
    for (const Json& row : of.Changes()) {
      is_there =
          is_there || (TextOf(row, "series") == text &&
                       std::abs(std::log1p(NumberOf(row, "relative_change")) -
                                std::log(step.factor)) < .02);
    }
    found.Expect(is_there,
                 absl::StrCat(text, ": x", step.factor, " at point ", step.at,
                              " of ", points, " is no change"));
  }
}

// A benchmark that changed once, with nothing odd beside it, creeps nowhere.
void APlantedStepIsNoCreep(Examination& of, Findings& found) {
  const MadeHistory& history = of.history();
  if (!history.is_calm) return;
  std::map<std::string, int> steps;
  for (const PlantedStep& step : history.steps) ++steps[step.benchmark];
  for (const Json& row : of.Changes()) {
    if (!absl::StartsWith(TextOf(row, "state"), "creep")) continue;
    const std::string series = TextOf(row, "series");
    const auto planted = steps.find(series.substr(0, series.find('|')));
    found.Expect(planted == steps.end() || planted->second > 1,
                 absl::StrCat(series, ": one planted step, and a creep of ",
                              NumberOf(row, "relative_change"), " at commit ",
                              TextOf(row, "commit")));
  }
}

}  // namespace

std::vector<Invariant> StoryInvariants() {
  return {
      {"the_report_says_what_changes_says",
       "each series has the same changes, sizes and states in both",
       TheReportSaysWhatChangesSays},
      {"a_threshold_only_hides",
       "`changes` tells the same with every --min_effect, but for smaller ones",
       AThresholdOnlyHides},
      {"slower_on_the_page_is_an_alert",
       "the report calls exactly the series slower in which `changes` alerts",
       SlowerOnThePageIsAnAlertOfChanges},
      {"the_exit_code_of_changes_is_of_its_rows",
       "`changes` exits with 1 exactly if a row is an alert, or failed",
       TheExitCodeOfChangesIsThatOfItsRows},
      {"the_counts_of_changes_are_of_its_rows",
       "the last lines of `changes` count the rows, the muted and the answered",
       TheCountsOfChangesAreOfItsRows},
      {"the_report_counts_what_changes_counts",
       "`changes` and the report count series by verdict, and changes, alike",
       TheReportCountsWhatChangesCounts},
      {"detect_on_the_export_says_what_changes_says",
       "`detect` on an export has the changes of `changes` before triage",
       DetectOnTheExportSaysWhatChangesSays},
      {"what_is_planted_is_found",
       "in a calm history `changes` finds a planted step of 10% and more",
       WhatIsPlantedIsFound},
      {"a_planted_step_is_no_creep",
       "in a calm history no series with a single planted step creeps",
       APlantedStepIsNoCreep},
  };
}

}  // namespace optrail::agreement
