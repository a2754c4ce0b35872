#ifndef OPTRAIL_SUITES_GRAPH_MEASURED_FUSION_H_
#define OPTRAIL_SUITES_GRAPH_MEASURED_FUSION_H_

// MeasuredFusion decides about fusion rules by measurements, site by site: the
// nodes that a rule replaces and those that it creates are run interleaved
// (paired_timing.h) with seeded inputs, once for each hardware, number of
// threads, type and site, and remembered (graph/fusion/decisions.h).
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       std::unique_ptr<MeasuredFusion> fusion,
//       MeasuredFusion::Create(".optrail/fusion", device, runner_options));
//   runner_options.choose = fusion->chooser();
//   // Runner::Create(graph, device, runner_options) then asks it.
//   OPTRAIL_RETURN_IF_ERROR(fusion->Save());
//
// A decision says which kernels it compared, by a fingerprint of their ids,
// configs and generated code. It is measured again if they have changed.
//
// A rule is applied unless the 95% interval of its gain is below zero or its
// result differs from what it replaces. The device must outlive it, and it its
// choosers. Not thread-safe.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/text/table.h"
#include "graph/fusion/decisions.h"
#include "graph/fusion/fusion.h"
#include "graph/runner/runner.h"
#include "ops/core/device.h"

namespace optrail::suites {

// How much wider results in bf16 are compared than those in f32: the unit in
// the last place is 2^16 times as large, and errors of layers add up like a
// random walk. For 1e-4 it is 3e-2.
inline constexpr double kWiderInBf16 = 300;

class MeasuredFusion {
 public:
  // `folder` is where decisions are kept. Errors are those of reading them.
  static absl::StatusOr<std::unique_ptr<MeasuredFusion>> Create(
      const std::string& folder, ops::Device& device,
      const graph::RunnerOptions& options);

  // Errors name the rule and the site.
  graph::FusionChooser chooser();

  // Writes what is new.
  absl::Status Save();

  // A row for each site that was asked about: the rule, how often, what both
  // take, the gain with its interval, and the decision.
  Table Rows() const;

 private:
  struct Asked {
    proto::FusionDecision decision;
    int places = 0;
    bool again = false;  // an older one compared other kernels
  };

  MeasuredFusion(graph::FusionDecisions decisions, ops::Device& device,
                 graph::RunnerOptions options)
      : decisions_(std::move(decisions)),
        device_(device),
        options_(std::move(options)) {}

  absl::StatusOr<std::string> Choose(const graph::FusionSite& site);
  absl::StatusOr<proto::FusionDecision> Measure(const graph::FusionSite& site);
  absl::StatusOr<std::string> KernelsOf(const graph::FusionSite& site) const;

  graph::FusionDecisions decisions_;
  // The site as decisions know it, and how many threads run it.
  std::string NameOf(const graph::FusionSite& site) const;
  int threads() const;

  ops::Device& device_;
  graph::RunnerOptions options_;
  std::vector<Asked> asked_;  // in the order of their coming
  bool is_new_ = false;
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_GRAPH_MEASURED_FUSION_H_
