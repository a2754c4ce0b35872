#ifndef OPTRAIL_TUNING_SCHEDULE_TRACE_SOURCE_H_
#define OPTRAIL_TUNING_SCHEDULE_TRACE_SOURCE_H_

// The traces of one algorithm as configs of a session: a knob per decision.
// Budgets, racing, proof, journals and reports are those of any session.
//
// The header's strategy says how traces are searched: "default" and "evolution"
// stand for "evolution:trees", "evolution:NAME" takes another cost model
// (cost_model.h), "random" draws.

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tuning/proto/config.pb.h"
#include "tuning/schedule/algorithm.h"
#include "tuning/schedule/rule.h"
#include "tuning/schedule/trace.h"
#include "tuning/session/config_source.h"

namespace optrail::tuning {

proto::Config ConfigOf(const Trace& trace);
// InvalidArgument for a config whose values are not all integers.
absl::StatusOr<Trace> TraceOf(const proto::Config& config);

class TraceSource : public ConfigSource {
 public:
  TraceSource(Algorithm algorithm, const Machine& machine)
      : algorithm_(std::move(algorithm)), machine_(machine) {}

  absl::Status Validate(const proto::Config& config) const override;
  absl::StatusOr<std::unique_ptr<Proposer>> Propose(
      const proto::Session& begun,
      const ProposerOptions& options) const override;
  std::string DefaultStrategy() const override { return "evolution:trees"; }
  std::string Hash() const override;
  void Describe(proto::Session* header) const override;

  const Algorithm& algorithm() const { return algorithm_; }

 private:
  const Algorithm algorithm_;
  const Machine machine_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SCHEDULE_TRACE_SOURCE_H_
