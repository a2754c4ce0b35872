#include "suites/graph/open_loop.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/stats/distributions.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"

namespace optrail::suites {
namespace {

// A queue that grows by no more batches for each worker is not judged: so many
// may be in work or wait for it at any time.
constexpr int64_t kWaitingBatches = 2;
// Standard deviations of the queue's growth that are not taken for overload.
constexpr double kScatter = 2;

// A probe of a search lasts at least so many times the limit of latency.
constexpr double kLimitsOfProbe = 20;
// 368 independent latencies bound the 99th percentile from above.
constexpr double kRequestsOfProbe = 400;
constexpr absl::Duration kMostProbeForRequests = absl::Minutes(1);

// How long after the last arrival the rest of the queue is computed.
constexpr absl::Duration kMostDraining = absl::Seconds(2);

constexpr double kCapacityWithin = 1.02;
constexpr int kMostProbes = 24;
// Interference makes a server slower and never faster: a load is held that is
// held once in so many attempts.
constexpr int kAttempts = 3;
constexpr double kFarBehind = .9;

// Workers form batches one after another; while one of them waits for its batch
// to fill, it holds the queue, since the batch of the next one comes later.
class Server {
 public:
  Server(const OpenLoopOptions& options,
         const std::vector<int64_t>& arrivals_ns, const ServeBatch& serve)
      : options_(options),
        arrivals_ns_(arrivals_ns),
        serve_(serve),
        queue_(arrivals_ns, options.batch,
               absl::ToInt64Nanoseconds(options.max_wait)),
        answered_ns_(arrivals_ns.size(), 0) {}

  absl::Status Run() {
    // Threads need some time to start, which is no part of the load.
    start_ns_ = Clock::Real()->NowNs() +
                absl::ToInt64Nanoseconds(absl::Milliseconds(5));
    std::vector<std::thread> threads;
    for (int worker = 0; worker < options_.workers; ++worker) {
      threads.emplace_back([this, worker] { Work(worker); });
    }
    for (std::thread& thread : threads) thread.join();
    absl::MutexLock lock(&mutex_);
    return status_;
  }

  ServedLoad Result() {
    absl::MutexLock lock(&mutex_);
    ServedLoad served =
        LoadOfTimes(options_, arrivals_ns_, answered_ns_, NowNs());
    served.batches = batches_;
    served.queue_mean =
        batches_ == 0 ? 0 : queued_ / static_cast<double>(batches_);
    served.queue_most = queue_most_;
    return served;
  }

 private:
  int64_t NowNs() const { return Clock::Real()->NowNs() - start_ns_; }

  void Work(int worker) {
    for (;;) {
      const ArrivalQueue::Step step = TakeBatch();
      if (step.count == 0) return;
      const absl::Status status = serve_(worker, step.first, step.count);
      const int64_t now_ns = NowNs();
      // Each request is in one batch, so that no other thread writes these.
      for (int64_t i = step.first; i < step.first + step.count; ++i) {
        answered_ns_[static_cast<size_t>(i)] = now_ns;
      }
      if (status.ok()) continue;
      absl::MutexLock lock(&mutex_);
      status_.Update(status);
    }
  }

  // Empty at the end.
  ArrivalQueue::Step TakeBatch() {
    absl::MutexLock lock(&mutex_);
    const int64_t end_ns =
        arrivals_ns_.empty()
            ? 0
            : arrivals_ns_.back() + absl::ToInt64Nanoseconds(kMostDraining);
    while (!queue_.done() && status_.ok()) {
      const int64_t now_ns = NowNs();
      if (now_ns > end_ns) break;
      const int64_t waiting = queue_.Waiting(now_ns);
      const ArrivalQueue::Step step = queue_.Next(now_ns);
      if (step.count > 0) {
        ++batches_;
        queued_ += static_cast<double>(waiting);
        queue_most_ = std::max(queue_most_, waiting);
        return step;
      }
      absl::SleepFor(absl::Nanoseconds(step.ask_again_ns - now_ns));
    }
    return {};
  }

