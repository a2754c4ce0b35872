#include "suites/evaluation/shape_results.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace optrail::suites {
namespace {

using Json = nlohmann::ordered_json;

const PeerResult* FastestPeer(const ShapeResult& result) {
  const auto fastest = std::min_element(
      result.peers.begin(), result.peers.end(),
      [](const PeerResult& a, const PeerResult& b) { return a.us < b.us; });
  return fastest == result.peers.end() ? nullptr : &*fastest;
}

struct Ratios {
  std::vector<double> over_default, over_tuned, default_over_tuned;
  int shapes = 0, failed = 0;

  void Add(const ShapeResult& result) {
    ++shapes;
    failed += result.default_failed;
    const auto keep = [](const absl::optional<double>& ratio,
                         std::vector<double>& ratios) {
      if (ratio) ratios.push_back(*ratio);
    };
    keep(result.BestOverDefault(), over_default);
    keep(result.BestOverTuned(), over_tuned);
    keep(result.default_over_tuned, default_over_tuned);
  }
};

// By operator in order of first appearance; "all" at the end of several.
std::vector<std::pair<std::string, Ratios>> ByOperator(
    const std::vector<ShapeResult>& results) {
  std::vector<std::pair<std::string, Ratios>> operators;
  Ratios all;
  for (const ShapeResult& result : results) {
    auto found = std::find_if(
        operators.begin(), operators.end(),
        [&](const auto& entry) { return entry.first == result.op; });
    if (found == operators.end()) {
      operators.emplace_back(result.op, Ratios());
      found = std::prev(operators.end());
    }
    found->second.Add(result);
    all.Add(result);
  }
  if (operators.size() > 1) operators.emplace_back("all", std::move(all));
  return operators;
}

Cell RatioCell(const absl::optional<double>& ratio) {
  if (!ratio) return Cell::None();
  return Cell::Number(*ratio, absl::StrFormat("%.2f", *ratio));
}

void AddSummary(const std::vector<double>& ratios, std::vector<Cell>& cells) {
  if (ratios.empty()) {
    for (int i = 0; i < 3; ++i) cells.push_back(Cell::None());
    return;
  }
  const RatioSummary summary = Summarise(ratios);
  cells.push_back(RatioCell(summary.geometric_mean));
  cells.push_back(RatioCell(summary.lowest));
  cells.push_back(
      Cell::Number(summary.share_below_90,
                   absl::StrFormat("%.0f%%", summary.share_below_90 * 100)));
}

Json SummaryJson(const std::vector<double>& ratios) {
  if (ratios.empty()) return nullptr;
  const RatioSummary summary = Summarise(ratios);
  return {{"count", summary.count},
          {"geometric_mean", summary.geometric_mean},
          {"lowest", summary.lowest},
          {"share_below_90", summary.share_below_90}};
}

Json OrNull(const absl::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json ShapeJson(const ShapeResult& result) {
  Json peers = Json::object();
  for (const PeerResult& peer : result.peers) {
    peers[peer.name] = {{"us", peer.us},
                        {"over_default", OrNull(peer.over_default)},
                        {"over_tuned", OrNull(peer.over_tuned)}};
  }
  Json configs = Json::array();
  for (const ConfigResult& one : result.configs) {
    configs.push_back({{"config", one.config}, {"us", OrNull(one.us)}});
  }
  return {{"op", result.op},
          {"shape", result.shape},
          {"default_us", OrNull(result.default_us)},
          {"tuned_us", OrNull(result.tuned_us)},
          {"default_over_tuned", OrNull(result.default_over_tuned)},
          {"best_peer", result.BestPeer()},
          {"best_over_default", OrNull(result.BestOverDefault())},
          {"best_over_tuned", OrNull(result.BestOverTuned())},
          {"default_config", result.default_config},
          {"tuned_config", result.tuned_config},
          {"peers", std::move(peers)},
          {"configs", std::move(configs)},
          {"troubles", result.troubles}};
}

}  // namespace

absl::optional<double> ShapeResult::BestOverDefault() const {
  const PeerResult* const best = FastestPeer(*this);
  return best == nullptr ? absl::nullopt : best->over_default;
}

absl::optional<double> ShapeResult::BestOverTuned() const {
  const PeerResult* const best = FastestPeer(*this);
  return best == nullptr ? absl::nullopt : best->over_tuned;
}

std::string ShapeResult::BestPeer() const {
  const PeerResult* const best = FastestPeer(*this);
  return best == nullptr ? "" : best->name;
}

RatioSummary Summarise(const std::vector<double>& ratios) {
  RatioSummary summary;
  if (ratios.empty()) return summary;
  double logarithms = 0;
  int below = 0;
  for (const double ratio : ratios) {
    logarithms += std::log(ratio);
    below += ratio < 0.9;
  }
  summary.count = static_cast<int>(ratios.size());
  summary.geometric_mean = std::exp(logarithms / summary.count);
  summary.lowest = *std::min_element(ratios.begin(), ratios.end());
  summary.share_below_90 = static_cast<double>(below) / summary.count;
  return summary;
}

Table SummaryTable(const std::vector<ShapeResult>& results) {
  Table table({{"operator"},
               {"shapes", Align::kRight},
               {"failed", Align::kRight},
               {"default", Align::kRight, "default_geometric_mean"},
               {"lowest", Align::kRight, "default_lowest"},
               {"below .9", Align::kRight, "default_share_below_90"},
               {"tuned", Align::kRight, "tuned_geometric_mean"},
               {"lowest", Align::kRight, "tuned_lowest"},
               {"below .9", Align::kRight, "tuned_share_below_90"},
               {"default/tuned", Align::kRight, "gain_geometric_mean"}});
  for (const auto& [name, ratios] : ByOperator(results)) {
    std::vector<Cell> cells = {name, Cell::Integer(ratios.shapes),
                               Cell::Integer(ratios.failed)};
    AddSummary(ratios.over_default, cells);
    AddSummary(ratios.over_tuned, cells);
    const auto& gains = ratios.default_over_tuned;
    cells.push_back(gains.empty() ? Cell::None()
                                  : RatioCell(Summarise(gains).geometric_mean));
    table.AddRow(std::move(cells));
  }
  return table;
}

Table WorstTable(const std::vector<ShapeResult>& results, int count) {
  std::vector<const ShapeResult*> worst;
  for (const ShapeResult& result : results) {
    if (result.BestOverDefault()) worst.push_back(&result);
  }
  std::stable_sort(worst.begin(), worst.end(),
                   [](const ShapeResult* a, const ShapeResult* b) {
                     return *a->BestOverDefault() < *b->BestOverDefault();
                   });
  if (static_cast<int>(worst.size()) > count) worst.resize(count);
  Table table({{"operator"},
               {"shape", Align::kLeft, "", Clip::kNever},
               {"default us", Align::kRight, "default_us"},
               {"tuned us", Align::kRight, "tuned_us"},
               {"best peer"},
               {"over default", Align::kRight},
               {"over tuned", Align::kRight}});
  const auto us = [](const absl::optional<double>& value) {
    return value ? Cell::Number(*value, absl::StrFormat("%.4g", *value))
                 : Cell::None();
  };
  for (const ShapeResult* result : worst) {
    table.AddRow({result->op, result->shape, us(result->default_us),
                  us(result->tuned_us), result->BestPeer(),
                  RatioCell(result->BestOverDefault()),
                  RatioCell(result->BestOverTuned())});
  }
  return table;
}

std::string ResultsJson(const std::string& header,
                        const std::vector<ShapeResult>& results) {
  Json operators = Json::object();
  for (const auto& [name, ratios] : ByOperator(results)) {
    operators[name] = {
        {"shapes", ratios.shapes},
        {"failed", ratios.failed},
        {"best_over_default", SummaryJson(ratios.over_default)},
        {"best_over_tuned", SummaryJson(ratios.over_tuned)},
        {"default_over_tuned", SummaryJson(ratios.default_over_tuned)}};
  }
  Json shapes = Json::array();
  for (const ShapeResult& result : results) shapes.push_back(ShapeJson(result));
  const Json all = {{"run", Json::parse(header)},
                    {"operators", std::move(operators)},
                    {"shapes", std::move(shapes)}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace optrail::suites
