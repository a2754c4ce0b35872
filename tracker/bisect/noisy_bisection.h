#ifndef OPTRAIL_TRACKER_BISECT_NOISY_BISECTION_H_
#define OPTRAIL_TRACKER_BISECT_NOISY_BISECTION_H_

// NoisyBisection finds the commit that made something slower when every look at
// a commit is a measurement with noise, with as few builds as it can.
//
//   NoisyBisection search(commits, {.log_effect = .05, ...});
//   while (absl::optional<int> commit = search.Next()) {
//     if (!Builds(*commit)) search.Skip(*commit);
//     else search.Tell(*commit, Measure(*commit));
//   }
//   const BisectAnswer answer = search.Answer();
//
// Commits are 0, known to be good, to `commits`, known to be bad; commit k in
// between is the culprit if everything before it is good and everything from it
// on is bad. The search keeps the probability of every k (Horstein,
// "Sequential transmission using noiseless feedback", 1963; Waeber, Frazier and
// Henderson, "Bisection search with noisy responses", 2013), updated by Bayes'
// rule with the likelihood of each measured ratio to the good side. It asks for
// the commit whose measurement is expected to tell most (mutual information)
// per cost, where a commit that was built costs its measurement only: doubt is
// settled by measuring again before it is settled by building.
//
// NextBatch() asks for several commits at once, for as many machines: those
// whose measurements are expected to tell most together, which without noise
// cut the commits that are left into equal parts.
//
// A wrong look is no disaster: nothing is ever excluded, only made unlikely;
// and before the search ends, the culprit and the commit before it have each
// been measured twice.
//
// It builds and measures nothing itself. A change that comes in several steps
// is not what it looks for; it finds a large one of them.

#include <vector>

#include "absl/types/optional.h"

namespace optrail::tracker {

// The logarithm of (time at a commit / time at commit 0), positive for slower.
struct BisectMeasurement {
  double log_ratio = 0;
  double standard_error = 0;
};

// The standard error of the mean of `rounds` paired rounds, at least 2. With
// few rounds it is itself uncertain: it is widened so that a normal
// distribution has the 95% interval of Student's t with `rounds - 1` degrees of
// freedom.
double WidenedStandardError(double standard_error, int rounds);

struct BisectOptions {
  // What the bad side was measured to be, against the good one. Not 0.
  double log_effect = 0;
  double effect_standard_error = 0;
  // The error of the measurements to come, as a guess for planning; 0: a fourth
  // of the effect.
  double expected_standard_error = 0;
  // Commits of one side differ by this share of the effect, for layout and
  // other luck.
  double level_spread = .1;
  // Chance that a measurement means nothing.
  double outlier_rate = .02;
  double build_cost = 5;  // in measurements
  // Enough.
  double confidence = .98;
  int max_measurements = 200;
};

struct BisectAnswer {
  // The culprit is among commits first..last: one commit, unless those between
  // could not be measured.
  int first = 0, last = 0;
  double probability = 0;
  bool is_sure = false;  // probability >= confidence
};

class NoisyBisection {
 public:
  // `commits` is at least 1.
  NoisyBisection(int commits, const BisectOptions& options);

  // The commit to measure, in 1..commits - 1; nullopt: done, or all that could
  // be done.
  absl::optional<int> Next() const;
  // At most `most` commits to measure at the same time, the lowest first; empty
  // where Next() is nullopt. One that needs several looks is there as often.
  std::vector<int> NextBatch(int most) const;

  void Tell(int commit, const BisectMeasurement& measurement);
  // The commit is like the good (bad) side without doubt: equal bytes.
  void TellCertain(int commit, bool bad);
  // The commit can't be measured: it does not build, or crashes. Where it was
  // measured before, that stays evidence, and this is a look that told nothing;
  // after two such looks it is not asked for any more.
  void Skip(int commit);

  BisectAnswer Answer() const;
  // The probability that commit `k` in 1..commits is the culprit.
  double Probability(int k) const { return posterior_[k]; }
  // Commits looked at, those skipped included: each was a build.
  int builds() const;
  // Those that failed after one that did not are among them.
  int measurements() const { return measurements_; }
  // A forecast of the measurements to come: what is left to learn by what one
  // tells, and those that confirm the answer.
  int ExpectedLooks() const;

 private:
  enum class State { kUnknown, kBuilt, kSkipped };

  void Normalise();
  double ExpectedInformation(double probability_bad) const;
  // Commits on which the answer rests by one look only.
  std::vector<int> Unconfirmed(const BisectAnswer& answer) const;
  // How far the nearest skipped commit is, by commit.
  std::vector<int> DistancesToSkipped() const;
  // The commit that tells most beside `others`, rising commits that are looked
  // at anyway.
  absl::optional<int> BestBeside(const std::vector<int>& others) const;

  const int commits_;
  const BisectOptions options_;
  double separation_;              // of the two sides, in standard errors
  std::vector<double> posterior_;  // [0] is not used
  std::vector<State> states_;
  std::vector<int> looks_;
  std::vector<int> failed_;  // looks that told nothing, after one that did
  int measurements_ = 0;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_BISECT_NOISY_BISECTION_H_