  const OpenLoopOptions& options_;
  const std::vector<int64_t>& arrivals_ns_;
  const ServeBatch& serve_;
  int64_t start_ns_ = 0;
  absl::Mutex mutex_;
  ArrivalQueue queue_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  int64_t batches_ ABSL_GUARDED_BY(mutex_) = 0;
  double queued_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t queue_most_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<int64_t> answered_ns_;  // 0: not yet
};

// How many independent values tell as much about how often `threshold` is
// exceeded as the series does.
double EffectiveCount(absl::Span<const double> values, double threshold,
                      double p) {
  constexpr size_t kParts = 20;
  const auto count = static_cast<double>(values.size());
  const size_t part = values.size() / kParts;
  if (part == 0) return count;
  std::vector<double> beyond(kParts, 0);
  for (size_t i = 0; i < part * kParts; ++i) {
    if (values[i] > threshold) ++beyond[i / part];
  }
  const double independent = static_cast<double>(part) * p * (1 - p);
  return count / std::max(1.0, Variance(beyond) / independent);
}

}  // namespace

std::vector<int64_t> PoissonArrivals(double per_second, absl::Duration duration,
                                     uint64_t seed) {
  Rng rng(seed);
  const auto count = static_cast<size_t>(std::max<int64_t>(
      1, std::llround(per_second * absl::ToDoubleSeconds(duration))));
  // One gap more than there are arrivals lies behind the last of them.
  std::vector<double> at(count + 1);
  double sum = 0;
  for (double& end : at) {
    // In (0, 1], of 53 bits.
    const double uniform =
        (static_cast<double>(rng() >> 11) + 1) / 9007199254740992.0;
    end = sum -= std::log(uniform);
  }
  const double scale = absl::ToDoubleNanoseconds(duration) / sum;
  std::vector<int64_t> arrivals(count);
  for (size_t i = 0; i < count; ++i) {
    arrivals[i] = static_cast<int64_t>(at[i] * scale);
  }
  return arrivals;
}

int64_t ArrivalQueue::Waiting(int64_t now_ns) {
  while (arrived_ < Size() && arrivals_ns_[arrived_] <= now_ns) ++arrived_;
  return arrived_ - taken_;
}

ArrivalQueue::Step ArrivalQueue::Next(int64_t now_ns) {
  const int64_t waiting = Waiting(now_ns);
  Step step;
  if (waiting == 0) {
    step.ask_again_ns = arrivals_ns_[taken_];
    if (batch_ == 1 || max_wait_ns_ == 0) return step;
  }
  const int64_t due_ns = arrivals_ns_[taken_] + max_wait_ns_;
  const int64_t last = taken_ + batch_ - 1;
  if (waiting >= batch_ || (waiting > 0 && now_ns >= due_ns)) {
    step.first = taken_;
    step.count = std::min(waiting, batch_);
    taken_ += step.count;
    return step;
  }
  step.ask_again_ns =
      last < Size() ? std::min(due_ns, arrivals_ns_[last]) : due_ns;
  return step;
}

double ServedLoad::requests_of_batch() const {
  return batches == 0 ? 0
                      : static_cast<double>(latencies_ns.size() - unanswered) /
                            static_cast<double>(batches);
}

double ServedLoad::ShareAbove(double latency_ns) const {
  if (latencies_ns.empty()) return 0;
  const auto above =
      std::count_if(latencies_ns.begin(), latencies_ns.end(),
                    [&](double latency) { return latency > latency_ns; });
  return static_cast<double>(above) / static_cast<double>(latencies_ns.size());
}

ServedLoad LoadOfTimes(const OpenLoopOptions& options,
                       absl::Span<const int64_t> arrivals_ns,
                       absl::Span<const int64_t> answered_ns,
                       int64_t stopped_ns) {
  ServedLoad served;
  const int64_t end_ns = absl::ToInt64Nanoseconds(options.duration);
  int64_t last_ns = end_ns;
  for (size_t i = 0; i < arrivals_ns.size(); ++i) {
    const bool answered = answered_ns[i] > 0;
    const int64_t until_ns = answered ? answered_ns[i] : stopped_ns;
    served.unanswered += answered ? 0 : 1;
    served.latencies_ns.push_back(
        static_cast<double>(until_ns - arrivals_ns[i]));
    if (answered) last_ns = std::max(last_ns, until_ns);
    const auto in_queue = [&](int64_t at_ns) {
      return arrivals_ns[i] <= at_ns && (!answered || until_ns > at_ns) ? 1 : 0;
    };
    served.queue_half += in_queue(end_ns / 2);
    served.queue_final += in_queue(end_ns);
  }
  const auto arrived = static_cast<double>(arrivals_ns.size());
  served.offered = arrived / absl::ToDoubleSeconds(options.duration);
  served.achieved = (arrived - static_cast<double>(served.unanswered)) /
                    (static_cast<double>(last_ns) * 1e-9);
  served.overloaded = QueueGrows(served, options);
  return served;
}

bool QueueGrows(const ServedLoad& served, const OpenLoopOptions& options) {
  const double scatter =
      .5 * std::sqrt(static_cast<double>(served.latencies_ns.size()));
  const auto work =
      static_cast<double>(kWaitingBatches * options.batch * options.workers);
  return served.unanswered > 0 ||
         static_cast<double>(served.queue_final - served.queue_half) >
             work + kScatter * scatter;
}

absl::StatusOr<ServedLoad> ServeOpenLoop(const OpenLoopOptions& options,
                                         const ServeBatch& serve) {
  const std::vector<int64_t> arrivals_ns =
      PoissonArrivals(options.load, options.duration, options.seed);
  Server server(options, arrivals_ns, serve);
  OPTRAIL_RETURN_IF_ERROR(server.Run());
  return server.Result();
}

LatencyInterval LatencyQuantile(absl::Span<const double> latencies_ns,
                                double p) {
  if (latencies_ns.empty()) return {};
  std::vector<double> sorted(latencies_ns.begin(), latencies_ns.end());
  std::sort(sorted.begin(), sorted.end());
  LatencyInterval interval;
  interval.value_ns = Quantile(sorted, p);
  const auto size = static_cast<int64_t>(sorted.size());
  const auto count = std::max<int64_t>(
      1, std::llround(EffectiveCount(latencies_ns, interval.value_ns, p)));
  // The least k for which P(K <= k) reaches `tail`.
  const auto rank = [&](double tail) {
    int64_t first = 0, last = count;
    while (first < last) {
      const int64_t middle = (first + last) / 2;
      if (BinomialCdf(middle, count, p) >= tail) {
        last = middle;
      } else {
        first = middle + 1;
      }
    }
    return first;
  };
  const double scale = static_cast<double>(size) / static_cast<double>(count);
  const auto at = [&](double place) {
    return sorted[static_cast<size_t>(
        std::clamp<int64_t>(static_cast<int64_t>(place), 0, size - 1))];
  };
  // Order statistics from 1: `low` with P(K >= low) and `high` with
  // P(K < high) of at least 97.5%, K of the values being below the quantile.
  // There may be none on a side.
  const int64_t low = rank(.025), high = rank(.975) + 1;
  interval.low_ns =
      low < 1 ? 0 : at(std::floor(static_cast<double>(low - 1) * scale));
  interval.high_ns = high > count
                         ? std::numeric_limits<double>::infinity()
                         : at(std::ceil(static_cast<double>(high) * scale) - 1);
  return interval;
}

bool LatencyInterval::has_high() const { return std::isfinite(high_ns); }

absl::StatusOr<ServedLoad> ProbeLoad(
    const OpenLoopOptions& asked, double load, double limit_ns,
    absl::FunctionRef<absl::StatusOr<ServedLoad>(const OpenLoopOptions&)>
        serve) {
  OpenLoopOptions options = asked;
  options.load = load;
  options.duration =
      std::max(options.duration, absl::Nanoseconds(kLimitsOfProbe * limit_ns));
  for (;;) {
    OPTRAIL_ASSIGN_OR_RETURN(ServedLoad served, serve(options));
    const LatencyInterval p99 = LatencyQuantile(served.latencies_ns, .99);
    if (served.overloaded || p99.has_high() || p99.value_ns > limit_ns ||
        options.duration >= kMostProbeForRequests) {
      return served;
    }
    options.duration = std::min(
        kMostProbeForRequests,
        std::max(2 * options.duration, absl::Seconds(kRequestsOfProbe / load)));
  }
}

absl::StatusOr<Capacity> FindCapacity(
    double guess, double limit_ns,
    absl::FunctionRef<absl::StatusOr<ServedLoad>(double load)> probe) {
  Capacity capacity;
  double too_much = 0;  // 0: not known
  double load = guess;
  // Below a thousandth of the guess the limit is shorter than a call.
  while (capacity.probes < kMostProbes && load > guess / 1000) {
    ServedLoad served;
    bool held = false;
    for (int attempt = 0; attempt < kAttempts && !held; ++attempt) {
      OPTRAIL_ASSIGN_OR_RETURN(served, probe(load));
      held = !served.overloaded && !served.latencies_ns.empty() &&
             LatencyQuantile(served.latencies_ns, .99).value_ns <= limit_ns;
      // No pause explains so much, or half of the requests.
      if ((served.overloaded &&
           served.achieved < kFarBehind * served.offered) ||
          LatencyQuantile(served.latencies_ns, .5).value_ns > limit_ns) {
        break;
      }
    }
    ++capacity.probes;
    if (held) {
      capacity.load = load;
      capacity.served = std::move(served);
    } else {
      too_much = load;
    }
    if (too_much == 0) {
      load *= 1.5;
    } else if (capacity.load == 0) {
      // An overloaded server answers about as much as it can.
      load = served.overloaded && served.achieved > 0
                 ? std::min(load / 1.5, served.achieved)
                 : load / 1.5;
    } else if (too_much / capacity.load <= kCapacityWithin) {
      break;
    } else {
      load = std::sqrt(too_much * capacity.load);
    }
  }
  return capacity;
}

}  // namespace optrail::suites
