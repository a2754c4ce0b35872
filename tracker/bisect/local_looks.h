#ifndef OPTRAIL_TRACKER_BISECT_LOCAL_LOOKS_H_
#define OPTRAIL_TRACKER_BISECT_LOCAL_LOOKS_H_

// LocalLooks builds and measures the commits of a bisection on this machine,
// one at a time, each interleaved with the good end:
//
//   OPTRAIL_ASSIGN_OR_RETURN(const auto looks,
//                            LocalLooks::Create(options, builder));
//   OPTRAIL_ASSIGN_OR_RETURN(const auto slower,
//                            looks->CompareEnds("v1.2", "HEAD"));

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "re2/re2.h"
#include "tracker/ab/rounds.h"
#include "tracker/bisect/bisect_command.h"
#include "tracker/bisect/looks.h"
#include "tracker/checkout/commit_builder.h"

namespace optrail::tracker {

class LocalLooks : public Looks {
 public:
  // Both must outlive it. InvalidArgument for a pattern that is none.
  static absl::StatusOr<std::unique_ptr<LocalLooks>> Create(
      const BisectCommand& options, CommitBuilder& builder);

  absl::StatusOr<absl::optional<SlowerBenchmark>> CompareEnds(
      const std::string& good, const std::string& bad) override;
  absl::StatusOr<std::vector<Look>> LookAt(
      const std::vector<LookRequest>& requests,
      const SlowerBenchmark& at) override;
  int builds() const override { return builder_.builds(); }

  // One look without CompareEnds() before it, at the benchmark and the metric
  // that the command's patterns match.
  absl::StatusOr<Look> LookFrom(const std::string& good,
                                const LookRequest& request);

 private:
  using IsWanted = std::function<bool(absl::string_view, absl::string_view)>;

  LocalLooks(const BisectCommand& options, CommitBuilder& builder)
      : options_(options), builder_(builder) {}
  absl::StatusOr<Look> LookAtOne(const LookRequest& request,
                                 const IsWanted& is_wanted);
  absl::StatusOr<AbResult> Measure(const std::string& title, AbOptions ab,
                                   const Built& candidate);
  void Say(absl::string_view text) const;

  const BisectCommand& options_;
  CommitBuilder& builder_;
  std::unique_ptr<RE2> filter_, metric_;
  Built good_;
  absl::optional<Built> bad_;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_BISECT_LOCAL_LOOKS_H_
