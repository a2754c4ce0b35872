#include "tracker/gate/evaluation/planted.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "re2/re2.h"
#include "tracker/gate/policy.h"

namespace optrail::tracker {
namespace {

constexpr int kProcesses = 5;  // of a run: as many rounds

GateReport Judged(const absl::StatusOr<Comparison>& comparison) {
  static const Policy policy = Policy::Default();
  OPTRAIL_CHECK(comparison.ok()) << comparison.status();
  GateReport report;
  Judge(policy, *comparison, "baseline", 0, &report);
  Conclude(&report);
  return report;
}

std::vector<const proto::Run*> Pointers(const std::vector<proto::Run>& runs,
                                        size_t from, size_t to) {
  std::vector<const proto::Run*> pointers;
  for (size_t i = from; i < to; ++i) pointers.push_back(&runs[i]);
  return pointers;
}

// Base first, then head first.
bool IsHead(size_t i) { return i % 4 == 1 || i % 4 == 2; }

}  // namespace

NoiseTerms& EvaluatedTerms() {
  static NoiseTerms terms;
  return terms;
}

proto::Run Slowed(proto::Run run, int which, double factor) {
  for (int j = 0; j < run.results_size(); ++j) {
    if (which >= 0 && j != which) continue;
    for (auto& m : *run.mutable_results(j)->mutable_measurements()) {
      m.set_median_ns(m.median_ns() * factor);
    }
  }
  return run;
}

std::vector<proto::Run> Numbered(std::vector<proto::Run> runs) {
  for (size_t i = 0; i < runs.size(); ++i) {
    runs[i].set_started_unix_ns(static_cast<int64_t>(i) * 1'000'000'000);
    runs[i].set_run_id(absl::StrFormat("%04d", i));
  }
  return runs;
}

GateReport GateLast(const std::vector<proto::Run>& runs, size_t candidates,
                    int looks) {
  static const Policy policy = Policy::Default();
  const size_t window =
      static_cast<size_t>(policy.proto().baseline(0).window().runs());
  const size_t first = runs.size() - candidates;
  CompareOptions options = CompareOptionsFor(policy, 1, looks);
  options.window = true;
  options.terms = EvaluatedTerms();
  options.history = Pointers(runs, 0, first);
  const auto comparison =
      Compare(Pointers(runs, first > window ? first - window : 0, first),
              Pointers(runs, first, runs.size()), options);
  return Judged(comparison);
}

GateReport GateSides(const std::vector<proto::Run>& baseline,
                     const std::vector<proto::Run>& candidate) {
  static const Policy policy = Policy::Default();
  return Judged(Compare(Pointers(baseline, 0, baseline.size()),
                        Pointers(candidate, 0, candidate.size()),
                        CompareOptionsFor(policy, 1)));
}

GateReport GateAgain(const std::vector<proto::Run>& runs, size_t last,
                     int which, double factor) {
  constexpr int kLooks = 3;
  constexpr size_t kMostCandidates = 13;  // of 30, none is in the window, too
  std::vector<proto::Run> measured(runs.begin(), runs.begin() + last);
  size_t candidates = 0;
  const auto measure = [&](size_t more) {
    for (; more > 0 && candidates < kMostCandidates; --more, ++candidates) {
      measured.push_back(
          Slowed(runs[(last + candidates) % runs.size()], which, factor));
    }
    return GateLast(Numbered(measured), candidates, kLooks);
  };
  GateReport report = measure(1);
  for (int look = 2; look <= kLooks && report.exit_code == 3; ++look) {
    const absl::optional<Remeasure> request = RemeasureRequest(report);
    if (!request.has_value()) break;
    report =
        measure((request->additional_processes + kProcesses - 1) / kProcesses);
  }
  return report;
}

PullRequest GatePullRequest(const std::vector<proto::Run>& runs, int at,
                            int rounds, int which, double factor) {
  const int recorded = static_cast<int>(runs.size()) / 2;
  std::vector<proto::Run> sides[2];  // base and head, by round
  int measured = 0;
  PullRequest request;
  const auto measure = [&](int more, const std::string& filter) {
    const RE2 wanted(filter);
    for (; more > 0 && measured < recorded; --more, ++measured) {
      const int round = (at + measured) % recorded;
      for (const int turn : {0, 1}) {
        const size_t i = 2 * static_cast<size_t>(round) + turn;
        const bool head = IsHead(i);
        proto::Run run = head ? Slowed(runs[i], which, factor) : runs[i];
        run.set_run_id(absl::StrFormat("%04d", 2 * measured + turn));
        run.set_pairing_id("a pull request");
        auto* results = run.mutable_results();
        const int all = results->size();
        results->erase(
            std::remove_if(results->begin(), results->end(),
                           [&wanted](const proto::BenchmarkResult& result) {
                             return !RE2::PartialMatch(
                                 result.key().operator_name(), wanted);
                           }),
            results->end());
        for (proto::BenchmarkResult& result : *results) {
          for (auto& m : *result.mutable_measurements()) {
            m.set_round(measured + 1);
          }
        }
        request.rounds += .5 * results->size() / all;
        sides[head].push_back(std::move(run));
      }
    }
    return GateSides(sides[0], sides[1]);
  };
  request.first = request.last = measure(rounds, "");
  int left = 40;
  while (request.last.exit_code == 3 && left > 0) {
    const absl::optional<Remeasure> more = RemeasureRequest(request.last);
    if (!more.has_value()) break;
    const int added = std::min(more->additional_processes, left);
    request.last = measure(added, more->filter);
    left -= added;
  }
  return request;
}

const Row& RowOf(const GateReport& report, const std::string& name) {
  for (const GateRow& row : report.rows) {
    if (row.row.name == name) return row.row;
  }
  OPTRAIL_CHECK(false) << "no row " << name;
  return report.rows[0].row;
}

}  // namespace optrail::tracker
