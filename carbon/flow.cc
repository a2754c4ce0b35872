#include "carbon/flow.h"

#include <lemon/network_simplex.h>
#include <lemon/smart_graph.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace optrail::carbon {
namespace {

using Graph = lemon::SmartDigraph;
using Simplex = lemon::NetworkSimplex<Graph, int64_t, int64_t>;

// Costs in units; sums of 2^20 jobs and hours stay within 64 bits.
constexpr double kUnits = 1e8;

struct JobArc {
  Graph::Arc arc;
  int job = 0, hour = 0;
};

}  // namespace

FlowPlan PlaceHours(const std::vector<FlowJob>& jobs,
                    absl::Span<const double> cost, absl::Span<const int> room) {
  FlowPlan plan;
  plan.hours.resize(jobs.size());
  plan.prices.assign(cost.size(), 0);
  double dearest = 0;
  int64_t arcs_count = 0, total = 0;
  for (const FlowJob& job : jobs) {
    OPTRAIL_CHECK(job.release >= 0 && job.release <= job.deadline &&
                  job.deadline <= static_cast<int>(cost.size()))
        << "a window lies outside";
    arcs_count += job.deadline - job.release + 1;
    total += job.hours;
    for (int hour = job.release; hour < job.deadline; ++hour) {
      dearest = std::max(dearest, std::abs(job.weight * cost[hour]));
    }
  }
  if (total == 0) return plan;
  const double scale = dearest > 0 ? kUnits / dearest : 0;
  // Dearer than any detour: every hour that can be placed is.
  const auto missing_cost = static_cast<int64_t>(2 * kUnits) *
                            (static_cast<int64_t>(cost.size()) + 1);

  Graph graph;
  graph.reserveNode(static_cast<int>(jobs.size() + cost.size() + 1));
  graph.reserveArc(static_cast<int>(arcs_count + cost.size()));
  std::vector<Graph::Node> job_nodes(jobs.size()), hour_nodes(cost.size());
  for (Graph::Node& node : job_nodes) node = graph.addNode();
  for (Graph::Node& node : hour_nodes) node = graph.addNode();
  const Graph::Node sink = graph.addNode();
  std::vector<JobArc> job_arcs;
  job_arcs.reserve(static_cast<size_t>(arcs_count));
  for (int j = 0; j < static_cast<int>(jobs.size()); ++j) {
    for (int hour = jobs[j].release; hour < jobs[j].deadline; ++hour) {
      job_arcs.push_back(
          {graph.addArc(job_nodes[j], hour_nodes[hour]), j, hour});
    }
  }
  std::vector<Graph::Arc> missing;
  for (const Graph::Node node : job_nodes) {
    missing.push_back(graph.addArc(node, sink));
  }
  std::vector<Graph::Arc> hour_arcs;
  for (const Graph::Node node : hour_nodes) {
    hour_arcs.push_back(graph.addArc(node, sink));
  }
  Graph::ArcMap<int64_t> capacity(graph), price(graph);
  Graph::NodeMap<int64_t> supply(graph, 0);
  for (const JobArc& arc : job_arcs) {
    capacity[arc.arc] = 1;
    price[arc.arc] =
        std::llround(jobs[arc.job].weight * cost[arc.hour] * scale);
  }
  for (size_t j = 0; j < jobs.size(); ++j) {
    capacity[missing[j]] = jobs[j].hours;
    price[missing[j]] = missing_cost;
    supply[job_nodes[j]] = jobs[j].hours;
  }
  for (size_t hour = 0; hour < cost.size(); ++hour) {
    capacity[hour_arcs[hour]] = room[hour];
    price[hour_arcs[hour]] = 0;
  }
  supply[sink] = -total;

  Simplex simplex(graph);
  const Simplex::ProblemType solved =
      simplex.upperMap(capacity).costMap(price).supplyMap(supply).run();
  OPTRAIL_CHECK(solved == Simplex::OPTIMAL) << "every hour may go missing";
  for (const JobArc& arc : job_arcs) {
    if (simplex.flow(arc.arc) > 0) plan.hours[arc.job].push_back(arc.hour);
  }
  for (const Graph::Arc arc : missing) plan.missing += simplex.flow(arc);
  for (size_t hour = 0; hour < cost.size(); ++hour) {
    const int64_t price =
        simplex.potential(sink) - simplex.potential(hour_nodes[hour]);
    if (scale > 0 && price > 0) {
      plan.prices[hour] = static_cast<double>(price) / scale;
    }
  }
  return plan;
}

}  // namespace optrail::carbon
