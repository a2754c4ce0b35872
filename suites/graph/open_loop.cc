#include "suites/graph/open_loop.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/distributions.h"
#include "base/random.h"
#include "base/statistics.h"
#include "base/status_macros.h"

namespace optrail::suites {
namespace {

// A server that is behind by more, and has more batches waiting for each
// worker, is overloaded.
constexpr double kBehind = .01;
constexpr int64_t kWaitingBatches = 2;

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
    ServedLoad served;
    const auto duration_ns = absl::ToInt64Nanoseconds(options_.duration);
    const double seconds = absl::ToDoubleSeconds(options_.duration);
    int64_t within = 0;
    const int64_t end_ns = NowNs();
    for (size_t i = 0; i < arrivals_ns_.size(); ++i) {
      const bool answered = answered_ns_[i] > 0;
      served.unanswered += answered ? 0 : 1;
      within += answered && answered_ns_[i] <= duration_ns ? 1 : 0;
      served.latencies_ns.push_back(static_cast<double>(
          (answered ? answered_ns_[i] : end_ns) - arrivals_ns_[i]));
    }
    served.offered = static_cast<double>(arrivals_ns_.size()) / seconds;
    served.achieved = static_cast<double>(within) / seconds;
    served.batches = batches_;
    served.queue_mean =
        batches_ == 0 ? 0 : queued_ / static_cast<double>(batches_);
    served.queue_most = queue_most_;
    served.queue_final = queue_final_;
    served.overloaded = QueueGrows(served, options_);
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
      if (!all_arrived_ && now_ns >= arrivals_ns_.back()) {
        all_arrived_ = true;
        queue_final_ = waiting;
      }
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
  int64_t queue_final_ ABSL_GUARDED_BY(mutex_) = 0;
  bool all_arrived_ ABSL_GUARDED_BY(mutex_) = false;
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

bool QueueGrows(const ServedLoad& served, const OpenLoopOptions& options) {
  return served.unanswered > 0 ||
         (served.queue_final >
              kWaitingBatches * options.batch * options.workers &&
          served.achieved < (1 - kBehind) * served.offered);
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
  // Of `count` values the quantile lies between those of ranks `low` and `high`
  // (from 0, `count` stands for none) with at most 2.5% on either side.
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
  interval.low_ns = at(std::floor(static_cast<double>(rank(.025) - 1) * scale));
  interval.high_ns =
      at(std::ceil(static_cast<double>(rank(.975) + 1) * scale) - 1);
  return interval;
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
      // No pause explains so much.
      if (served.achieved < kFarBehind * served.offered) break;
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
      // What an overloaded server answers is near to what it can.
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
