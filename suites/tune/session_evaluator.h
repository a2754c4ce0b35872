#ifndef OPTRAIL_SUITES_TUNE_SESSION_EVALUATOR_H_
#define OPTRAIL_SUITES_TUNE_SESSION_EVALUATOR_H_

// SessionEvaluator is what a tuning session (tuning/session/session.h) measures
// with here: it makes of its requests what the stopwatch is told (which inputs,
// which process, how long to sample) and of the evaluations its answers.
//
//   WorkerEvaluator workers(task, WorkerOptions{});
//   SessionEvaluator evaluator(
//       workers,
//       SessionEvaluatorFor(*space, DefaultSamplingOptions(), workers));
//   const auto session = tuning::RunSession(setup, evaluator, clock);
//
// It measures one config at a time, when it is polled; where processes are
// opened ahead, those of a round of finalists together. Where configs are
// compiled at run time, those that wait are compiled meanwhile, and whichever
// is ready first is measured first; where processes are opened ahead, it is
// begun before the session has been told of the one before it. Where calls are
// long, configs that are clearly slower on a smaller problem are not called
// (screen.h).

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ops/core/measurement_policy.h"
#include "suites/proto/worker.pb.h"
#include "suites/tune/screen.h"
#include "suites/worker/evaluator.h"
#include "tuning/session/evaluator.h"
#include "tuning/space/space.h"

namespace optrail::suites {

// What is read in rounds varies more between processes than within one, so that
// another round tells more than another sample.
inline constexpr int64_t kRoundSamplingNs = 20'000'000;

// Long calls (stopwatch.h) are sampled as often as the stopwatch concludes
// from, and no more: they vary less, and rounds tell more than samples. During
// the search one sample is enough of what is this much slower than the best,
// and three of short calls where kernels run on a warm device.
inline constexpr double kClearlySlower = 1.05;

// A long call that is hopeless is not waited for. A reading of one that is not
// takes this many hopeless calls (one is timed, one is checked, a few are
// sampled) and, for what is beside them, as often the longest reading so far.
inline constexpr double kCallsOfAReading = 12;
inline constexpr double kLongestReadings = 2;

struct SessionEvaluatorOptions {
  proto::SamplingOptions sampling;
  ops::MeasurementPolicy policy;
  // Whether those of finalists may be opened now, while the search goes on: not
  // while another task is tuned. Empty: no.
  std::function<bool()> finalists_ahead;
  // A config this many times slower than the session's best is raced out.
  // Requests that wait compiled were submitted before the best so far was read,
  // and are raced against that all the same. 0: none is.
  double race_factor = 0;
  // How many requests may wait compiled (Evaluator::CompileAhead).
  int compile_ahead = 0;
  // Those of the objectives that a meter reads (Offer::costly_metrics).
  std::vector<std::string> costly_metrics;
  // The config that the winner is going to meet, compiled by then.
  absl::optional<proto::Config> default_config;
  // Trials say their numerics class. On a device that is far that takes longer
  // than most trials: results are brought to the host.
  bool tells_numerics = false;
  // Whether a config may be launched, by what compiling it told; empty: all
  // may.
  std::function<absl::Status(const proto::Config&, const Facts&)> accept_facts;
};

// For configs of `space`, which must outlive their use, measured by
// `evaluator`.
SessionEvaluatorOptions SessionEvaluatorFor(
    const tuning::BoundSpace& space, const proto::SamplingOptions& sampling,
    suites::Evaluator& evaluator);

// How long a meter is read in a search and while finalists are ranked; while
// the winner is proven, it is read for longer. On an H200 windows of these
// lengths repeat within 0.7 and 0.1% (docs/lab/energy.md).
inline constexpr absl::Duration kSearchWindow = absl::Seconds(1);
inline constexpr absl::Duration kProofWindow = absl::Seconds(5);

// Metrics of a call that a session may optimise beside time and what meters
// read; both are known of every reading.
inline constexpr char kMemoryMetric[] = "memory";  // bytes
inline constexpr char kErrorMetric[] = "error";    // in tolerances

// Those of `metrics` that a meter reads.
std::vector<std::string> MeteredOf(const std::vector<std::string>& metrics);

class SessionEvaluator : public tuning::Evaluator {
 public:
  // `evaluator` must outlive this.
  SessionEvaluator(suites::Evaluator& evaluator,
                   SessionEvaluatorOptions options);

  absl::StatusOr<tuning::Offer> Open(const proto::Task& task) override;
  void Submit(tuning::Request request) override;
  // Waits for compilers up to `wait`; measuring takes as long as it takes.
  std::vector<Evaluation> Poll(absl::Duration wait) override;
  bool IsReady() override;
  void Cancel(int64_t ticket) override;
  absl::Status ProveOn(const std::string& host,
                       const std::string& device_uuid) override;

  // Public, for tests and benches.
  EvaluationOptions OptionsFor(const tuning::Request& request) const;

 private:
  // A request, and what it is measured with.
  struct Begun {
    tuning::Request request;
    EvaluationOptions options;
  };
  Evaluation Evaluate(const Begun& begun);
  // Returns how `request` is sampled; OptionsFor() shortens that for rounds.
  proto::SamplingOptions SamplingFor(const tuning::Request& request) const;
  // The answer to `request`, except where a smaller problem told it.
  Evaluation AnswerOf(const tuning::Request& request, Evaluation answer);
  // True if its samples are interleaved with others of its round.
  bool IsReadTogether(const tuning::Request& request) const;
  bool AreReadTogether(const tuning::Request& one,
                       const tuning::Request& other) const;
  int64_t WaitingOfRound(const tuning::Request& one) const;
  std::vector<Evaluation> AnswerRound(const tuning::Request& first);
  std::vector<Evaluation> Answered(const Begun& begun);
  // So that the device need not wait until the session has thought.
  void BeginNext();
  // The first that is ready.
  std::deque<tuning::Request>::iterator FirstReady();
  // Against the best that was answered since it was submitted.
  void Tighten(tuning::Request* request) const;
  // The default, which the search may never ask for.
  void PrepareDefault(const tuning::Request& request);
  // Opens the process of the request, unless that has begun.
  void OpenAhead(const tuning::Request& request);
  void OpenOfSearch();
  void OpenOfProof();
  // Those after it, as far as it is time, once an answer took so long.
  void OpenFinalists(const tuning::Request& answered, int64_t elapsed_ns);
  // False: enough are.
  bool OpenNext(const tuning::Request& answered);
  ComingProcess ComingFor(tuning::Purpose purpose, int64_t round) const;
  // Absent: that of the search.
  absl::optional<int64_t> ProcessOf(tuning::Purpose purpose,
                                    int64_t round) const;
  uint64_t SeedOf(tuning::Purpose purpose, int64_t round) const;

  suites::Evaluator& evaluator_;
  const SessionEvaluatorOptions options_;
  std::deque<tuning::Request> waiting_;
  absl::optional<Begun> begun_;
  Screen screen_;
  int64_t longest_reading_ns_ = 0;      // of the search, that was OK
  absl::optional<proto::Config> best_;  // of the search
  double best_time_ns_ = 0;
  int64_t answered_ = 0;
  int64_t proof_processes_opened_ = 0;
  std::vector<int64_t> opening_;  // of finalists, as far as is known
  int answers_since_opening_ = 0;
  int64_t ns_since_opening_ = 0;
  bool default_prepared_ = false;
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_SESSION_EVALUATOR_H_
