#include "tuning/session/node_calibration.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "base/stats/distributions.h"
#include "base/stats/statistics.h"
#include "tuning/proto/canonical.h"

namespace optrail::tuning {
namespace {

// Fewer readings have no useful interval.
constexpr int kFewestToCompare = 3;

struct Ratio {
  double value, low, high;
};

std::vector<double> Logs(const proto::MeasuringNode& node) {
  std::vector<double> logs;
  for (const double time_ns : node.calibration_ns()) {
    logs.push_back(std::log(time_ns));
  }
  return logs;
}

// Welch's interval of the difference of mean logs (B. L. Welch, 1947).
Ratio RatioOf(const proto::MeasuringNode& node,
              const proto::MeasuringNode& reference, double confidence) {
  const std::vector<double> x = Logs(node), y = Logs(reference);
  const double difference = Mean(x) - Mean(y);
  const double vx = Variance(x) / static_cast<double>(x.size());
  const double vy = Variance(y) / static_cast<double>(y.size());
  double half = 0;
  if (vx + vy > 0) {
    const double freedom = (vx + vy) * (vx + vy) /
                           (vx * vx / static_cast<double>(x.size() - 1) +
                            vy * vy / static_cast<double>(y.size() - 1));
    half = StudentTQuantile(.5 + confidence / 2, freedom) * std::sqrt(vx + vy);
  }
  return {std::exp(difference), std::exp(difference - half),
          std::exp(difference + half)};
}

constexpr double kMostRatio = 1 + kNodeTolerance;

bool IsToldApart(const Ratio& ratio) {
  return ratio.low > kMostRatio || ratio.high < 1 / kMostRatio;
}

bool IsSurelyEqual(const Ratio& ratio) {
  return ratio.high <= kMostRatio && ratio.low >= 1 / kMostRatio;
}

// The range of ratios of the loops that both nodes ran; nullopt without any.
absl::optional<std::pair<double, double>> ExplainedRange(
    const proto::MeasuringNode& node, const proto::MeasuringNode& reference) {
  absl::optional<std::pair<double, double>> range;
  for (const proto::Calibration& loop : node.loops()) {
    for (const proto::Calibration& other : reference.loops()) {
      if (loop.loop() != other.loop() || !(other.time_ns() > 0)) continue;
      const double ratio = loop.time_ns() / other.time_ns();
      range = !range ? std::make_pair(ratio, ratio)
                     : std::make_pair(std::min(range->first, ratio),
                                      std::max(range->second, ratio));
    }
  }
  return range;
}

void SetVerdict(const Ratio& ratio, const proto::MeasuringNode& reference,
                proto::MeasuringNode* node) {
  node->set_ratio(ratio.value);
  node->set_ratio_low(ratio.low);
  node->set_ratio_high(ratio.high);
  const auto explained = ExplainedRange(*node, reference);
  if (explained) {
    node->set_explained_low(explained->first);
    node->set_explained_high(explained->second);
  }
  if (!IsToldApart(ratio)) {
    node->set_verdict(proto::NODE_EQUAL);
    return;
  }
  node->set_verdict(explained && ratio.low <= explained->second * kMostRatio &&
                            ratio.high >= explained->first / kMostRatio
                        ? proto::NODE_DIFFERS_AS_CALIBRATED
                        : proto::NODE_DIFFERS);
}

std::string RatioText(double ratio) { return absl::StrFormat("%.3f", ratio); }

}  // namespace

NodeCalibration::NodeCalibration(std::vector<proto::MeasuringNode> nodes) {
  for (proto::MeasuringNode& node : nodes) {
    nodes_.push_back({std::move(node), {}});
  }
}

void NodeCalibration::Add(int node, const proto::Trial& trial) {
  Readings& to = nodes_[node];
  if (trial.outcome() == proto::CONTENDED) return;
  if (trial.outcome() != proto::OK || !(trial.time_ns() > 0)) {
    LeaveOut(node, proto::NODE_FAILED,
             absl::StrCat("the default config: ", OutcomeName(trial.outcome()),
                          trial.detail().empty() ? "" : ": ", trial.detail()));
    return;
  }
  to.node.add_calibration_ns(trial.time_ns());
  for (const proto::Measurement& measurement : trial.measurements()) {
    const proto::Conditions& conditions = measurement.conditions();
    if (!conditions.host().empty()) to.node.set_host(conditions.host());
    if (!conditions.device_uuid().empty()) {
      to.node.set_device_uuid(conditions.device_uuid());
    }
    for (const proto::Calibration& loop : conditions.calibrations()) {
      to.loops_ns[loop.loop()].push_back(loop.time_ns());
    }
    // A GPU runs no loops beside the samples, and tells its clock.
    if (conditions.clock_hz() > 0) {
      to.loops_ns["clock"].push_back(
          1e9 / static_cast<double>(conditions.clock_hz()));
    }
  }
}

void NodeCalibration::LeaveOut(int node, proto::NodeVerdict verdict,
                               const std::string& detail) {
  nodes_[node].node.set_verdict(verdict);
  nodes_[node].node.set_detail(detail);
}

bool NodeCalibration::IsLeftOut(int node) const {
  return nodes_[node].node.verdict() != proto::NODE_VERDICT_UNSPECIFIED;
}

NodeComparison NodeCalibration::Compare() const {
  NodeComparison comparison;
  std::vector<int> compared;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    proto::MeasuringNode node = nodes_[i].node;
    for (const auto& [name, readings_ns] : nodes_[i].loops_ns) {
      proto::Calibration* loop = node.add_loops();
      loop->set_loop(name);
      loop->set_time_ns(Median(readings_ns));
      loop->set_readings(static_cast<int>(readings_ns.size()));
    }
    if (!IsLeftOut(static_cast<int>(i))) {
      if (node.calibration_ns_size() >= kFewestToCompare) {
        compared.push_back(static_cast<int>(i));
      } else {
        comparison.undecided = true;
        node.set_verdict(proto::NODE_FAILED);
        node.set_detail("too busy: the default config could not be read");
      }
    }
    comparison.nodes.push_back(std::move(node));
  }
  if (compared.empty()) return comparison;
  const double pairs =
      std::max<double>(1, static_cast<double>(compared.size() - 1));
  const double confidence = 1 - (1 - kNodeConfidence) / pairs;
  const auto ratio = [&](int node, int reference) {
    return RatioOf(comparison.nodes[node], comparison.nodes[reference],
                   confidence);
  };
  int most_equals = 0;
  for (const int reference : compared) {
    const auto equals = static_cast<int>(std::count_if(
        compared.begin(), compared.end(),
        [&](int node) { return !IsToldApart(ratio(node, reference)); }));
    if (equals <= most_equals) continue;
    most_equals = equals;
    comparison.reference = reference;
  }
  const proto::MeasuringNode reference = comparison.nodes[comparison.reference];
  for (const int i : compared) {
    proto::MeasuringNode& node = comparison.nodes[i];
    if (i == comparison.reference) {
      node.set_verdict(proto::NODE_EQUAL);
      continue;
    }
    const Ratio stands = ratio(i, comparison.reference);
    SetVerdict(stands, reference, &node);
    if (!IsToldApart(stands) && !IsSurelyEqual(stands)) {
      comparison.undecided = true;
    }
  }
  return comparison;
}

