// An answer to a change covers the change that its author saw, for every
// command alike.

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "cli/evaluation/agreement/cases.h"

namespace optrail::agreement {
namespace {

void AnAckOfTenPercentDoesNotCoverThirtyOfTheNextCommit(Workbench& bench,
                                                        Findings& found) {
  for (const int next : {31, 32}) {
    bench.Delete(".optrail");
    const ChangeOfRun slower = [&](RunSpec& spec, int position) {
      if (position >= 30) spec.benchmarks = Slower(spec.benchmarks, 1, 1.1);
      if (position >= next) spec.benchmarks = Slower(spec.benchmarks, 1, 1.3);
    };
    // The change that the ack names is seen first.
    RecordSeries(bench, 60, 60, [](RunSpec& spec, int position) {
      if (position >= 30) spec.benchmarks = Slower(spec.benchmarks, 1, 1.1);
    });
    const Answer ack =
        bench.Ask({"ack", "BM_1", MadeCommit(30), "--reason=the new format"});
    found.ExpectExit(ack, 0);
    bench.Delete(".optrail/history/runs");
    bench.Delete(".optrail/history/index.sqlite");
    RecordSeries(bench, 60, 60, slower);
    const Answer changes = bench.AskJson({"changes"});
    found.ExpectExit(changes, 1);
  }
}

// Typing errors in what is acknowledged are said.
void AnAckOfNothingIsSaid(Workbench& bench, Findings& found) {
  RecordSeries(bench, 40, 73, [](RunSpec& spec, int position) {
    if (position >= 30) spec.benchmarks = Slower(spec.benchmarks, 1, 1.2);
  });
  const Answer pattern =
      bench.Ask({"ack", "BM_one", MadeCommit(30), "--reason=known"});
  found.ExpectExit(pattern, 2);
  found.Expect(pattern.Says("BM_one"), "the pattern is not named");
  const Answer commit =
      bench.Ask({"ack", "BM_1", MadeCommit(6), "--reason=known"});
  found.Expect(commit.Says("no change is known at commit"),
               absl::StrCat("an ack of no change is silent: ", commit.err));
  found.ExpectExit(bench.Ask({"changes"}), 1);
  const Answer right =
      bench.Ask({"ack", "BM_1", MadeCommit(30), "--reason=known"});
  found.Expect(!right.Says("note:"), absl::StrCat("a right ack: ", right.err));
  found.ExpectExit(bench.Ask({"changes"}), 0);
}

void AnExpectationCoversItsSizeAlone(Workbench& bench, Findings& found) {
  RecordSeries(bench, 60, 61, [](RunSpec& spec, int position) {
    if (position >= 30) spec.benchmarks = Slower(spec.benchmarks, 1, 1.04);
    if (position >= 30) spec.benchmarks = Slower(spec.benchmarks, 2, 1.2);
  });
  bench.Ask(
      {"expect", "BM_.*", MadeCommit(30), "--reason=checks", "--effect=+5%"});
  const Answer changes = bench.AskJson({"changes"});
  found.ExpectExit(changes, 1);
  found.Expect(TextOf(ChangeAt(changes.Parsed(), "BM_1", MadeCommit(30)),
                      "state") == "expected",
               "+4% is not covered by +5%");
  found.Expect(TextOf(ChangeAt(changes.Parsed(), "BM_2", MadeCommit(30)),
                      "state") == "new",
               "+20% is covered by +5%");
}

// The gate at an acknowledged commit names the answer and is green; what is
// larger or newer stays red.
void AnAckCoversTheGateOfItsCommit(Workbench& bench, Findings& found) {
  Rng rng(81);
  for (int i = 1; i < 30; ++i) RecordCommit(bench, &rng, i, 1);
  RecordCommit(bench, &rng, 30, 1.15);
  const std::string acked = MadeCommit(30);
  const auto gate = [&] {
    return bench.AskJson({"gate", "--candidate=latest"});
  };
  found.ExpectExit(gate(), 1);
  found.ExpectExit(bench.Ask({"ack", "BM_1", acked, "--reason=the new codec"}),
                   0);
  const Answer after = gate();
  found.ExpectExit(after, 0);
  const Json row = RowWith(At(after.Parsed(), "rows"), "name", "BM_1");
  found.Expect(TextOf(row, "action") == "WARN" &&
                   absl::StrContains(TextOf(row, "exempted"), "the new codec"),
               absl::StrCat("the row does not name the ack: ", row.dump()));
  found.Expect(bench.Ask({"changes"}).Says("1 acknowledged"),
               "changes counts an acknowledged series as unchanged");
  // The same commit again, slower still.
  RunSpec spec;
  spec.commit = acked;
  spec.position = 30;
  spec.started_unix_ns = kStartNs + 31 * kHourNs;
  spec.benchmarks = Slower(Benchmarks(3), 1, 1.9);
  const std::string larger = bench.Record(MakeRun(spec, &rng));
  const Answer of_larger = bench.Ask({"gate", "--candidate=" + larger});
  found.ExpectExit(of_larger, 1);
  found.Expect(of_larger.Says("more than was answered: +1"),
               absl::StrCat("red, and silent about the ack: ", of_larger.out));
}

// Whoever follows what the gate says of an ack comes to an end, however short
// the history is, whenever the ack was given, and on a branch without a past.
void TheAdviceForAnAckEnds(Workbench& bench, Findings& found) {
  enum class Ack { kAfter, kBefore, kOnABranch };
  for (int commits = 2; commits <= 12; ++commits) {
    for (const Ack how : {Ack::kAfter, Ack::kBefore, Ack::kOnABranch}) {
      bench.Delete(".optrail");
      Rng rng(static_cast<uint64_t>(85 + commits));
      for (int i = 1; i < commits; ++i) RecordCommit(bench, &rng, i, 1);
      RunSpec spec;
      spec.branch = how == Ack::kOnABranch ? "feature" : "main";
      spec.commit = MadeCommit(commits, spec.branch);
      spec.position = commits;
      spec.started_unix_ns = kStartNs + commits * kHourNs;
      spec.benchmarks = Slower(Benchmarks(3), 1, 1.3);
      const std::vector<std::string> ack = {"ack", "BM_1", spec.commit,
                                            "--reason=known"};
      if (how == Ack::kBefore) bench.Ask(ack);
      bench.Record(MakeRun(spec, &rng));
      const auto gate = [&] {
        return bench.AskJson({"gate", "--candidate=" + spec.commit,
                              "--baseline=commit:" + MadeCommit(1)});
      };
      const int first = gate().exit_code;
      found.Expect(first == 1 || how == Ack::kBefore,
                   absl::StrCat("+30% after ", commits, " commits is ", first));
      if (first == 0) continue;
      found.ExpectExit(bench.Ask(ack), 0);
      const Answer after = gate();
      found.Expect(after.exit_code == 0,
                   absl::StrCat("after an ack at commit ", commits, " on ",
                                spec.branch, " the gate ends with ",
                                after.exit_code, ": ", after.out));
    }
  }
}

void AnAckIsNoAnswerToTheNextChange(Workbench& bench, Findings& found) {
  Rng rng(82);
  for (int i = 1; i < 30; ++i) RecordCommit(bench, &rng, i, 1);
  RecordCommit(bench, &rng, 30, 1.15);
  bench.Ask({"ack", "BM_1", MadeCommit(30), "--reason=known"});
  for (int i = 31; i < 34; ++i) RecordCommit(bench, &rng, i, 1.15);
  found.ExpectExitIsNot(bench.Ask({"gate", "--candidate=latest"}), 1);
  RecordCommit(bench, &rng, 34, 1.5);
  found.ExpectExit(bench.Ask({"gate", "--candidate=latest"}), 1);
}

// The gain and the step of commit 20 of `BM_1` and `BM_2` are acknowledged.
void RecordAnsweredChanges(Workbench& bench, Findings& found) {
  RecordSeries(bench, 40, 91, [](RunSpec& spec, int position) {
    if (position >= 20) spec.benchmarks = Slower(spec.benchmarks, 1, .8);
    if (position >= 20) spec.benchmarks = Slower(spec.benchmarks, 2, 1.2);
  });
  found.ExpectExit(bench.Ask({"ack", "BM_[12]", MadeCommit(20),
                              "--reason=the new allocator"}),
                   0);
}

void AnAcknowledgedGainIsAcknowledgedOnThePage(Workbench& bench,
                                               Findings& found) {
  RecordAnsweredChanges(bench, found);
  const Json report = ReportOf(bench);
  for (const Json& row : bench.AskJson({"changes"}).Parsed()) {
    const std::string name = TextOf(row, "benchmark");
    const std::string verdict = TextOf(ReportSeries(report, name), "verdict");
    found.Expect(
        TextOf(row, "state") == "acknowledged" && verdict == "acknowledged",
        absl::StrCat(name, " is ", TextOf(row, "state"), " in changes and ",
                     verdict, " in the report"));
  }
  found.Expect(NumberOf(At(report, "verdicts"), "acknowledged") == 2,
               absl::StrCat("counts: ", At(report, "verdicts").dump()));
}

// An answered change is not new again when runs are thinned.
void ThinningTakesNoAnswerBack(Workbench& bench, Findings& found) {
  RecordAnsweredChanges(bench, found);
  found.ExpectExit(bench.Ask({"history", "thin", "--keep_runs=5",
                              "--keep_days=0", "--keep_every=3"}),
                   0);
  const Answer changes = bench.AskJson({"changes"});
  found.ExpectExit(changes, 0);
  found.Expect(changes.Parsed().size() == 2,
               absl::StrCat("rows: ", changes.out));
  for (const Json& row : changes.Parsed()) {
    found.Expect(absl::EndsWith(TextOf(row, "state"), "acknowledged"),
                 absl::StrCat(TextOf(row, "benchmark"), " is ",
                              TextOf(row, "state"), " after thinning"));
  }
}

// The slow-down of one commit is no level: `changes` lists the gain behind it.
void AnAckOfASlowDownDoesNotCoverTheGainBehindIt(Workbench& bench,
                                                 Findings& found) {
  RecordSeries(bench, 36, 92, [](RunSpec& spec, int position) {
    if (position == 30) spec.benchmarks = Slower(spec.benchmarks, 1, 1.15);
    if (position > 30) spec.benchmarks = Slower(spec.benchmarks, 1, .8);
  });
  bench.Ask({"ack", "BM_1", MadeCommit(30), "--reason=known"});
  const Json row =
      ChangeAt(bench.AskJson({"changes"}).Parsed(), "BM_1", MadeCommit(31));
  found.Expect(TextOf(row, "state") == "new",
               absl::StrCat("an ack of +15% covers the gain: ", row.dump()));
}

// Gate and changes know the step behind an acknowledged level of a few points.
void WhatTheGateFailsBehindAnAckChangesLists(Workbench& bench,
                                             Findings& found) {
  for (const int between : {2, 3, 4}) {
    bench.Delete(".optrail");
    Rng rng(93);
    for (int i = 1; i < 30; ++i) RecordCommit(bench, &rng, i, 1);
    int at = 30;
    for (; at < 30 + between; ++at) RecordCommit(bench, &rng, at, 1.1);
    bench.Ask({"ack", "BM_1", MadeCommit(30), "--reason=known"});
    found.ExpectExit(bench.Ask({"changes"}), 0);
    for (int since = 1; since <= 3; ++since, ++at) {
      RecordCommit(bench, &rng, at, 1.35);
      found.ExpectExit(bench.Ask({"gate", "--candidate=latest"}), 1);
      const Json changes = bench.AskJson({"changes"}).Parsed();
      bool is_listed = false;
      for (const Json& row : changes) {
        is_listed |= TextOf(row, "benchmark") == "BM_1" &&
                     absl::EndsWith(TextOf(row, "state"), "new");
      }
      found.Expect(
          is_listed,
          absl::StrCat("red at point ", since, " of a second step, ", between,
                       " behind an ack, and changes has ", changes.dump()));
      const Json series = ReportSeries(ReportOf(bench), "BM_1");
      found.Expect(TextOf(series, "verdict") != "acknowledged",
                   "the report calls the second step acknowledged");
    }
  }
}

// It covers no change, so a change behind it is as sure as without it.
void AnAckBesideAChangeTakesNothingFromIt(Workbench& bench, Findings& found) {
  std::vector<std::string> verdicts;
  for (const bool with_ack : {false, true}) {
    bench.Delete(".optrail");
    Rng rng(94);
    for (int i = 1; i <= 32; ++i) RecordCommit(bench, &rng, i, 1);
    if (with_ack) bench.Ask({"ack", "BM_1", MadeCommit(32), "--reason=x"});
    for (int i = 33; i <= 34; ++i) RecordCommit(bench, &rng, i, 1.2);
    verdicts.push_back(
        TextOf(ReportSeries(ReportOf(bench), "BM_1"), "verdict"));
  }
  found.Expect(
      verdicts[0] == verdicts[1],
      absl::StrCat("without an ack ", verdicts[0], ", with one ", verdicts[1]));
}

}  // namespace

std::vector<Case> AnswerCases() {
  return {
      {"AnAckOfTenPercentDoesNotCoverThirtyOfTheNextCommit",
       AnAckOfTenPercentDoesNotCoverThirtyOfTheNextCommit},
      {"AnAckOfNothingIsSaid", AnAckOfNothingIsSaid},
      {"AnExpectationCoversItsSizeAlone", AnExpectationCoversItsSizeAlone},
      {"AnAckCoversTheGateOfItsCommit", AnAckCoversTheGateOfItsCommit},
      {"TheAdviceForAnAckEnds", TheAdviceForAnAckEnds},
      {"AnAckIsNoAnswerToTheNextChange", AnAckIsNoAnswerToTheNextChange},
      {"AnAcknowledgedGainIsAcknowledgedOnThePage",
       AnAcknowledgedGainIsAcknowledgedOnThePage},
      {"ThinningTakesNoAnswerBack", ThinningTakesNoAnswerBack},
      {"AnAckOfASlowDownDoesNotCoverTheGainBehindIt",
       AnAckOfASlowDownDoesNotCoverTheGainBehindIt},
      {"WhatTheGateFailsBehindAnAckChangesLists",
       WhatTheGateFailsBehindAnAckChangesLists},
      {"AnAckBesideAChangeTakesNothingFromIt",
       AnAckBesideAChangeTakesNothingFromIt},
  };
}

}  // namespace optrail::agreement
