#include "graph/fusion/fusion.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/fusion/conditions.h"
#include "graph/fusion/copier.h"
#include "graph/fusion/pattern.h"
#include "graph/fusion/site.h"

namespace optrail::graph {
namespace {

// A node that a rule replaces: those that its pattern matched there.
struct Place {
  std::vector<int> roots;  // one, but for rules with `shared`
  std::vector<Match> matches;
  std::set<int> nodes;
  int second = -1;  // the value of `kept`
};

// Whether only the pattern reads what its inner nodes compute.
std::string InnerResultsEscape(const Graph& graph,
                               const std::vector<std::vector<int>>& consumers,
                               const std::set<int>& outputs, const Match& match,
                               int root, int kept) {
  for (const int n : match.nodes) {
    if (n == root) continue;
    for (const int value : graph.nodes[n].outputs) {
      if (value == kept) continue;
      if (outputs.count(value) != 0) return "a result is an output";
      for (const int reader : consumers[value]) {
        if (match.nodes.count(reader) == 0) {
          return absl::StrCat("the result has two consumers (",
                              graph.nodes[reader].op, " reads ",
                              graph.nodes[n].op, ")");
        }
      }
    }
  }
  return "";
}

Attribute AttributeOf(const std::string& text, const Graph& graph,
                      const Match& match) {
  if (absl::StartsWith(text, "#")) return match.scalars.at(text.substr(1));
  if (absl::StartsWith(text, "last:")) {
    const int value = match.values.at(text.substr(5));
    return static_cast<int64_t>(graph.type(value).dims.size()) - 1;
  }
  return text;
}

absl::StatusOr<int> Build(const Graph& graph, const Term& result,
                          const Match& match, const std::string& name,
                          Copier& copier) {
  if (result.kind == Term::Kind::kAny) {
    return copier.Get(match.values.at(result.name));
  }
  if (result.kind == Term::Kind::kNumber) {
    const TensorType& type = graph.type(match.values.at(result.name));
    Array all = Array::Zeros(type);
    std::fill(all.reals.begin(), all.reals.end(), result.number);
    return copier.copy().AddConstant(absl::StrCat(name, "/", result.number),
                                     all);
  }
  std::vector<int> inputs;
  for (const Term& input : result.inputs) {
    OPTRAIL_ASSIGN_OR_RETURN(const int value,
                             Build(graph, input, match, name, copier));
    inputs.push_back(value);
  }
  Attributes attributes;
  for (const auto& [key, text] : result.attributes) {
    if (key == "like") {  // all that a matched node has
      const int value = match.values.at(text);
      attributes = graph.nodes[graph.values[value].producer].attributes;
      continue;
    }
    attributes[key] = AttributeOf(text, graph, match);
  }
  return copier.copy().AddNode(name, result.op, inputs, attributes);
}

// Rewrites a graph by one rule.
class Rewriter {
 public:
  Rewriter(const Graph& graph, const FusionRule& rule, FusionReport* report,
           const FusionChooser& choose)
      : graph_(graph),
        rule_(rule),
        report_(report),
        choose_(choose),
        consumers_(graph.Consumers()),
        outputs_(graph.outputs.begin(), graph.outputs.end()),
        copier_(graph) {}

  absl::StatusOr<Graph> Run() {
    OPTRAIL_ASSIGN_OR_RETURN(pattern_, ParseTerm(rule_.pattern));
    OPTRAIL_ASSIGN_OR_RETURN(result_, ParseTerm(rule_.result));
    std::map<int, Place> chosen;  // by the node in whose stead they stand
    for (Place& place : FindPlaces()) {
      std::string why;
      if (chosen.count(PositionOf(place)) != 0) {
        why = "its first node is part of another place";
      } else if (choose_ != nullptr) {
        OPTRAIL_ASSIGN_OR_RETURN(
            const FusionSite site,
            SiteOf(graph_, rule_, place.nodes, Results(place)));
        OPTRAIL_ASSIGN_OR_RETURN(why, choose_(site));
      }
      Report(place.roots.back(), why);
      if (why.empty()) chosen.emplace(PositionOf(place), std::move(place));
    }
    if (chosen.empty()) return graph_;
    std::set<int> replaced;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const auto place = chosen.find(static_cast<int>(n));
      if (place != chosen.end()) {
        OPTRAIL_RETURN_IF_ERROR(Replace(place->second, replaced));
      }
      if (replaced.count(static_cast<int>(n)) == 0) {
        OPTRAIL_RETURN_IF_ERROR(copier_.CopyNode(graph_.nodes[n]));
      }
    }
    return copier_.Done();
  }

 private:
  void Report(int node, std::string why) {
    report_->push_back({rule_.name, graph_.nodes[node].name, std::move(why)});
  }

  // The last node of a pattern, where all operands are known; but what others
  // read besides its result may be needed before that.
  bool IsEarly() const { return !rule_.shared.empty() || !rule_.kept.empty(); }
  int PositionOf(const Place& place) const {
    return IsEarly() ? *place.nodes.begin() : place.roots[0];
  }

