#include "carbon/place_jobs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "carbon/flow.h"

namespace optrail::carbon {
namespace {

using Hours = std::vector<std::vector<int>>;  // by job

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Costs closer than this, relative, are equal: the flow rounds to 1e-8.
constexpr double kTie = 1e-9;
constexpr int kPasses = 8;        // over jobs, while that helps
constexpr int kReorderings = 24;  // of jobs that found no place

double KwhAnHour(const PlanJob& job) { return job.watts / 1000; }

bool IsWhole(const std::vector<int>& hours) {
  return hours.back() - hours.front() + 1 == static_cast<int>(hours.size());
}

// Jobs, what hours cost, and how many machines there are.
class Instance {
 public:
  Instance(absl::Span<const PlanJob> jobs, absl::Span<const double> costs,
           int machines)
      : jobs_(jobs), costs_(costs), machines_(machines) {
    before_.assign(costs.size() + 1, 0);
    std::partial_sum(costs.begin(), costs.end(), before_.begin() + 1);
  }

  absl::Span<const PlanJob> jobs() const { return jobs_; }
  absl::Span<const double> costs() const { return costs_; }
  int size() const { return static_cast<int>(jobs_.size()); }
  std::vector<int> Room() const {
    return std::vector<int>(costs_.size(), machines_);
  }

  double CostOf(int j, const std::vector<int>& hours) const {
    double cost = 0;
    for (const int hour : hours) cost += KwhAnHour(jobs_[j]) * costs_[hour];
    return cost;
  }

  Placement PlacementOf(Hours hours) const {
    Placement placement;
    for (int j = 0; j < size(); ++j) {
      placement.unplaced += hours[j].empty();
      placement.cost += CostOf(j, hours[j]);
    }
    placement.hours = std::move(hours);
    return placement;
  }

  std::vector<int> RoomBeside(const Hours& hours) const {
    std::vector<int> room = Room();
    for (const std::vector<int>& mine : hours) {
      for (const int hour : mine) --room[hour];
    }
    return room;
  }

  FlowPlan Flow(const std::vector<int>& which,
                const std::vector<int>& room) const {
    std::vector<FlowJob> flow;
    for (const int j : which) {
      const PlanJob& job = jobs_[j];
      flow.push_back({job.hours, job.release, job.deadline, KwhAnHour(job)});
    }
    return PlaceHours(flow, costs_, room);
  }

  // The hours of one job in the room: the cheapest, of equal ones the earliest,
  // or the earliest. A job that may pause does so only if that is cheaper.
  // Empty: there is no room.
  std::vector<int> HoursOf(int j, const std::vector<int>& room,
                           bool earliest) const {
    const PlanJob& job = jobs_[j];
    std::vector<int> hours;
    const int start = StartOf(job, room, earliest && !job.preemptible);
    for (int i = 0; start >= 0 && i < job.hours; ++i)
      hours.push_back(start + i);
    if (!job.preemptible) return hours;
    std::vector<int> parts;
    for (int hour = job.release; hour < job.deadline; ++hour) {
      if (room[hour] > 0) parts.push_back(hour);
    }
    if (static_cast<int>(parts.size()) < job.hours) return {};
    if (!earliest) {
      std::nth_element(parts.begin(), parts.begin() + (job.hours - 1),
                       parts.end(), [&](int a, int b) {
                         return std::make_pair(costs_[a], a) <
                                std::make_pair(costs_[b], b);
                       });
    }
    parts.resize(job.hours);
    std::sort(parts.begin(), parts.end());
    const double cost = CostOf(j, parts);
    const bool whole_is_as_good =
        !hours.empty() &&
        (earliest ? hours.back() <= parts.back()
                  : CostOf(j, hours) <= cost + kTie * std::abs(cost));
    return whole_is_as_good ? hours : parts;
  }

 private:
  // The start at which the job runs without a pause; -1: there is no room.
  int StartOf(const PlanJob& job, const std::vector<int>& room,
              bool earliest) const {
    int best = -1;
    double best_cost = kInfinity;
    int free_since = job.release;
    for (int hour = job.release; hour < job.deadline; ++hour) {
      if (room[hour] <= 0) free_since = hour + 1;
      const int start = hour + 1 - job.hours;
      if (start < free_since) continue;
      if (earliest) return start;
      // A job without power, or in hours that are as good, starts early.
      const double cost =
          job.watts > 0 ? before_[hour + 1] - before_[start] : 0;
      if (best < 0 || cost < best_cost - kTie * std::abs(best_cost)) {
        best_cost = cost;
        best = start;
      }
    }
    return best;
  }

