// The gate judged what was asked, or exits with 3; and one pair of sides has
// one verdict.

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/match.h"
#include "cli/evaluation/agreement/invariants.h"

namespace optrail::agreement {
namespace {

constexpr char kMachine[] = "amd-epyc-zen4-2c";

// The gate of a commit on the first machine. Asking with --hardware is what a
// history of two machines needs.
Answer AskGate(Examination& of, const std::string& commit) {
  return of.AskJson({"gate", absl::StrCat("--candidate=", commit),
                     absl::StrCat("--hardware=", kMachine)});
}

void TheGateJudgesWhatWasAsked(Examination& of, Findings& found) {
  for (const std::string& commit : {of.NewestCommit(), of.SomeCommit()}) {
    const Answer answer = AskGate(of, commit);
    const Json gate = answer.Parsed();
    std::set<std::string> suites, wanted;
    for (const Json& run : At(gate, "candidate_runs")) {
      found.Expect(TextOf(run, "commit") == commit,
                   absl::StrCat("asked about ", commit, ", judged ",
                                TextOf(run, "commit")));
      found.Expect(TextOf(run, "hardware") == kMachine,
                   absl::StrCat("asked about ", kMachine, ", judged ",
                                TextOf(run, "hardware")));
      suites.insert(TextOf(run, "suite"));
    }
    for (const proto::Run& run : of.history().runs) {
      if (run.commit().id() == commit && run.hardware().id() == kMachine &&
          !run.commit().dirty()) {
        wanted.insert(run.suite());
      }
    }
    const bool all = std::includes(suites.begin(), suites.end(), wanted.begin(),
                                   wanted.end());
    found.Expect(all || answer.exit_code != 0,
                 absl::StrCat("green with ", suites.size(), " of ",
                              wanted.size(), " suites"));
    found.Expect(gate.is_null()
                     ? answer.exit_code >= 2
                     : NumberOf(gate, "exit_code") == answer.exit_code,
                 "the JSON has another exit code than the process");
  }
}

// True if a run may be evidence for the baseline of `candidate`.
bool MayBeBaseline(const proto::Run& run, const proto::Run& candidate) {
  return run.hardware().id() == candidate.hardware().id() &&
         run.suite() == candidate.suite() && !run.commit().dirty();
}

// The baseline of a row holds what its runs recorded: the processes, the median
// of their medians, and the commit of the last of them.
void CheckBaseline(Examination& of, const Json& row, Findings& found) {
  const Json side = At(row, "baseline");
  const std::string where =
      absl::StrCat(TextOf(row, "name"), " ", TextOf(row, "metric"));
  std::vector<const proto::Run*> runs;
  for (const Json& id : At(side, "run_ids")) {
    runs.push_back(of.FindRun(id.get<std::string>()));
    if (runs.back() == nullptr) {
      return found.Expect(false,
                          absl::StrCat(where, ": no such run ", id.dump()));
    }
  }
  if (runs.empty()) return;
  for (const proto::Run* run : runs) {
    const bool has_value = !std::isnan(NumberOf(side, "value"));
    found.Expect(!has_value || of.ReadingOf({run}, TextOf(row, "name")),
                 absl::StrCat(where, ": a value of ", run->run_id(),
                              ", which measured nothing"));
  }
  found.Expect(
      TextOf(side, "commit") == runs.back()->commit().id(),
      absl::StrCat(where, ": commit ", TextOf(side, "commit"),
                   ", the last named run is of ", runs.back()->commit().id()));
  if (TextOf(row, "metric") != "time") return;
  const auto reading = of.ReadingOf(runs, TextOf(row, "name"));
  const int processes = reading ? reading->processes : 0;
  found.Expect(NumberOf(side, "processes") == processes,
               absl::StrCat(where, ": counts ", NumberOf(side, "processes"),
                            " processes, the named runs have ", processes));
  const double value = NumberOf(side, "value");
  found.Expect(!reading || IsNear(value, reading->median, 1e-6),
               absl::StrCat(where, ": a value of ", value,
                            ", the median of the named runs is ",
                            reading ? reading->median : 0));
}

void TheEvidenceIsOfTheRunsThatAreNamed(Examination& of, Findings& found) {
  const std::string commit = of.NewestCommit();
  const Json gate = AskGate(of, commit).Parsed();
  if (!gate.is_object()) return;
  std::vector<const proto::Run*> candidates;
  for (const Json& run : At(gate, "candidate_runs")) {
    candidates.push_back(of.FindRun(TextOf(run, "run_id")));
    if (candidates.back() == nullptr) {
      return found.Expect(false, "an unknown candidate run");
    }
  }
  for (const Json& baseline : At(gate, "baselines")) {
    for (const Json& info : At(baseline, "runs")) {
      const proto::Run* run = of.FindRun(TextOf(info, "run_id"));
      const bool fits = run != nullptr &&
                        std::any_of(candidates.begin(), candidates.end(),
                                    [&](const proto::Run* candidate) {
                                      return MayBeBaseline(*run, *candidate);
                                    });
      found.Expect(fits, absl::StrCat(TextOf(info, "run_id"),
                                      " is no baseline of the candidate"));
      if (!fits || !run->commit().has_first_parent_position()) continue;
      found.Expect(
          run->commit().branch() != candidates.front()->commit().branch() ||
              run->commit().first_parent_position() <=
                  candidates.front()->commit().first_parent_position(),
          absl::StrCat(TextOf(info, "run_id"), " is later than the candidate"));
    }
  }
  for (const Json& row : At(gate, "rows")) CheckBaseline(of, row, found);
}

void TheGatesExitCodeIsThatOfItsRows(Examination& of, Findings& found) {
  const Answer answer = AskGate(of, of.NewestCommit());
  const Json gate = answer.Parsed();
  if (!gate.is_object()) return;
  std::map<std::string, int> actions;
  std::set<std::string> notes;
  for (const Json& row : At(gate, "rows")) ++actions[TextOf(row, "action")];
  const int fails = actions["FAIL"];
  const int unclear = actions["RERUN"] + actions["UNCLEAR"];
  found.Expect((answer.exit_code == 1) == (fails > 0) &&
                   (answer.exit_code != 0 || unclear == 0),
               absl::StrCat("exit code ", answer.exit_code, " with ", fails,
                            " rows that fail, ", unclear, " unclear"));
  found.Expect(
      NumberOf(gate, "red") == fails &&
          NumberOf(gate, "cannot_tell") == unclear,
      absl::StrCat("JSON counts ", NumberOf(gate, "red"), " red, ",
                   NumberOf(gate, "cannot_tell"), " unclear; its rows have ",
                   fails, " and ", unclear));
  for (const Json& note : At(gate, "notes")) {
    found.Expect(notes.insert(note.get<std::string>()).second,
                 absl::StrCat("said twice: ", note.get<std::string>()));
  }
  const Answer text =
      of.Ask({"gate", absl::StrCat("--candidate=", of.NewestCommit()),
              absl::StrCat("--hardware=", kMachine)});
  found.Expect(text.exit_code == answer.exit_code,
               "text and JSON exit with other codes");
}

// Two runs of one suite on one machine, the earlier first; empty if there are
// none.
std::vector<const proto::Run*> DrawPair(Examination& of) {
  std::vector<const proto::Run*> runs;
  for (const proto::Run& run : of.history().runs) {
    if (run.hardware().id() == kMachine && run.suite() == "first" &&
        run.commit().branch() == "main" && !run.commit().dirty() &&
        run.results_size() > 0) {
      runs.push_back(&run);
    }
  }
  if (runs.size() < 2) return {};
  // Mostly the last two, which may be paired.
  const size_t last = runs.size() - 1;
  size_t a = last - 1, b = last;
  if (of.rng().UniformInt(2) == 0) {
    b = 1 + of.rng().UniformInt(static_cast<int64_t>(last));
    a = of.rng().UniformInt(static_cast<int64_t>(b));
  }
  return {runs[a], runs[b]};
}

void CheckRow(const Json& row, Findings& found) {
  const std::string verdict = TextOf(row, "verdict");
  const std::string name = TextOf(row, "benchmark");
  const double ratio = NumberOf(row, "ratio");
  if (std::isnan(ratio)) return;
  if (verdict == "unchanged") {
    // "0.981..1.012": half as much again as what must be found, and rounded.
    const std::string interval = TextOf(row, "interval");
    const size_t dots = interval.find("..");
    const double high = dots == std::string::npos
                            ? std::nan("")
                            : std::stod(interval.substr(dots + 2));
    found.Expect(high <= 1.0755,
                 absl::StrCat(name, " is unchanged in an interval ", interval));
    found.Expect(ratio < 1.05,
                 absl::StrCat(name, " is unchanged at a ratio of ", ratio));
    // A row says which changes it would have missed.
    const double detectable = NumberOf(row, "detectable");
    found.Expect(!(detectable > .21) ||
                     absl::StrContains(TextOf(row, "why"), "called can't tell"),
                 absl::StrCat(name, " is unchanged beside detectable ",
                              detectable, ": ", TextOf(row, "why")));
  }
  found.Expect(verdict != "slower" || ratio > 1,
               absl::StrCat(name, " is slower at a ratio of ", ratio));
  found.Expect(verdict != "faster" || ratio < 1,
               absl::StrCat(name, " is faster at a ratio of ", ratio));
}

void OnePairHasOneVerdict(Examination& of, Findings& found) {
  const auto pair = DrawPair(of);
  if (pair.empty()) return;
  const std::string a = pair[0]->run_id(), b = pair[1]->run_id();
  const Answer answer = of.AskJson({"compare", a, b});
  const Json compare = answer.Parsed();
  const Json back = of.AskJson({"compare", b, a}).Parsed();
  const Answer gate_answer =
      of.AskJson({"gate", absl::StrCat("--candidate=", b),
                  absl::StrCat("--baseline=run:", a)});
  const Json gate = gate_answer.Parsed();
  if (!compare.is_array()) {
    return found.Expect(answer.exit_code == 2 || answer.exit_code == 3,
                        "compare has no JSON");
  }
  for (const Json& row : compare) {
    CheckRow(row, found);
    const std::string name = TextOf(row, "benchmark");
    const std::string verdict = TextOf(row, "verdict");
    const std::string reverse =
        TextOf(RowWith(back, "benchmark", name), "verdict");
    found.Expect(
        !(verdict == "slower" && reverse == "slower") &&
            !(verdict == "faster" && reverse == "faster"),
        absl::StrCat(a, " ", b, " ", name, " is ", verdict, " both ways"));
    // The gate needs three processes where compare needs two.
    if (pair[0]->results_size() == 0 || !gate.is_object()) continue;
    const auto readings = {of.ReadingOf({pair[0]}, name),
                           of.ReadingOf({pair[1]}, name)};
    const bool enough =
        std::all_of(readings.begin(), readings.end(), [](const auto& reading) {
          return reading.has_value() && reading->processes >= 3;
        });
    const Json judged = RowWith(At(gate, "rows"), "name", name);
    if (!enough || judged.is_null()) continue;
    found.Expect(TextOf(judged, "verdict") == verdict,
                 absl::StrCat(a, " ", b, " ", name, ": compare says ", verdict,
                              ", the gate ", TextOf(judged, "verdict")));
    const double ratio = NumberOf(At(judged, "ratio"), "ratio");
    found.Expect(IsNear(ratio, NumberOf(row, "ratio"), 1e-6),
                 absl::StrCat(a, " ", b, " ", name, ": compare has the ratio ",
                              NumberOf(row, "ratio"), ", the gate ", ratio));
  }
}

void CompareAndShowHaveOneValue(Examination& of, Findings& found) {
  const auto pair = DrawPair(of);
  if (pair.empty()) return;
  const Json compare =
      of.AskJson({"compare", pair[0]->run_id(), pair[1]->run_id()}).Parsed();
  std::map<std::string, double> shown;  // by benchmark
  for (const Json& row : of.AskJson({"show", pair[1]->run_id()}).Parsed()) {
    if (TextOf(row, "metric") == "time") {
      shown[TextOf(row, "benchmark")] = NumberOf(row, "value");
    }
  }
  for (const Json& row : compare) {
    const std::string name = TextOf(row, "benchmark");
    if (shown.count(name) == 0) continue;
    const double value = NumberOf(row, "candidate");
    const double expected = shown[name];
    if (std::isnan(value) || std::isnan(expected)) continue;
    found.Expect(IsNear(value, expected, .003),
                 absl::StrCat(pair[1]->run_id(), " ", name, ": compare prints ",
                              value, ", show ", expected));
  }
}

void AGreenGateHidesNoPlantedSlowDown(Examination& of, Findings& found) {
  const MadeHistory& history = of.history();
  if (!history.is_calm) return;
  const std::string commit = of.NewestCommit();
  const Answer answer = AskGate(of, commit);
  if (answer.exit_code != 0) return;
  int last = 0;
  for (const proto::Run& run : history.runs) {
    if (run.commit().id() == commit &&
        run.commit().has_first_parent_position()) {
      last = static_cast<int>(run.commit().first_parent_position());
    }
  }
  for (const PlantedStep& step : history.steps) {
    if (step.at != last || last < 2) continue;
    double factor = 1;
    for (const PlantedStep& other : history.steps) {
      if (other.benchmark == step.benchmark && other.at == last) {
        factor *= other.factor;
      }
    }
    // The row of one that somebody has acknowledged says so.
    const Json row =
        RowWith(At(answer.Parsed(), "rows"), "name", step.benchmark);
    const bool is_acknowledged =
        TextOf(row, "verdict") == "slower" &&
        absl::StartsWith(TextOf(row, "exempted"), "acknowledged on ");
    found.Expect(
        factor < 1.08 || is_acknowledged,
        absl::StrCat("green, and ", step.benchmark, " takes x", factor));
  }
}

// The series of a benchmark on the first machine, on main.
std::string SeriesOfMain(const std::string& benchmark) {
  return absl::StrCat(benchmark, "|time|ns|", kMachine, "|main");
}

// "BM_a0|time|ns|... provisional, new 1a2b3c4d5e6f".
std::string Told(const std::string& series, const Json& change) {
  return absl::StrCat(series, " ", TextOf(change, "state"), " ",
                      Short(TextOf(change, "first_commit_after")));
}

void TheGateNamesTheOpenChanges(Examination& of, Findings& found) {
  // Without positions and with wrong clocks the newest commit may lie before
  // others in time: `changes` knows points there that this gate leaves out.
  const Answer latest = AskGate(of, "latest");
  for (const Json& run : At(latest.Parsed(), "candidate_runs")) {
    if (TextOf(run, "commit") != of.NewestCommit()) return;
  }
  const Json gate = AskGate(of, of.NewestCommit()).Parsed();
  std::set<std::string> told, expected, judged;
  for (const Json& row : At(gate, "rows")) {
    if (TextOf(row, "metric") == "time" &&
        absl::StartsWith(TextOf(row, "against"), "window:") &&
        !At(At(row, "baseline"), "run_ids").empty()) {
      judged.insert(SeriesOfMain(TextOf(row, "name")));
    }
  }
  for (const Json& change : At(gate, "open_changes")) {
    told.insert(Told(TextOf(change, "series"), change));
  }
  for (const Json& row : of.Changes()) {
    const std::string state = TextOf(row, "state");
    const bool is_open = state == "new" || (absl::EndsWith(state, ", new") &&
                                            NumberOf(row, "worse_by") > 0);
    if (is_open && NumberOf(row, "worse_by") >= .03 &&
        judged.count(TextOf(row, "series")) > 0) {
      expected.insert(Told(TextOf(row, "series"), row));
    }
  }
  for (const std::string& change : expected) {
    found.Expect(told.count(change) > 0,
                 absl::StrCat(change, " is open in changes, not in the gate"));
  }
  for (const std::string& change : told) {
    found.Expect(expected.count(change) > 0,
                 absl::StrCat(change, " is open in the gate, not in changes"));
  }
}

void RedIsNotUnchanged(Examination& of, Findings& found) {
  if (!of.history().is_calm || !of.history().answer.empty()) return;
  std::map<std::string, std::string> verdicts;  // of the report, by series
  for (const Json& series : At(of.Report(), "series")) {
    verdicts[SeriesText(series)] = TextOf(series, "verdict");
  }
  const Json gate = AskGate(of, of.NewestCommit()).Parsed();
  for (const Json& row : At(gate, "rows")) {
    if (TextOf(row, "metric") != "time") continue;
    const std::string& verdict = verdicts[SeriesOfMain(TextOf(row, "name"))];
    if (TextOf(row, "verdict") == "faster") {
      const double ratio = NumberOf(At(row, "ratio"), "ratio");
      found.Expect(verdict != "unchanged" || ratio > .92,
                   absl::StrCat(TextOf(row, "name"), " takes x", ratio,
                                " in the gate and is unchanged in the report"));
    }
    if (TextOf(row, "verdict") != "slower" || TextOf(row, "action") != "FAIL") {
      continue;
    }
    found.Expect(verdict != "unchanged" && verdict != "faster",
                 absl::StrCat(TextOf(row, "name"), " is red in the gate and ",
                              verdict, " in the report"));
  }
}

void SuspectsHoldThePlantedCommit(Examination& of, Findings& found) {
  const MadeHistory& history = of.history();
  if (!history.is_calm || history.steps.empty()) return;
  std::map<std::string, int64_t> positions;
  for (const proto::Run& run : history.runs) {
    positions[run.commit().id()] = run.commit().first_parent_position();
  }
  const int64_t newest = positions[of.NewestCommit()];
  const PlantedStep& step = history.steps.front();
  const int64_t at = std::min(newest, step.at + of.rng().UniformInt(6));
  for (const PlantedStep& other : history.steps) {
    const bool also = &other != &step && other.benchmark == step.benchmark;
    if (also) return;
  }
  const Json gate =
      AskGate(of, MadeCommit(static_cast<int>(at), "main")).Parsed();
  const Json row = RowWith(At(gate, "rows"), "name", step.benchmark);
  if (TextOf(row, "verdict") != "slower") return;
  // They lie between the two sides if no run narrows them.
  const auto suspect = [&](const char* name, const char* side) {
    const std::string narrowed = TextOf(row, name);
    return narrowed.empty() ? TextOf(At(row, side), "commit") : narrowed;
  };
  const std::string good = suspect("suspect_good", "baseline");
  const std::string bad = suspect("suspect_bad", "candidate");
  found.Expect(positions.count(good) > 0 && positions[good] < step.at &&
                   positions.count(bad) > 0 && step.at <= positions[bad],
               absl::StrCat(step.benchmark, " at ", at, ": suspects from ",
                            positions[good], " to ", positions[bad],
                            ", planted at ", step.at));
}

}  // namespace

std::vector<Invariant> GateInvariants() {
  return {
      {"the_gate_judges_what_was_asked",
       "candidate runs are of the commit and hardware that were asked about, "
       "with all suites, or the exit code is 3",
       TheGateJudgesWhatWasAsked},
      {"evidence_is_of_the_runs_that_are_named",
       "processes, commit and value of a baseline are those of its run ids",
       TheEvidenceIsOfTheRunsThatAreNamed},
      {"the_exit_code_of_the_gate_is_of_its_rows",
       "exit code 1 exactly if a row fails; no note is printed twice",
       TheGatesExitCodeIsThatOfItsRows},
      {"one_pair_has_one_verdict",
       "compare and gate give two runs one verdict and ratio, and no pair is "
       "slower both ways",
       OnePairHasOneVerdict},
      {"one_run_has_one_value", "compare and show print one value of one run",
       CompareAndShowHaveOneValue},
      {"green_hides_no_planted_slow_down",
       "in a calm history no gate is green at a commit that planted 8% and "
       "more, but where the row names an ack",
       AGreenGateHidesNoPlantedSlowDown},
      {"the_gate_names_the_open_changes",
       "open_changes of a gate are the changes for the worse that `changes` "
       "has "
       "open or new in the series that it judges",
       TheGateNamesTheOpenChanges},
      {"red_is_not_unchanged",
       "in a calm history no benchmark that the gate fails as slower is "
       "unchanged or faster in the report, nor unchanged where the gate has it "
       "faster by 8% and more",
       RedIsNotUnchanged},
      {"suspects_hold_the_planted_commit",
       "in a calm history the suspects of a red row hold the commit that "
       "planted the change",
       SuspectsHoldThePlantedCommit},
  };
}

}  // namespace optrail::agreement
