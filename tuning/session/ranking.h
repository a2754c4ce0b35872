#ifndef OPTRAIL_TUNING_SESSION_RANKING_H_
#define OPTRAIL_TUNING_SESSION_RANKING_H_

// SequentialHalving ranks a few finalists by repeated readings: all are read in
// interleaved rounds, after each stage the worse half leaves, and every stage
// has an equal share of the readings (Karnin, Koren and Somekh, "Almost optimal
// exploration in multi-armed bandits", ICML 2013).
//
//   SequentialHalving ranking(finalists.size(), 32);
//   while (!ranking.done()) {
//     std::map<int, double> costs;
//     for (const int i : ranking.NextRound()) costs[i] = Read(finalists[i]);
//     ranking.AddRound(costs);
//   }
//   Prove(finalists[ranking.Order()[0]]);
//
// It ends early once differences are known as well as they matter. Members
// within kEqualWithin of the best are as good as each other: the one with the
// smallest index goes first, so that rankings of the same members agree.
//
// What it finds best was chosen for its readings: how good it is must be read
// anew (proof.h).
//
// How many readings tell the members apart follows from how much they vary:
//
//   const int each = ReadingsWanted(ranking.Spread());
//   SequentialHalving again(finalists.size(), finalists.size() * each);

#include <map>
#include <vector>

namespace optrail::tuning {

// By how much a config has to be better for it to be worth finding: what a
// proof tells apart.
inline constexpr double kWorthFinding = .01;
inline constexpr int kMostRankReadings = 64;

// Part of a cost by which members differ that are as good as each other. A
// larger one would hide configs that are worth finding.
inline constexpr double kEqualWithin = .001;

// A ranking ends where differences are known within this, a gain that wins
// nothing (ProofOptions::min_gain), at 97.5% one-sided (t, of the logarithms;
// what neither a member nor a round explains is noise). After so many rounds at
// least.
inline constexpr double kSettledWithin = .005;
inline constexpr int kLeastRankRounds = 3;

// Readings of each of two members so that the better one leads in nine of ten
// rankings if it is better by kWorthFinding and the logarithm of a reading has
// the standard deviation `spread`; kMostRankReadings at most.
int ReadingsWanted(double spread);
class SequentialHalving {
 public:
  // `readings` in all; what does not fill a round of all that are left is not
  // used.
  SequentialHalving(int members, int readings);

  bool done() const { return rounds_left_ == 0; }
  // Whom the next round reads; each round starts with another of them. Empty
  // when done.
  std::vector<int> NextRound() const;
  // Positive costs of the round's members; those absent were disturbed.
  void AddRound(const std::map<int, double>& costs);
  // Ends with the rounds that were read: they order the members.
  void Stop();
  // It failed: it leaves and is ranked no more.
  void Disqualify(int member);

  // Best first: those left, then the others by when they left.
  std::vector<int> Order() const;
  int rounds() const { return static_cast<int>(log_costs_.size()); }
  int readings() const { return readings_; }
  // Standard deviation of the logarithm of a reading beside the others of its
  // round, by the median (an outlier does not move it); 0: too few to say.
  double Spread() const;

 private:
  void StartStage();
  void EndStage();
  // Orders what is left, best first.
  void Sort();
  // Of the logarithms of its costs, the Hodges-Lehmann estimate (the median of
  // the means of all pairs): nearly as precise as the mean for normal noise,
  // and unmoved by a reading that is twice too slow (Hodges and Lehmann, 1963).
  double Score(int member) const;
  std::map<int, double> Scores() const;  // of those that are left
  bool IsSettled() const;

  std::vector<int> alive_;                        // best first after a stage
  std::vector<int> left_;                         // those that left, best first
  std::vector<std::map<int, double>> log_costs_;  // of each round, by member
  int readings_ = 0;
  int readings_left_;
  int stages_left_ = 0;
  int rounds_left_ = 0;  // of this stage
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_RANKING_H_
