#ifndef OPTRAIL_SUITES_GRAPH_OPEN_LOOP_H_
#define OPTRAIL_SUITES_GRAPH_OPEN_LOOP_H_

// An open-loop load: requests arrive when they are due, whether or not the
// server keeps up, and a latency counts from that moment. A generator that
// waits for an answer before it sends the next request leaves out the requests
// that would have met the slow one (coordinated omission).
//
//   OpenLoopOptions options;
//   options.load = 20'000;  // requests per second
//   options.batch = 64;
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const ServedLoad served,
//       ServeOpenLoop(options, [&](int worker, int64_t first, int64_t count) {
//         return Compute(worker, first, count);
//       }));
//   Use(LatencyQuantile(served.latencies_ns, .99).value_ns);
//
// All arrivals are drawn before the start, so that no thread generates load
// beside the server: what has arrived follows from the clock.

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace optrail::suites {

struct OpenLoopOptions {
  double load = 0;  // requests per second
  absl::Duration duration = absl::Seconds(5);
  uint64_t seed = 1;  // of the arrivals
  int64_t batch = 1;  // the most requests of a call
  // A batch that is not full waits for more requests, until its first one has
  // waited so long.
  absl::Duration max_wait = absl::Milliseconds(1);
  int workers = 1;
};

// A Poisson process of which it is known how many arrivals there are, so that
// the load is what was asked for: times in ns from its start, rising.
std::vector<int64_t> PoissonArrivals(double per_second, absl::Duration duration,
                                     uint64_t seed);

// Which requests make the next batch, first come, first served. It keeps no
// clock and no threads. Not thread-safe.
class ArrivalQueue {
 public:
  // `arrivals_ns` are sorted and must outlive it.
  ArrivalQueue(absl::Span<const int64_t> arrivals_ns, int64_t batch,
               int64_t max_wait_ns)
      : arrivals_ns_(arrivals_ns), batch_(batch), max_wait_ns_(max_wait_ns) {}

  // A batch to compute now, or (count = 0) when to ask again.
  struct Step {
    int64_t first = 0, count = 0;
    int64_t ask_again_ns = 0;
  };
  // Must not be called once done(). `now_ns` never falls.
  Step Next(int64_t now_ns);
  bool done() const { return taken_ == Size(); }

  // Requests that have arrived and are in no batch.
  int64_t Waiting(int64_t now_ns);
  // Requests that are in a batch.
  int64_t taken() const { return taken_; }

 private:
  int64_t Size() const { return static_cast<int64_t>(arrivals_ns_.size()); }

  const absl::Span<const int64_t> arrivals_ns_;
  const int64_t batch_, max_wait_ns_;
  int64_t taken_ = 0, arrived_ = 0;
};

struct ServedLoad {
  double offered = 0;  // requests per second that arrived
  // Answers per second until the last of them, or of `duration` where the last
  // one comes earlier: answers to what arrived late are no sign of overload.
  double achieved = 0;
  // In the order of arrival. For a request without an answer, the time until
  // the server was stopped: its latency is at least that.
  std::vector<double> latencies_ns;
  int64_t unanswered = 0;
  int64_t batches = 0;
  double queue_mean = 0;   // requests that wait when a batch is formed
  int64_t queue_most = 0;  // the most of them
  // Requests that had arrived and had no answer, after half of the duration and
  // at its end.
  int64_t queue_half = 0, queue_final = 0;
  // The server answers less than what arrives, and the queue grows.
  bool overloaded = false;

  double requests_of_batch() const;
  double ShareAbove(double latency_ns) const;
};

// Fills in what follows from times: all but `batches` and the queue's mean and
// most. Request i was answered at `answered_ns[i]`, or not until `stopped_ns`
// if that is 0.
ServedLoad LoadOfTimes(const OpenLoopOptions& options,
                       absl::Span<const int64_t> arrivals_ns,
                       absl::Span<const int64_t> answered_ns,
                       int64_t stopped_ns);

// Decides `overloaded`: some request has no answer, or the queue grew in the
// second half by more than two batches for each worker and two standard
// deviations of what a server without spare time would see. The number of
// arrivals is fixed, so that half of them vary by sqrt(n) / 2; a stable queue
// varies less. docs/method/graphs.md.
bool QueueGrows(const ServedLoad& served, const OpenLoopOptions& options);

// Computes requests [first, first + count); called by one thread of `worker`.
using ServeBatch =
    std::function<absl::Status(int worker, int64_t first, int64_t count)>;

// Returns after the duration and what the server needs for the rest of the
// queue, two seconds at most. Errors are those of `serve`.
absl::StatusOr<ServedLoad> ServeOpenLoop(const OpenLoopOptions& options,
                                         const ServeBatch& serve);

struct LatencyInterval {
  double value_ns = 0;
  // Infinity for `high_ns` where there are too few values for a bound: for the
  // 99th percentile fewer than 368 independent ones.
  double low_ns = 0, high_ns = 0;

  bool has_high() const;
};

// The p-quantile with its 95% interval between two order statistics, by the
// binomial distribution (David and Nagaraja, "Order Statistics", 2003, 7.1).
// The interval holds for any distribution of independent values. Neighbours in
// a queue are not independent, so the number of values is divided by how much
// more the count beyond the quantile varies between 20 parts of the series than
// independent values would (batch means; Schmeiser, 1982).
// docs/method/graphs.md.
LatencyInterval LatencyQuantile(absl::Span<const double> latencies_ns,
                                double p);

// Serves `load` for a search: as long as `options` say, but at least 20 times
// the limit, so that answers that come within it count little. A load that
// seems to be held, by too few requests for an upper bound of the 99th
// percentile, is served again for longer, up to a minute.
absl::StatusOr<ServedLoad> ProbeLoad(
    const OpenLoopOptions& options, double load, double limit_ns,
    absl::FunctionRef<absl::StatusOr<ServedLoad>(const OpenLoopOptions&)>
        serve);

struct Capacity {
  double load = 0;  // the highest that was held; 0: none was
  ServedLoad served;
  int probes = 0;
};

// The highest load at which the queue does not grow and the 99th percentile is
// within the limit, to 2%, by bisection of its logarithm from `guess` on. A
// load that is not held is tried three times, unless the server is far behind.
absl::StatusOr<Capacity> FindCapacity(
    double guess, double limit_ns,
    absl::FunctionRef<absl::StatusOr<ServedLoad>(double load)> probe);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_GRAPH_OPEN_LOOP_H_
