#include "carbon/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "carbon/flow.h"
#include "carbon/place_jobs.h"

namespace optrail::carbon {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

absl::Status CheckJob(const PlanJob& job, int horizon) {
  const auto wrong = [&](const char* field, double value,
                         const std::string& expected) {
    return absl::InvalidArgumentError(absl::StrCat("job \"", job.id,
                                                   "\": ", field, " is ", value,
                                                   ", expected ", expected));
  };
  if (!std::isfinite(job.watts) || job.watts < 0 || job.watts > 1e9) {
    return wrong("watts", job.watts, "a power from 0 to 1e9");
  }
  if (job.hours < 1) return wrong("hours", job.hours, "at least 1");
  if (job.release < 0 || job.release >= horizon) {
    return wrong("release", job.release,
                 absl::StrCat("an hour from 0 to ", horizon - 1));
  }
  if (job.deadline > horizon) {
    return wrong("deadline", job.deadline,
                 absl::StrCat("at most ", horizon,
                              ", as far as the intensity is known"));
  }
  if (job.deadline - job.release < job.hours) {
    return wrong("deadline", job.deadline,
                 absl::StrCat("at least ", job.release + job.hours,
                              ", its release and hours"));
  }
  return absl::OkStatus();
}

absl::Status Check(const PlanProblem& problem) {
  if (problem.machines < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "machines is ", problem.machines, ", expected at least 1"));
  }
  if (!problem.price_per_kwh.empty() &&
      problem.price_per_kwh.size() != problem.grams_per_kwh.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(problem.price_per_kwh.size(), " prices for ",
                     problem.grams_per_kwh.size(), " hours of intensity"));
  }
  if (problem.most_cost && problem.price_per_kwh.empty()) {
    return absl::InvalidArgumentError(
        "a limit of cost needs prices: there is no tariff");
  }
  for (const PlanJob& job : problem.jobs) {
    OPTRAIL_RETURN_IF_ERROR(
        CheckJob(job, static_cast<int>(problem.grams_per_kwh.size())));
  }
  return absl::OkStatus();
}

double KwhAnHour(const PlanJob& job) { return job.watts / 1000; }

class Planner {
 public:
  Planner(const PlanProblem& problem, const PlanOptions& options)
      : problem_(problem), options_(options) {}

  absl::StatusOr<Plan> Make() {
    Placed placed = Place(HourCosts(0), {}, options_.work);
    double bound = Bound(0, placed);
    Plan& plan = placed.plan;
    if (problem_.most_cost && plan.cost > *problem_.most_cost) {
      OPTRAIL_RETURN_IF_ERROR(KeepCost(&plan, &bound));
    }
    plan.bound_grams = std::min(bound, plan.grams);
    plan.exact = plan.grams <= plan.bound_grams * (1 + 1e-9);
    AddReferences(&plan);
    return std::move(placed.plan);
  }

 private:
  struct Placed {
    Plan plan;
    bool best = false;  // no plan that leaves as few jobs out costs less
  };

  int horizon() const {
    return static_cast<int>(problem_.grams_per_kwh.size());
  }

  // Returns what a kW costs in each hour, where money has a price in grams.
  std::vector<double> HourCosts(double grams_per_money) const {
    std::vector<double> costs = problem_.grams_per_kwh;
    if (grams_per_money == 0) return costs;
    for (size_t i = 0; i < costs.size(); ++i) {
      costs[i] += grams_per_money * problem_.price_per_kwh[i];
    }
    return costs;
  }

  FlowPlan Flow(const std::vector<int>& jobs, const std::vector<double>& costs,
                const std::vector<int>& room) const {
    std::vector<FlowJob> flow;
    for (const int j : jobs) {
      const PlanJob& job = problem_.jobs[j];
      flow.push_back({job.hours, job.release, job.deadline, KwhAnHour(job)});
    }
    return PlaceHours(flow, costs, room);
  }

  // `others` are plans that are known; the result is as good as each.
  Placed Place(const std::vector<double>& costs,
               const std::vector<const Plan*>& others, int64_t work) const {
    std::vector<std::vector<std::vector<int>>> hours;
    for (const Plan* plan : others) {
      hours.emplace_back();
      for (const PlacedJob& job : plan->jobs) hours.back().push_back(job.hours);
    }
    Placement placement =
        PlaceJobs(problem_.jobs, costs, problem_.machines, hours, work);
    Placed placed;
    placed.best = placement.best;
    placed.plan = PlanOf(std::move(placement.hours));
    placed.plan.least_unplaced = placement.least_unplaced;
    return placed;
  }

