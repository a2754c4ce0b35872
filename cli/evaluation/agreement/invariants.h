#ifndef OPTRAIL_CLI_EVALUATION_AGREEMENT_INVARIANTS_H_
#define OPTRAIL_CLI_EVALUATION_AGREEMENT_INVARIANTS_H_

// What holds of every history, whatever is in it: the invariants that
// docs/method/agreement.md lists, and the check of each.
//
//   Examination examination(history, bench);
//   for (const Invariant& invariant : Invariants()) {
//     Findings found;
//     invariant.check(examination, found);
//   }
//
// An Examination asks each question once and keeps the answer.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "base/random.h"
#include "cli/evaluation/agreement/cases.h"
#include "cli/evaluation/agreement/random_history.h"
#include "cli/evaluation/agreement/workbench.h"

namespace optrail::agreement {

// What the processes of some runs say of the time of a benchmark.
struct Reading {
  double median = 0;  // of the medians of the processes
  int processes = 0;
};

class Examination {
 public:
  Examination(const MadeHistory& history, const Workbench& bench);

  const MadeHistory& history() const { return history_; }
  const Workbench& bench() const { return bench_; }
  Rng& rng() { return rng_; }

  // Runs a command that records nothing, or returns its answer of before.
  const Answer& Ask(const std::vector<std::string>& arguments);
  const Answer& AskJson(std::vector<std::string> arguments);
  const Json& Report();
  // Holds every size and metric.
  const Json& Changes();
  // The rows of `history export`, by series, in their order.
  using CsvRow = std::map<std::string, std::string>;
  const std::map<std::string, std::vector<CsvRow>>& Export();
  // Series of Export(): at most `count`, drawn.
  std::vector<std::string> SomeSeries(size_t count);

  // The run with this id; null if there is none.
  const proto::Run* FindRun(const std::string& id) const;
  // The recorded value, computed here from the samples.
  absl::optional<Reading> ReadingOf(const std::vector<const proto::Run*>& runs,
                                    const std::string& benchmark) const;
  // The newest commit of main by position, and one before it; "" for none.
  std::string NewestCommit() const;
  std::string SomeCommit();

 private:
  const MadeHistory& history_;
  const Workbench& bench_;
  Rng rng_;
  std::map<std::string, const proto::Run*> runs_;
  std::map<std::vector<std::string>, Answer> answers_;
  absl::optional<Json> report_, changes_;
  absl::optional<std::map<std::string, std::vector<CsvRow>>> export_;
};

// The canonical text of a series of the report's JSON.
std::string SeriesText(const Json& series);

struct Invariant {
  const char* name;
  const char* says;
  void (*check)(Examination& of, Findings& found);
  // Seeds of histories for which it is known to fail, and why. Any other
  // history must hold, and these must fail: a mark hides no other break.
  std::vector<uint64_t> known_failures = {};
  const char* known_reason = "";

  bool IsKnownToFail(uint64_t seed) const;
};

std::vector<Invariant> Invariants();
// Its parts.
std::vector<Invariant> ValueInvariants();  // of the runs that are named
std::vector<Invariant> StoryInvariants();  // changes, report, detect
std::vector<Invariant> GateInvariants();   // gate and compare

}  // namespace optrail::agreement

#endif  // OPTRAIL_CLI_EVALUATION_AGREEMENT_INVARIANTS_H_
