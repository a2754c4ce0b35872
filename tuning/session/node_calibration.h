#ifndef OPTRAIL_TUNING_SESSION_NODE_CALIBRATION_H_
#define OPTRAIL_TUNING_SESSION_NODE_CALIBRATION_H_

// NodeCalibration decides which nodes of one hardware id are equal enough for
// one search. Each node reads one config, the default, in several fresh
// processes; beside each reading run the loops that calibrate the machine
// (proto::Calibration).
//
//   NodeCalibration calibration(nodes);
//   calibration.Add(/*node=*/0, trial);  // per node and process
//   const NodeComparison now = calibration.Compare();
//   if (now.undecided) Say("read once more");
//   for (const proto::MeasuringNode& node : now.nodes) Say(NodeText(node));
//
// A node is told apart from the reference if the interval of the ratio of
// their times lies wholly beyond the tolerance. The loops explain a difference
// if they differ as much. The reference is the node that has the most equals,
// the first of those in case of a tie.
//
// One thread at a time. docs/method/tuning_sessions.md.

#include <map>
#include <string>
#include <vector>

#include "tuning/proto/trial.pb.h"

namespace optrail::tuning {

// The relative difference of times that a search ignores: what it finds is
// read again on one node, and its own readings vary by as much.
inline constexpr double kNodeTolerance = .02;
// How sure a difference is, for all nodes of a session together.
inline constexpr double kNodeConfidence = .99;
// Readings of each node: the fewest that decide, and the most.
inline constexpr int kFewestCalibrations = 5;
inline constexpr int kMostCalibrations = 12;

struct NodeComparison {
  int reference = -1;  // -1: no node has enough readings
  // With ratio, explained range and verdict. Those that failed or were not
  // reached stay as they are.
  std::vector<proto::MeasuringNode> nodes;
  // More readings may change a verdict: an interval reaches beyond the
  // tolerance and is not wholly beyond it, or a node lacks readings.
  bool undecided = false;
};

class NodeCalibration {
 public:
  explicit NodeCalibration(std::vector<proto::MeasuringNode> nodes);

  // A reading of the config. One that is CONTENDED counts for nothing; any
  // other outcome but OK fails the node.
  void Add(int node, const proto::Trial& trial);
  // The node is left out for this reason.
  void LeaveOut(int node, proto::NodeVerdict verdict,
                const std::string& detail);
  bool IsLeftOut(int node) const;

  NodeComparison Compare() const;

 private:
  struct Readings {
    proto::MeasuringNode node;
    std::map<std::string, std::vector<double>> loops_ns;
  };
  std::vector<Readings> nodes_;
};

// Returns why the node went away during the search; "" if it did not. Sessions
// from before lost_because have the reason in the detail.
std::string LostBecause(const proto::MeasuringNode& node);

// One sentence about the node, for people; no full stop.
std::string NodeText(const proto::MeasuringNode& node);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_NODE_CALIBRATION_H_