  Plan PlanOf(std::vector<std::vector<int>> hours) const {
    Plan plan;
    for (size_t j = 0; j < hours.size(); ++j) {
      PlacedJob placed;
      const double kwh = KwhAnHour(problem_.jobs[j]);
      for (const int hour : hours[j]) {
        placed.grams += kwh * problem_.grams_per_kwh[hour];
        if (problem_.price_per_kwh.empty()) continue;
        placed.cost += kwh * problem_.price_per_kwh[hour];
      }
      plan.unplaced += hours[j].empty();
      plan.kwh += kwh * static_cast<double>(hours[j].size());
      plan.grams += placed.grams;
      plan.cost += placed.cost;
      placed.hours = std::move(hours[j]);
      plan.jobs.push_back(std::move(placed));
    }
    return plan;
  }

  // No plan of the jobs that `plan` places emits less. Two lower bounds: the
  // flow in which all may pause; and Lagrange's, where each hour has a price
  // for a machine and each job its best hours at these prices, whole where it
  // must not pause. A price on money pays the limit back in both.
  double Bound(double grams_per_money, const Placed& of) const {
    const Plan& plan = of.plan;
    const double owed = grams_per_money * problem_.most_cost.value_or(0);
    if (of.best) return plan.grams + grams_per_money * plan.cost - owed;
    std::vector<int> placed;
    for (size_t j = 0; j < plan.jobs.size(); ++j) {
      if (!plan.jobs[j].hours.empty()) placed.push_back(static_cast<int>(j));
    }
    const bool all_pause =
        std::all_of(placed.begin(), placed.end(),
                    [&](int j) { return problem_.jobs[j].preemptible; });
    const std::vector<double> costs = HourCosts(grams_per_money);
    const std::vector<int> room(costs.size(), problem_.machines);
    const FlowPlan flow = Flow(placed, costs, room);
    double sum = 0;
    for (size_t i = 0; i < placed.size(); ++i) {
      for (const int hour : flow.hours[i]) {
        sum += KwhAnHour(problem_.jobs[placed[i]]) * costs[hour];
      }
    }
    if (!all_pause) {
      sum = std::max(
          sum, PricedBound(placed, costs, flow.prices, plan, grams_per_money));
    }
    return sum - owed;
  }

  // The best of Lagrange's bounds: at prices of machines from the flow, then by
  // subgradient steps towards what `plan` costs (Polyak).
  double PricedBound(const std::vector<int>& placed,
                     const std::vector<double>& costs,
                     std::vector<double> prices, const Plan& plan,
                     double grams_per_money) const {
    const double target = plan.grams + grams_per_money * plan.cost;
    std::vector<double> none(costs.size(), 0);
    std::vector<int> used;
    double best = AtPrices(placed, costs, none, &used);
    for (int step = 0; step <= options_.price_steps; ++step) {
      const double bound = AtPrices(placed, costs, prices, &used);
      best = std::max(best, bound);
      double squares = 0;
      for (size_t hour = 0; hour < prices.size(); ++hour) {
        const double over = used[hour] - problem_.machines;
        if (over > 0 || prices[hour] > 0) squares += over * over;
      }
      if (squares == 0 || bound >= target) break;
      const double length = (target - bound) / squares;
      for (size_t hour = 0; hour < prices.size(); ++hour) {
        const double over = used[hour] - problem_.machines;
        prices[hour] = std::max(0.0, prices[hour] + length * over);
      }
    }
    return best;
  }

  // Returns the least cost of the placed jobs if a machine has a price in each
  // hour, less what the machines earn; `used`: how many machines they take
  // then.
  double AtPrices(const std::vector<int>& placed,
                  const std::vector<double>& costs,
                  const std::vector<double>& prices,
                  std::vector<int>* used) const {
    used->assign(costs.size(), 0);
    double sum = 0;
    for (const int j : placed) {
      std::vector<int> hours;
      sum += BestHours(problem_.jobs[j], costs, prices, &hours);
      for (const int hour : hours) ++(*used)[hour];
    }
    for (const double price : prices) sum -= price * problem_.machines;
    return sum;
  }