  // The places to which the rule applies. Other matches are reported with the
  // reason.
  std::vector<Place> FindPlaces() {
    std::vector<Place> places;
    std::map<int, std::vector<Place>> shared;  // by the value of $shared
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      Place place;
      Match match;
      if (!Matches(graph_, pattern_, graph_.nodes[n].outputs[0], match)) {
        continue;
      }
      place.roots = {static_cast<int>(n)};
      place.nodes = match.nodes;
      if (!rule_.kept.empty()) place.second = match.values.at(rule_.kept);
      const int factor =
          rule_.shared.empty() ? -1 : match.values.at(rule_.shared);
      place.matches = {std::move(match)};
      if (factor >= 0) {
        shared[factor].push_back(std::move(place));
      } else if (Applies(place)) {
        places.push_back(std::move(place));
      }
    }
    for (auto& [factor, all] : shared) {
      if (all.size() < 2) continue;
      Place together;
      for (const Place& one : all) {
        if (!Applies(one)) continue;
        together.roots.push_back(one.roots[0]);
        together.matches.push_back(one.matches[0]);
        together.nodes.insert(one.nodes.begin(), one.nodes.end());
      }
      if (together.roots.size() > 1) places.push_back(std::move(together));
    }
    return places;
  }

  bool Applies(const Place& place) {
    const Match& match = place.matches[0];
    std::string why = InnerResultsEscape(graph_, consumers_, outputs_, match,
                                         place.roots[0], place.second);
    for (const std::string& condition : rule_.conditions) {
      if (why.empty()) why = WhyNot(graph_, condition, match);
    }
    if (IsEarly() && why.empty()) why = ComputedLater(match);
    if (!why.empty()) Report(place.roots[0], why);
    return why.empty();
  }

  // "" if all operands are known before the pattern's first node.
  std::string ComputedLater(const Match& match) const {
    for (const auto& [name, value] : match.values) {
      const int producer = graph_.values[value].producer;
      if (producer > *match.nodes.begin() && match.nodes.count(producer) == 0) {
        return absl::StrCat(name, " is computed after another result is read");
      }
    }
    return "";
  }

  std::vector<int> Results(const Place& place) const {
    std::vector<int> results;
    for (const int root : place.roots) {
      results.push_back(graph_.nodes[root].outputs[0]);
    }
    if (place.second < 0) return results;
    bool is_read = outputs_.count(place.second) != 0;
    for (const int reader : consumers_[place.second]) {
      is_read = is_read || place.nodes.count(reader) == 0;
    }
    if (is_read) results.push_back(place.second);
    return results;
  }

  absl::Status Set(int value, int fused) {
    if (!(copier_.copy().type(fused) == graph_.type(value))) {
      return absl::InvalidArgumentError(
          absl::StrCat("the result is ", TypeText(copier_.copy().type(fused)),
                       " for ", TypeText(graph_.type(value))));
    }
    copier_.Set(value, fused);
    return absl::OkStatus();
  }

  absl::Status Replace(const Place& place, std::set<int>& replaced) {
    replaced.insert(place.roots.begin(), place.roots.end());
    if (place.roots.size() > 1) return ReplaceShared(place);
    const Node& root = graph_.nodes[place.roots[0]];
    OPTRAIL_ASSIGN_OR_RETURN(
        const int fused,
        Build(graph_, result_, place.matches[0], root.name, copier_));
    if (place.second >= 0) {
      replaced.insert(graph_.values[place.second].producer);
      OPTRAIL_RETURN_IF_ERROR(Set(place.second, fused + 1));
    }
    return Set(root.outputs[0], fused);
  }

  // One node computes what several did: their operands but the shared one are
  // joined along the last axis, and each has its columns of the result.
  absl::Status ReplaceShared(const Place& place) {
    Graph& to = copier_.copy();
    const std::string& name = graph_.nodes[place.roots[0]].name;
    std::vector<int> inputs;
    for (const Term& input : result_.inputs) {
      if (input.name == rule_.shared) {
        inputs.push_back(copier_.Get(place.matches[0].values.at(input.name)));
        continue;
      }
      std::vector<int> parts;
      for (const Match& match : place.matches) {
        parts.push_back(copier_.Get(match.values.at(input.name)));
      }
      const auto rank = static_cast<int64_t>(to.type(parts[0]).dims.size());
      OPTRAIL_ASSIGN_OR_RETURN(
          const int joined, to.AddNode(absl::StrCat(name, "/", input.name),
                                       "concat", parts, {{"axis", rank - 1}}));
      inputs.push_back(joined);
    }
    OPTRAIL_ASSIGN_OR_RETURN(
        const int all, to.AddNode(absl::StrCat(name, "/joined"), result_.op,
                                  std::move(inputs)));
    Dims starts(to.type(all).dims.size(), 0);
    for (const int root : place.roots) {
      const int value = graph_.nodes[root].outputs[0];
      const Dims& dims = graph_.type(value).dims;
      OPTRAIL_ASSIGN_OR_RETURN(
          const int part, to.AddNode(graph_.nodes[root].name, "slice", {all},
                                     {{"dims", dims},
                                      {"starts", starts},
                                      {"steps", Dims(starts.size(), 1)}}));
      OPTRAIL_RETURN_IF_ERROR(Set(value, part));
      starts.back() += dims.back();
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  const FusionRule& rule_;
  FusionReport* const report_;
  const FusionChooser& choose_;
  const std::vector<std::vector<int>> consumers_;
  const std::set<int> outputs_;
  Copier copier_;
  Term pattern_, result_;
};

}  // namespace

absl::StatusOr<Graph> Fuse(const Graph& graph,
                           const std::vector<FusionRule>& rules,
                           FusionReport* report, const FusionChooser& choose) {
  Graph fused = graph;
  for (const FusionRule& rule : rules) {
    absl::StatusOr<Graph> next = Rewriter(fused, rule, report, choose).Run();
    if (!next.ok()) {
      return absl::Status(
          next.status().code(),
          absl::StrCat("rule \"", rule.name, "\": ", next.status().message()));
    }
    fused = *std::move(next);
  }
  return fused;
}

}  // namespace optrail::graph
