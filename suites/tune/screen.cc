#include "suites/tune/screen.h"

#include "absl/time/time.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

// A call of the smaller problem: far above what a sample costs beside it, and
// so short that a few of them, a check and a restart are less than a long call.
constexpr double kCallNs = 4e6;

// The machine changes: after so many comparisons the best is read again.
constexpr int kComparisons = 20;

}  // namespace

Screened Screen::Compare(const proto::Config& config, const proto::Config& best,
                         double best_ns, EvaluationOptions options) {
  Screened seen;
  Evaluator* const smaller = whole_.Smaller(config, kCallNs / best_ns);
  if (smaller == nullptr) return seen;
  options.sampling.set_warm_up_ns(0);
  options.sampling.set_max_time_ns(1);
  options.sampling.clear_decisive_above_ns();
  options.sampling.clear_hopeless_above_ns();
  options.hopeless_after = absl::InfiniteDuration();
  const auto read = [&](const proto::Config& one) {
    const Evaluation evaluation = smaller->Evaluate(one, options);
    seen.elapsed_ns += evaluation.trial().elapsed_ns();
    seen.unpaid_ns += evaluation.unpaid_ns();
    return evaluation;
  };
  const std::string name = tuning::CanonicalText(best);
  if (name != best_ || compared_ >= kComparisons) {
    const Evaluation evaluation = read(best);
    if (evaluation.trial().outcome() == proto::OK &&
        evaluation.trial().has_time_ns()) {
      best_ = name;
      best_there_ns_ = evaluation.trial().time_ns();
      compared_ = 0;
    }
  }
  if (name != best_) return seen;
  ++compared_;
  options.sampling.set_hopeless_above_ns(kScreenedOut * best_there_ns_);
  const Evaluation evaluation = read(config);
  // What else goes wrong there is looked at on the whole.
  if ((evaluation.trial().outcome() != proto::OK &&
       evaluation.trial().outcome() != proto::CENSORED) ||
      !evaluation.trial().has_time_ns()) {
    return seen;
  }
  seen.ratio = evaluation.trial().time_ns() / best_there_ns_;
  seen.hopeless = seen.ratio > kScreenedOut;
  return seen;
}

}  // namespace optrail::suites