  // The hours of a job that cost least where it is alone, and their cost.
  static double BestHours(const PlanJob& job, const std::vector<double>& costs,
                          const std::vector<double>& prices,
                          std::vector<int>* hours) {
    const auto cost = [&](int hour) {
      return KwhAnHour(job) * costs[hour] + prices[hour];
    };
    hours->resize(job.deadline - job.release);
    std::iota(hours->begin(), hours->end(), job.release);
    double sum = 0;
    if (job.preemptible) {
      std::nth_element(hours->begin(), hours->begin() + (job.hours - 1),
                       hours->end(),
                       [&](int a, int b) { return cost(a) < cost(b); });
      hours->resize(job.hours);
      for (const int hour : *hours) sum += cost(hour);
      return sum;
    }
    for (int i = 0; i < job.hours; ++i) sum += cost(job.release + i);
    double best = sum;
    int start = job.release;
    for (int end = job.release + job.hours; end < job.deadline; ++end) {
      sum += cost(end) - cost(end - job.hours);
      if (sum < best) {
        best = sum;
        start = end - job.hours + 1;
      }
    }
    hours->resize(job.hours);
    std::iota(hours->begin(), hours->end(), start);
    return best;
  }

  // The plan that emits least of those within the limit of cost that some price
  // on money makes the best. The cheapest plan of all shows first that there is
  // one.
  absl::Status KeepCost(Plan* plan, double* bound) const {
    const double most = *problem_.most_cost;
    const Placed cheapest =
        Place(problem_.price_per_kwh, {plan}, options_.work);
    if (cheapest.plan.cost > most || cheapest.plan.unplaced > plan->unplaced) {
      return absl::NotFoundError(absl::StrCat(
          cheapest.best ? "no plan keeps the cost within "
                        : "no plan was found that keeps the cost within ",
          most, ": the cheapest ", cheapest.best ? "" : "that was found ",
          "costs ", cheapest.plan.cost, "; next: a higher limit, or later ",
          "deadlines"));
    }
    Plan kept = cheapest.plan;
    double low = 0, high = 1;
    bool is_bracketed = false;
    constexpr double kDearest = 1e12;
    for (int i = 0; i < options_.bisections; ++i) {
      const double price = is_bracketed ? (low + high) / 2 : high;
      Placed next =
          Place(HourCosts(price), {&kept, plan}, options_.work_of_a_price);
      *bound = std::max(*bound, Bound(price, next));
      const bool keeps =
          next.plan.cost <= most && next.plan.unplaced <= kept.unplaced;
      if (keeps && (next.plan.grams < kept.grams ||
                    next.plan.unplaced < kept.unplaced)) {
        kept = std::move(next.plan);
      }
      if (keeps) {
        is_bracketed = true;
        high = price;
      } else if (is_bracketed) {
        low = price;
      } else {
        low = high;
        high *= 16;
        if (high > kDearest) break;
      }
      if (is_bracketed && high - low <= 1e-6 * high) break;
    }
    kept.least_unplaced = std::max(kept.least_unplaced, plan->least_unplaced);
    *plan = std::move(kept);
    return absl::OkStatus();
  }

  // Adds what the same jobs emit if they start at once, and if machines are
  // unlimited.
  void AddReferences(Plan* plan) const {
    std::vector<int> order;
    for (size_t j = 0; j < plan->jobs.size(); ++j) {
      if (!plan->jobs[j].hours.empty()) order.push_back(static_cast<int>(j));
    }
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return problem_.jobs[a].release < problem_.jobs[b].release;
    });
    std::vector<int> room(problem_.grams_per_kwh.size(), problem_.machines);
    const std::vector<double> free(room.size(), 0);
    for (const int j : order) {
      const PlanJob& job = problem_.jobs[j];
      std::vector<int> all;
      int left = job.hours;
      // The job starts as soon as it can. It runs past its deadline if it has
      // to, until the intensity is known no further.
      for (int hour = job.release; hour < horizon() && left > 0; ++hour) {
        if (room[hour] == 0) continue;
        --room[hour];
        --left;
        all.push_back(hour);
      }
      for (const int hour : all) {
        plan->now_grams += KwhAnHour(job) * problem_.grams_per_kwh[hour];
        if (problem_.price_per_kwh.empty()) continue;
        plan->now_cost += KwhAnHour(job) * problem_.price_per_kwh[hour];
      }
      plan->unlimited_grams +=
          BestHours(job, problem_.grams_per_kwh, free, &all);
    }
  }

  const PlanProblem& problem_;
  const PlanOptions& options_;
};

}  // namespace

double Plan::SavedAgainstNow() const {
  return now_grams > 0 ? 1 - grams / now_grams : 0;
}

double Plan::MostThatCanBeSaved() const {
  return now_grams > 0 ? 1 - unlimited_grams / now_grams : 0;
}

double Plan::Gap() const {
  return bound_grams > 0 ? grams / bound_grams - 1 : 0;
}

absl::StatusOr<Plan> MakePlan(const PlanProblem& problem,
                              const PlanOptions& options) {
  OPTRAIL_RETURN_IF_ERROR(Check(problem));
  return Planner(problem, options).Make();
}

}  // namespace optrail::carbon