std::string LostBecause(const proto::MeasuringNode& node) {
  // The detail of an equal node has no other use.
  return node.lost_because().empty() && node.verdict() == proto::NODE_EQUAL
             ? node.detail()
             : node.lost_because();
}

std::string NodeText(const proto::MeasuringNode& node) {
  std::string text = "node";
  if (!node.name().empty()) absl::StrAppend(&text, " ", node.name());
  if (!node.host().empty()) absl::StrAppend(&text, " (", node.host(), ")");
  const std::string stands =
      node.has_ratio() ? absl::StrCat(RatioText(node.ratio()), " times (",
                                      RatioText(node.ratio_low()), " to ",
                                      RatioText(node.ratio_high()), ")")
                       : "";
  const std::string loops =
      node.has_explained_low()
          ? absl::StrCat("its calibration loops take ",
                         RatioText(node.explained_low()), " to ",
                         RatioText(node.explained_high()), " times")
          : "it has no calibration loops to compare";
  switch (node.verdict()) {
    case proto::NODE_EQUAL:
      if (!node.has_ratio()) {
        absl::StrAppend(&text, ": the reference");
      } else {
        absl::StrAppend(&text, ": no difference shown, ", stands,
                        " the reference's time");
      }
      break;
    case proto::NODE_DIFFERS_AS_CALIBRATED:
      absl::StrAppend(
          &text, ": left out, ", stands,
          " the reference's time, as its calibration explains: ", loops);
      break;
    case proto::NODE_DIFFERS:
      absl::StrAppend(&text, ": told apart and left out, ", stands,
                      " the reference's time, which its calibration does not "
                      "explain: ",
                      loops);
      break;
    case proto::NODE_FAILED:
    case proto::NODE_UNREACHED:
      absl::StrAppend(&text, ": left out");
      break;
    default:
      break;
  }
  const std::string lost_because = LostBecause(node);
  if (!node.detail().empty() && node.detail() != lost_because) {
    absl::StrAppend(&text, ": ", node.detail());
  }
  if (node.proves()) {
    absl::StrAppend(&text, "; searches, ranks and proves");
  } else if (node.searches()) {
    absl::StrAppend(&text, node.verdict() == proto::NODE_EQUAL
                               ? "; searches"
                               : "; an earlier sitting searched there");
  }
  if (!lost_because.empty()) {
    absl::StrAppend(&text, "; lost during the search: ", lost_because);
  }
  return text;
}

}  // namespace optrail::tuning
