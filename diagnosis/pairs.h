#ifndef OPTRAIL_DIAGNOSIS_PAIRS_H_
#define OPTRAIL_DIAGNOSIS_PAIRS_H_

// Pairs compares a kernel with a twin of which one thing was changed: samples
// of both are interleaved in one process, so that what disturbs the machine
// hits both.
//
//   const Pairs pairs(subject, evaluator, options);
//   pairs.Set("memory_gain", aliased, "operands on one block", nullptr,
//             &numbers);
//
// A gain is a share of the time: .31 means that the twin takes 31% less. What a
// device or a backend does not offer becomes an unsupported number, with the
// reason. Not thread-safe.

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "diagnosis/numbers.h"
#include "suites/worker/evaluator.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/perturbation.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::diagnosis {

struct Subject {
  suites::TaskEntry entry;
  proto::Config config;
};

// The evaluator of a task: of the subject's, or of it with other threads,
// another shape, cache or launch mode. It lives as long as the caller.
using EvaluatorFor = std::function<suites::Evaluator&(const proto::Task&)>;

class Pairs {
 public:
  // They must outlive it.
  Pairs(const Subject& subject, suites::Evaluator& evaluator,
        const suites::EvaluationOptions& options)
      : subject_(subject), evaluator_(evaluator), options_(options) {}

  // The gain of `twin` over the kernel as it is, or as `base` says.
  absl::StatusOr<Number> Of(const proto::Perturbation& twin,
                            const proto::Perturbation* base = nullptr) const;
  // The same, as a number.
  absl::StatusOr<Number> Set(absl::string_view name,
                             const proto::Perturbation& twin,
                             absl::string_view how,
                             const proto::Perturbation* base,
                             Numbers* numbers) const;

 private:
  const Subject& subject_;
  suites::Evaluator& evaluator_;
  const suites::EvaluationOptions& options_;
};

// The share of the time that goes from the first evaluation to the second,
// whose samples were interleaved, with its 95% interval. It counts clean pairs
// of samples where there are enough, else all pairs.
Number GainOf(const suites::Evaluation& base, const suites::Evaluation& twin);

// The same of two that were not interleaved, if both have a time.
void SetGain(absl::string_view name, const suites::Evaluation& base,
             const suites::Evaluation& twin, absl::string_view how,
             Numbers* numbers);

// The share of the samples that others disturbed.
double DisturbedShare(const suites::Evaluation& evaluation);

// Why an evaluation has no time. Contention has no detail of its own.
std::string WhyUntimed(const suites::Evaluation& evaluation);

// Numbers that compiling told.
void AddFacts(const suites::Facts& facts, Numbers* numbers);
// Those, and what was observed of some calls.
void AddObserved(const suites::Evaluation& profile, Numbers* numbers);

// How pairs are sampled; also for what advice is tried with.
proto::SamplingOptions PairSampling();

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_PAIRS_H_