  const absl::Span<const PlanJob> jobs_;
  const absl::Span<const double> costs_;
  const int machines_;
  std::vector<double> before_;  // sums of the costs
};

bool IsBetter(const Placement& a, const Placement& b) {
  if (a.unplaced != b.unplaced) return a.unplaced < b.unplaced;
  return a.cost < b.cost - kTie * std::abs(b.cost);
}

// Places the jobs that may pause anew, as the flow around the others. A job of
// which a part finds no place does not run, and makes room for others.
Hours WithFlow(const Instance& instance, const Hours& hours) {
  Hours others = hours;
  std::vector<int> may_pause;
  for (int j = 0; j < instance.size(); ++j) {
    if (!instance.jobs()[j].preemptible) continue;
    may_pause.push_back(j);
    others[j].clear();
  }
  if (may_pause.empty()) return others;
  const std::vector<int> room = instance.RoomBeside(others);
  while (true) {
    const FlowPlan flow = instance.Flow(may_pause, room);
    std::vector<int> kept;
    Hours next = others;
    for (size_t i = 0; i < may_pause.size(); ++i) {
      const int j = may_pause[i];
      if (static_cast<int>(flow.hours[i].size()) < instance.jobs()[j].hours) {
        continue;
      }
      kept.push_back(j);
      next[j] = flow.hours[i];
    }
    if (kept.size() == may_pause.size()) return next;
    // Jobs with a part that found a place held room that they do not use.
    std::vector<int> left = instance.RoomBeside(next);
    for (const int j : may_pause) {
      if (!next[j].empty()) continue;
      next[j] = instance.HoursOf(j, left, /*earliest=*/false);
      for (const int hour : next[j]) --left[hour];
      if (!next[j].empty()) kept.push_back(j);
    }
    std::sort(kept.begin(), kept.end());
    if (kept.empty() || kept.size() == may_pause.size()) return next;
    may_pause = std::move(kept);
  }
}

// Places jobs in this order, each where it is cheapest or earliest. Those that
// find no place come first in the next round, until all have one.
Hours InOrder(const Instance& instance, std::vector<int> order, bool earliest) {
  Hours best;
  size_t fewest = order.size() + 1;
  for (int round = 0; round < kReorderings; ++round) {
    Hours hours(instance.size());
    std::vector<int> room = instance.Room(), failed, rest;
    for (const int j : order) {
      hours[j] = instance.HoursOf(j, room, earliest);
      for (const int hour : hours[j]) --room[hour];
      (hours[j].empty() ? failed : rest).push_back(j);
    }
    if (failed.size() < fewest) {
      fewest = failed.size();
      best = std::move(hours);
    }
    if (failed.empty()) break;
    failed.insert(failed.end(), rest.begin(), rest.end());
    order = std::move(failed);
  }
  return best;
}

std::vector<int> Sorted(const Instance& instance,
                        const std::function<double(const PlanJob&)>& key) {
  std::vector<int> order(instance.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return key(instance.jobs()[a]) < key(instance.jobs()[b]);
  });
  return order;
}

// Moves jobs one by one to cheaper hours, or to earlier and fewer windows that
// are as good, while that helps. It gives a job without a place one if there
// is room.
Hours Moved(const Instance& instance, Hours hours, bool only_whole) {
  const std::vector<int> order = Sorted(
      instance, [](const PlanJob& job) { return -job.watts * job.hours; });
  std::vector<int> room = instance.RoomBeside(hours);
  for (int pass = 0; pass < kPasses; ++pass) {
    bool moved = false;
    for (const int j : order) {
      if (only_whole && instance.jobs()[j].preemptible) continue;
      for (const int hour : hours[j]) ++room[hour];
      std::vector<int> next = instance.HoursOf(j, room, /*earliest=*/false);
      if (next != hours[j]) {
        moved = true;
        hours[j] = std::move(next);
      }
      for (const int hour : hours[j]) --room[hour];
    }
    if (!moved) break;
  }
  return hours;
}

Placement Candidate(const Instance& instance, const Hours& hours) {
  Placement best = instance.PlacementOf(hours);
  for (int pass = 0; pass < kPasses; ++pass) {
    Placement next = instance.PlacementOf(
        WithFlow(instance, Moved(instance, best.hours, /*only_whole=*/true)));
    if (!IsBetter(next, best)) break;
    best = std::move(next);
  }
  return best;
}

Placement BestCandidate(const Instance& instance,
                        const std::vector<Hours>& others) {
  const auto by_size = [](const PlanJob& job) {
    return -job.watts * job.hours;
  };
  const auto by_release = [](const PlanJob& job) {
    return static_cast<double>(job.release);
  };
  const auto by_deadline = [](const PlanJob& job) {
    return static_cast<double>(job.deadline);
  };
  // Jobs that must not pause as if they were alone, then the flow around them.
  Placement best = instance.PlacementOf(WithFlow(
      instance, Moved(instance, Hours(instance.size()), /*only_whole=*/true)));
  const auto take = [&](const Hours& hours) {
    Placement next = Candidate(instance, hours);
    if (IsBetter(next, best)) best = std::move(next);
  };
  const bool all_pause =
      std::all_of(instance.jobs().begin(), instance.jobs().end(),
                  [](const PlanJob& job) { return job.preemptible; });
  if (all_pause && best.unplaced == 0) {
    best.best = true;  // the flow is exact
    return best;
  }
  take(Hours(best.hours));
  for (const Hours& hours : others) take(hours);
  take(InOrder(instance, Sorted(instance, by_release), /*earliest=*/true));
  if (best.unplaced > 0) {
    take(InOrder(instance, Sorted(instance, by_deadline), /*earliest=*/true));
    take(InOrder(instance, Sorted(instance, by_size), /*earliest=*/false));
  }
  return best;
}

// Branch and bound. Each phase looks for placements that leave at most so many
// jobs out; the first one that holds any has the fewest.
class Search {
 public:
  Search(const Instance& instance, Placement best, int64_t work)
      : instance_(instance),
        best_(std::move(best)),
        work_(work),
        state_(instance.size(), State::kOpen),
        fixed_(instance.size()),
        room_(instance.Room()) {}

