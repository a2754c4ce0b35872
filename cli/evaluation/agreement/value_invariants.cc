// Every value, count and commit is that of the runs that are named.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "cli/evaluation/agreement/invariants.h"
#include "cli/evaluation/agreement/made_session.h"

namespace optrail::agreement {
namespace {

Json ReportSeries(Examination& of, const std::string& text) {
  for (const Json& series : At(of.Report(), "series")) {
    if (SeriesText(series) == text) return series;
  }
  return Json();
}

void ShowPrintsWhatIsRecorded(Examination& of, Findings& found) {
  for (int i = 0; i < 2; ++i) {
    const auto& runs = of.history().runs;
    const proto::Run& run =
        runs[of.rng().UniformInt(static_cast<int64_t>(runs.size()))];
    const Answer answer = of.AskJson({"show", run.run_id()});
    const Json rows = answer.Parsed();
    found.ExpectExit(answer, 0);
    int shown = 0;
    for (const Json& row : rows) {
      if (TextOf(row, "metric") != "time") continue;
      ++shown;
      const std::string name = TextOf(row, "benchmark");
      const auto reading = of.ReadingOf({&run}, name);
      const double value = NumberOf(row, "value");
      found.Expect(
          reading ? IsNear(value, reading->median, 1e-6) : std::isnan(value),
          absl::StrCat(run.run_id(), " ", name, ": show prints ", value,
                       ", recorded is ", reading ? reading->median : 0));
      found.Expect(!reading || NumberOf(row, "processes") == reading->processes,
                   absl::StrCat(run.run_id(), " ", name, ": show counts ",
                                NumberOf(row, "processes"), " processes"));
    }
    found.Expect(shown == run.results_size(),
                 absl::StrCat(run.run_id(), ": show lists ", shown, " of ",
                              run.results_size(), " benchmarks"));
  }
}

void LogListsEveryRunOnce(Examination& of, Findings& found) {
  const Json rows = of.AskJson({"log", "runs", "--limit=0"}).Parsed();
  std::set<std::string> listed;
  for (const Json& row : rows) {
    std::string id = TextOf(row, "run_id");
    if (id.empty()) id = TextOf(row, "run");
    if (id.empty()) id = TextOf(row, "id");
    found.Expect(listed.insert(id).second,
                 absl::StrCat(id, " is listed twice"));
    const proto::Run* run = of.FindRun(id);
    if (run == nullptr) {
      found.Expect(false, absl::StrCat("'", id, "' was never recorded"));
      continue;
    }
    const std::string commit = TextOf(row, "commit");
    const std::string bare = commit.substr(0, commit.find('+'));
    found.Expect(absl::StartsWith(run->commit().id(), bare),
                 absl::StrCat(id, " is listed at commit ", commit));
  }
  // Samples that retention removed are gone.
  found.Expect(
      listed.size() == of.history().runs.size() || of.history().is_thinned,
      absl::StrCat(listed.size(), " of ", of.history().runs.size(),
                   " runs are listed"));
}

void ShowExportAndReportHaveTheSamePoints(Examination& of, Findings& found) {
  for (const std::string& text : of.SomeSeries(3)) {
    const auto& exported = of.Export().at(text);
    const Json shown = of.AskJson({"show", text}).Parsed();
    const Json page = ReportSeries(of, text);
    found.Expect(!page.is_null(), absl::StrCat("the report lacks ", text));
    std::vector<Json> points[2];
    for (const Json& point : shown) {
      if (!std::isnan(NumberOf(point, "value"))) points[0].push_back(point);
    }
    for (const Json& point : At(page, "points")) {
      if (!std::isnan(NumberOf(point, "value"))) points[1].push_back(point);
    }
    if (points[0].size() != exported.size() ||
        points[1].size() != exported.size()) {
      found.Expect(false, absl::StrCat(text, ": show has ", points[0].size(),
                                       " points, the report ", points[1].size(),
                                       ", the export ", exported.size()));
      continue;
    }
    const Json commits = At(of.Report(), "commits");
    for (size_t i = 0; i < exported.size(); ++i) {
      const double value = std::stod(exported[i].at("value"));
      const std::string& commit = exported[i].at("commit");
      const std::string where = absl::StrCat(text, " point ", i);
      found.Expect(IsNear(value, NumberOf(points[0][i], "value")) &&
                       IsNear(value, NumberOf(points[1][i], "value")),
                   absl::StrCat(where, ": the values differ"));
      std::string shown_commit = TextOf(points[0][i], "commit");
      shown_commit = shown_commit.substr(0, shown_commit.find('+'));
      found.Expect(absl::StartsWith(commit, shown_commit),
                   absl::StrCat(where, ": show names ", shown_commit,
                                ", the export ", commit));
      const double place = NumberOf(points[1][i], "commit");
      found.Expect(
          place >= 0 && place < commits.size() &&
              TextOf(commits[static_cast<size_t>(place)], "id") == commit,
          absl::StrCat(where, ": the report names another commit"));
    }
  }
}

void LatestIsOneRunForAll(Examination& of, Findings& found) {
  const Answer shown = of.Ask({"show", "latest"});
  std::set<std::string> named;
  for (const proto::Run& run : of.history().runs) {
    if (absl::StrContains(shown.out, run.run_id())) named.insert(run.run_id());
  }
  found.Expect(named.size() >= 1, "show latest names no run");
  std::set<std::string> commits, judged;
  for (const std::string& id : named) {
    commits.insert(of.FindRun(id)->commit().id());
  }
  const auto& runs = of.history().runs;
  const bool has_order =
      std::all_of(runs.begin(), runs.end(), [](const proto::Run& run) {
        return run.commit().branch() == "main" &&
               run.commit().has_first_parent_position();
      });
  found.Expect(!has_order || commits.count(of.NewestCommit()) == 1,
               "show latest is not the newest commit by position");
  const Answer gate = of.AskJson({"gate", "--candidate=latest"});
  for (const Json& run : At(gate.Parsed(), "candidate_runs")) {
    judged.insert(TextOf(run, "commit"));
  }
  found.Expect(judged.empty() || judged == commits,
               absl::StrCat("show latest is of commit ", *commits.begin(),
                            ", gate latest of ", *judged.begin()));
  const Answer compare = of.Ask({"compare", *named.begin(), "latest"});
  found.Expect(compare.exit_code == 2 || compare.Says(*named.rbegin()),
               "compare takes another run for the latest");
}

void SessionsHaveOneAccount(Examination& of, Findings& found) {
  if (of.history().sessions.empty()) return;
  const proto::Session& session = of.history().sessions.front();
  const int measured = session.trials_size() - session.warm_start_trial_count();
  const Answer show = of.Ask({"show", kMadeSessionId});
  found.Expect(show.Says(absl::StrCat(measured, " trials")),
               "show counts other trials");
  const Answer markdown =
      of.Ask({"report", "--report_format=markdown", "--out=-"});
  found.Expect(
      absl::StrContains(markdown.out, absl::StrCat(" ", measured, " ")),
      "the report counts other trials");
  const Json sessions = At(of.Report(), "sessions");
  if (!sessions.is_array() || sessions.size() != 1) {
    return found.Expect(false, "the report has not one session");
  }
  if (!session.has_proof()) return;
  const double speedup = NumberOf(sessions[0], "verified_speedup");
  const double gain = session.proof().gain();
  if (session.proof().claimed()) {
    found.Expect(
        IsNear(speedup, 1 / (1 - gain), .001),
        absl::StrCat("the proof says ", gain, ", the report ", speedup, "x"));
    const std::string percent = absl::StrFormat("%.1f%%", 100 * gain);
    found.Expect(show.Says(percent), "show does not print the proof");
    found.Expect(markdown.Says(percent), "the report does not show the proof");
  } else {
    found.Expect(
        std::isnan(speedup) || speedup < 1.03,
        absl::StrCat("nothing was proven, the report says ", speedup, "x"));
  }
}

constexpr char kRate[] = "items_per_second";

// The benchmarks that a gate of the commit by that metric calls broken.
std::map<std::string, std::string> Broken(Examination& of,
                                          const std::string& commit,
                                          const std::string& metric) {
  const Json gate = of.AskJson({"gate", absl::StrCat("--candidate=", commit),
                                "--hardware=amd-epyc-zen4-2c",
                                absl::StrCat("--metric=", metric)})
                        .Parsed();
  std::map<std::string, std::string> broken;
  for (const Json& row : At(gate, "rows")) {
    const std::string verdict = TextOf(row, "verdict");
    if (verdict != "crashed" && verdict != "wrong result") continue;
    broken[TextOf(row, "name")] =
        absl::StrCat(verdict, " of ", TextOf(At(row, "candidate"), "commit"),
                     ": ", TextOf(row, "reason"));
  }
  return broken;
}

// A benchmark that failed measured nothing, by whatever metric it is judged.
void AFailureIsOneByEveryMetric(Examination& of, Findings& found) {
  const auto& runs = of.history().runs;
  const bool has_rate =
      std::any_of(runs.begin(), runs.end(), [](const proto::Run& run) {
        return run.results_size() > 0 &&
               run.results(0).measurements_size() > 0 &&
               run.results(0).measurements(0).metrics_size() > 0;
      });
  if (!has_rate) return;
  for (const std::string& commit : {of.NewestCommit(), of.SomeCommit()}) {
    const auto by_time = Broken(of, commit, "time");
    const auto by_rate = Broken(of, commit, kRate);
    for (const auto* one : {&by_time, &by_rate}) {
      const auto& other = one == &by_time ? by_rate : by_time;
      for (const auto& [name, verdict] : *one) {
        const auto place = other.find(name);
        found.Expect(
            place != other.end() && place->second == verdict,
            absl::StrCat(commit, " ", name, " is ", verdict, " by ",
                         one == &by_time ? "time" : kRate, ", by the other ",
                         place == other.end() ? "no" : place->second));
      }
    }
  }
  std::map<std::string, std::string> failed;  // by series
  for (const Json& row : of.Changes()) {
    if (TextOf(row, "state") != "failed") continue;
    failed[TextOf(row, "series")] = absl::StrCat(
        TextOf(row, "last_commit_before"), " ",
        TextOf(row, "first_commit_after"), " ", TextOf(row, "why"));
  }
  for (const auto& [text, rows] : of.Export()) {
    const std::string of_time =
        absl::StrReplaceAll(text, {{"|items_per_second|1%2Fs|", "|time|ns|"}});
    if (of_time == text) continue;
    found.Expect(failed[text] == failed[of_time],
                 absl::StrCat(text, " failed: \"", failed[text],
                              "\", by its time: \"", failed[of_time], "\""));
  }
}

}  // namespace

std::vector<Invariant> ValueInvariants() {
  return {
      {"show_prints_what_is_recorded",
       "the values, counts and benchmarks that `show RUN` prints are recorded",
       ShowPrintsWhatIsRecorded},
      {"log_lists_every_run_once",
       "`log runs` lists every run once, at its commit", LogListsEveryRunOnce},
      {"one_series_has_one_line_of_points",
       "`show SERIES`, `history export` and the report have the same points",
       ShowExportAndReportHaveTheSamePoints},
      {"latest_is_one_run",
       "`latest` is one run for show, gate and compare, the newest by position",
       LatestIsOneRunForAll},
      {"a_session_has_one_account",
       "show and the report count the same trials and show the same proof",
       SessionsHaveOneAccount},
      {"a_failure_is_one_by_every_metric",
       "gate and changes tell of a failure alike by time and by another metric",
       AFailureIsOneByEveryMetric},
  };
}

}  // namespace optrail::agreement