  Placement Run() {
    best_.least_unplaced = MissingJobs();
    bool proven = true;
    for (most_out_ = best_.least_unplaced; most_out_ <= best_.unplaced;
         ++most_out_) {
      const bool is_last = most_out_ == best_.unplaced;
      // A phase that finds nothing leaves work for those after it.
      const int64_t kept = is_last ? 0 : work_ / 2;
      work_ -= kept;
      cut_ = false;
      Visit(/*out=*/0);
      work_ += kept;
      if (is_last || best_.unplaced <= most_out_) {
        best_.best = proven && !cut_;
        break;
      }
      proven &= !cut_;
      if (proven) best_.least_unplaced = most_out_ + 1;
    }
    return std::move(best_);
  }

 private:
  enum class State { kOpen, kRuns, kOut };

  // At least so many jobs do not fit, even if all may pause.
  int MissingJobs() {
    if (best_.unplaced == 0) return 0;
    std::vector<int> all(instance_.size());
    std::iota(all.begin(), all.end(), 0);
    int64_t longest = 1;
    for (const PlanJob& job : instance_.jobs()) {
      longest = std::max<int64_t>(longest, job.hours);
    }
    const int64_t missing = instance_.Flow(all, room_).missing;
    return static_cast<int>((missing + longest - 1) / longest);
  }

  // The flow of all jobs that are not out and have no fixed hours.
  void Visit(int out) {
    std::vector<int> which;
    int64_t arcs = 0;
    double cost = 0;
    for (int j = 0; j < instance_.size(); ++j) {
      if (state_[j] == State::kOut) continue;
      if (!fixed_[j].empty()) {
        cost += instance_.CostOf(j, fixed_[j]);
        continue;
      }
      which.push_back(j);
      arcs += instance_.jobs()[j].deadline - instance_.jobs()[j].release;
    }
    if (work_ <= 0) {
      cut_ = true;
      return;
    }
    work_ -= arcs + static_cast<int64_t>(room_.size());
    FlowPlan flow = instance_.Flow(which, room_);
    if (flow.missing > 0) {
      LeaveOneOut(which, flow, out);
      return;
    }
    Hours hours = fixed_;
    for (size_t i = 0; i < which.size(); ++i) {
      cost += instance_.CostOf(which[i], flow.hours[i]);
      hours[which[i]] = std::move(flow.hours[i]);
    }
    if (out > best_.unplaced ||
        (out == best_.unplaced &&
         cost >= best_.cost - kTie * std::abs(best_.cost))) {
      return;
    }
    const int torn = LargestTorn(which, hours);
    if (torn < 0) {
      const int least_unplaced = best_.least_unplaced;
      best_ = instance_.PlacementOf(std::move(hours));
      best_.least_unplaced = least_unplaced;
      most_out_ = std::min(most_out_, best_.unplaced);
      return;
    }
    Branch(torn, flow.prices, out);
  }

  // Not all jobs of the flow fit: one that is open is left out, or all run.
  void LeaveOneOut(const std::vector<int>& which, const FlowPlan& flow,
                   int out) {
    if (out >= std::min(most_out_, best_.unplaced)) return;
    int chosen = -1;
    int64_t most_missing = -1;
    for (size_t i = 0; i < which.size(); ++i) {
      const int j = which[i];
      if (state_[j] != State::kOpen) continue;
      const int64_t missing = instance_.jobs()[j].hours -
                              static_cast<int64_t>(flow.hours[i].size());
      if (missing > most_missing) {
        most_missing = missing;
        chosen = j;
      }
    }
    if (chosen < 0) return;
    state_[chosen] = State::kOut;
    Visit(out + 1);
    state_[chosen] = State::kRuns;
    Visit(out);
    state_[chosen] = State::kOpen;
  }

  // The job that must not pause and does, with the most energy; -1: none does.
  int LargestTorn(const std::vector<int>& which, const Hours& hours) const {
    int torn = -1;
    double most = -1;
    for (const int j : which) {
      const PlanJob& job = instance_.jobs()[j];
      if (job.preemptible || IsWhole(hours[j])) continue;
      if (job.watts * job.hours > most) {
        most = job.watts * job.hours;
        torn = j;
      }
    }
    return torn;
  }

  // Tries every start of the job, those that cost least with the price of
  // machines first, then leaves it out.
  void Branch(int j, const std::vector<double>& prices, int out) {
    const PlanJob& job = instance_.jobs()[j];
    std::vector<std::pair<double, int>> starts;
    for (int start = job.release; start + job.hours <= job.deadline; ++start) {
      double cost = 0;
      bool fits = true;
      for (int hour = start; hour < start + job.hours; ++hour) {
        cost += KwhAnHour(job) * instance_.costs()[hour] + prices[hour];
        fits &= room_[hour] > 0;
      }
      if (fits) starts.emplace_back(cost, start);
    }
    std::sort(starts.begin(), starts.end());
    for (const auto& [cost, start] : starts) {
      for (int i = 0; i < job.hours; ++i) {
        fixed_[j].push_back(start + i);
        --room_[start + i];
      }
      Visit(out);
      for (const int hour : fixed_[j]) ++room_[hour];
      fixed_[j].clear();
      if (cut_) return;
    }
    if (state_[j] != State::kOpen ||
        out >= std::min(most_out_, best_.unplaced)) {
      return;
    }
    state_[j] = State::kOut;
    Visit(out + 1);
    state_[j] = State::kOpen;
  }

  const Instance& instance_;
  Placement best_;
  int64_t work_;
  int most_out_ = 0;
  bool cut_ = false;  // this phase ended for want of work
  std::vector<State> state_;
  Hours fixed_;  // by job that must not pause; empty: not yet
  std::vector<int> room_;
};

}  // namespace

Placement PlaceJobs(absl::Span<const PlanJob> jobs,
                    absl::Span<const double> costs, int machines,
                    const std::vector<Hours>& others, int64_t work) {
  const Instance instance(jobs, costs, machines);
  Placement best = BestCandidate(instance, others);
  if (!best.best) best = Search(instance, std::move(best), work).Run();
  best.hours = Moved(instance, std::move(best.hours), /*only_whole=*/false);
  Placement tidy = instance.PlacementOf(std::move(best.hours));
  tidy.least_unplaced = best.least_unplaced;
  tidy.best = best.best;
  return tidy;
}

}  // namespace optrail::carbon
