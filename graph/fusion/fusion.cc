#include "graph/fusion/fusion.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "graph/fusion/conditions.h"
#include "graph/fusion/site.h"

namespace optrail::graph {
namespace {

// A part of a pattern or of a result.
struct Term {
  enum class Kind { kAny, kNumber, kScalar, kNode };
  Kind kind = Kind::kAny;
  std::string name;  // of $name, #name, $name=... or 1:name
  double number = 0;
  std::string op;
  std::vector<Term> inputs;
  std::map<std::string, std::string> attributes;
};

class TermParser {
 public:
  explicit TermParser(absl::string_view text) : rest_(text) {}

  absl::StatusOr<Term> Parse() {
    OPTRAIL_ASSIGN_OR_RETURN(Term term, One());
    Skip();
    if (!rest_.empty()) return Wrong("nothing more");
    return term;
  }

 private:
  void Skip() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }
  bool Take(char c) {
    Skip();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  absl::Status Wrong(absl::string_view expected) const {
    return absl::InvalidArgumentError(
        absl::StrCat("at \"", rest_, "\": expected ", expected));
  }
  std::string Word() {
    Skip();
    size_t end = 0;
    while (end < rest_.size() && (absl::ascii_isalnum(rest_[end]) ||
                                  rest_[end] == '_' || rest_[end] == '.')) {
      ++end;
    }
    const std::string word(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return word;
  }

  absl::StatusOr<Term> One() {
    Term term;
    if (Take('#')) {
      term.kind = Term::Kind::kScalar;
      term.name = Word();
      return term;
    }
    if (Take('$')) {
      term.name = Word();
      if (!Take('=')) return term;
    }
    const std::string word = Word();
    if (word.empty()) return Wrong("an operator, $name, #name or a number");
    if (absl::ascii_isdigit(word[0])) {
      term.kind = Term::Kind::kNumber;
      if (!absl::SimpleAtod(word, &term.number)) return Wrong("a number");
      if (Take(':')) term.name = Word();
      return term;
    }
    term.kind = Term::Kind::kNode;
    term.op = word;
    if (!Take('(')) return Wrong("(");
    do {
      OPTRAIL_ASSIGN_OR_RETURN(Term input, One());
      term.inputs.push_back(std::move(input));
    } while (Take(','));
    if (!Take(')')) return Wrong(")");
    if (!Take('{')) return term;
    const size_t end = rest_.find('}');
    if (end == absl::string_view::npos) return Wrong("}");
    for (const absl::string_view pair :
         absl::StrSplit(rest_.substr(0, end), ' ', absl::SkipEmpty())) {
      const std::pair<std::string, std::string> sides =
          absl::StrSplit(pair, absl::MaxSplits('=', 1));
      term.attributes.insert(sides);
    }
    rest_.remove_prefix(end + 1);
    return term;
  }

  absl::string_view rest_;
};

struct Match : MatchedNames {
  std::set<int> nodes;
};

std::optional<double> ScalarOf(const Graph& graph, int value) {
  const Value& v = graph.values[value];
  if (v.constant == nullptr || v.constant->absent() ||
      Elements(v.type.dims) != 1) {
    return std::nullopt;
  }
  return ConstantArray(v.type, *v.constant).At(0);
}

// Tries both orders of operands that may change places.
bool Matches(const Graph& graph, const Term& term, int value, Match& match) {
  if (value < 0) return false;
  if (term.kind == Term::Kind::kNumber || term.kind == Term::Kind::kScalar) {
    const std::optional<double> scalar = ScalarOf(graph, value);
    if (!scalar.has_value()) return false;
    if (term.kind == Term::Kind::kScalar) {
      match.scalars[term.name] = *scalar;
      return true;
    }
    return std::fabs(*scalar - term.number) <= 1e-6 * std::fabs(term.number);
  }
  if (!term.name.empty()) {
    const auto [known, is_new] = match.values.emplace(term.name, value);
    if (!is_new && known->second != value) return false;
    if (term.kind == Term::Kind::kAny) return true;
  }
  const int producer = graph.values[value].producer;
  if (producer < 0) return false;
  const Node& node = graph.nodes[producer];
  if (node.op != term.op || node.inputs.size() != term.inputs.size()) {
    return false;
  }
  match.nodes.insert(producer);
  std::vector<std::vector<int>> orders = {node.inputs};
  if ((node.op == "add" || node.op == "mul") && node.inputs.size() == 2) {
    orders.push_back({node.inputs[1], node.inputs[0]});
  }
  for (const std::vector<int>& inputs : orders) {
    Match attempt = match;
    bool all = true;
    // Named nodes first: $t=... says what $t is where it stands alone.
    for (const bool named : {true, false}) {
      for (size_t i = 0; all && i < inputs.size(); ++i) {
        const bool is_node = term.inputs[i].kind == Term::Kind::kNode;
        if (is_node == named) {
          all = Matches(graph, term.inputs[i], inputs[i], attempt);
        }
      }
    }
    if (all) {
      match = attempt;
      return true;
    }
  }
  return false;
}

// Whether only the pattern reads what its inner nodes compute.
std::string InnerResultsEscape(const Graph& graph,
                               const std::vector<std::vector<int>>& consumers,
                               const std::set<int>& outputs, const Match& match,
                               int root) {
  for (const int n : match.nodes) {
    if (n == root) continue;
    for (const int value : graph.nodes[n].outputs) {
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

// Copies a graph node by node, with values that take the place of others.
class Copier {
 public:
  explicit Copier(const Graph& graph)
      : graph_(graph), place_(graph.values.size(), -1) {
    copy_.name = graph.name;
    for (const int input : graph.inputs) {
      place_[input] =
          copy_.AddInput(graph.values[input].name, graph.type(input));
    }
  }

  Graph& copy() { return copy_; }

  int Get(int value) {
    if (value < 0) return value;
    if (place_[value] < 0 && graph_.is_constant(value)) {
      const Value& v = graph_.values[value];
      place_[value] = copy_.AddConstant(v.name, v.type, *v.constant);
    }
    return place_[value];
  }

  void Alias(int value, int by) { place_[value] = by; }

  void Set(int value, int by) {
    place_[value] = by;
    copy_.values[by].name = graph_.values[value].name;
  }

  absl::Status CopyNode(const Node& node) {
    std::vector<int> inputs;
    for (const int input : node.inputs) inputs.push_back(Get(input));
    OPTRAIL_ASSIGN_OR_RETURN(
        const int first,
        copy_.AddNode(node.name, node.op, inputs, node.attributes));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      Set(node.outputs[i], first + static_cast<int>(i));
    }
    return absl::OkStatus();
  }

  Graph Done() {
    for (const int output : graph_.outputs) {
      copy_.outputs.push_back(Get(output));
    }
    return WithoutUnused(copy_);
  }

 private:
  const Graph& graph_;
  Graph copy_;
  std::vector<int> place_;
};

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

absl::StatusOr<Graph> ApplyRule(const Graph& graph, const FusionRule& rule,
                                FusionReport* report,
                                const FusionChooser& choose) {
  OPTRAIL_ASSIGN_OR_RETURN(const Term pattern,
                           TermParser(rule.pattern).Parse());
  OPTRAIL_ASSIGN_OR_RETURN(const Term result, TermParser(rule.result).Parse());
  const std::vector<std::vector<int>> consumers = graph.Consumers();
  const std::set<int> outputs(graph.outputs.begin(), graph.outputs.end());
  Copier copier(graph);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    Match match;
    if (!Matches(graph, pattern, node.outputs[0], match)) {
      OPTRAIL_RETURN_IF_ERROR(copier.CopyNode(node));
      continue;
    }
    std::string why = InnerResultsEscape(graph, consumers, outputs, match,
                                         static_cast<int>(n));
    for (const std::string& condition : rule.conditions) {
      if (why.empty()) why = WhyNot(graph, condition, match);
    }
    if (why.empty() && choose != nullptr) {
      OPTRAIL_ASSIGN_OR_RETURN(const FusionSite site,
                               SiteOf(graph, rule, match.nodes));
      OPTRAIL_ASSIGN_OR_RETURN(why, choose(site));
    }
    report->push_back({rule.name, node.name, why});
    if (!why.empty()) {
      OPTRAIL_RETURN_IF_ERROR(copier.CopyNode(node));
      continue;
    }
    OPTRAIL_ASSIGN_OR_RETURN(const int fused,
                             Build(graph, result, match, node.name, copier));
    if (!(copier.copy().type(fused) == graph.type(node.outputs[0]))) {
      return absl::InvalidArgumentError(
          absl::StrCat("the result is ", TypeText(copier.copy().type(fused)),
                       " for ", TypeText(graph.type(node.outputs[0]))));
    }
    copier.Set(node.outputs[0], fused);
  }
  return copier.Done();
}

// A vector along dimension 1 of `rank` dimensions.
Array AlongChannels(std::vector<double> values, size_t rank,
                    proto::ElementType type) {
  Dims dims(rank, 1);
  dims[1] = static_cast<int64_t>(values.size());
  return Array::Reals(type, dims, std::move(values));
}

absl::StatusOr<int> SplitBatchNorm(const Graph& graph, const Node& node,
                                   Copier& copier) {
  std::vector<Array> p;
  for (int i = 1; i < 5; ++i) {
    const Value& value = graph.values[node.inputs[i]];
    p.push_back(ConstantArray(value.type, *value.constant));
  }
  std::vector<double> scale, shift;
  for (size_t c = 0; c < p[0].reals.size(); ++c) {
    const double factor =
        p[0].reals[c] / std::sqrt(p[3].reals[c] + node.Real("epsilon"));
    scale.push_back(factor);
    shift.push_back(p[1].reals[c] - p[2].reals[c] * factor);
  }
  const TensorType& type = graph.type(node.inputs[0]);
  Graph& to = copier.copy();
  const int by = to.AddConstant(
      absl::StrCat(node.name, "/scale"),
      AlongChannels(std::move(scale), type.dims.size(), type.type));
  const int plus = to.AddConstant(
      absl::StrCat(node.name, "/shift"),
      AlongChannels(std::move(shift), type.dims.size(), type.type));
  OPTRAIL_ASSIGN_OR_RETURN(const int scaled,
                           to.AddNode(absl::StrCat(node.name, "/scaled"), "mul",
                                      {copier.Get(node.inputs[0]), by}));
  return to.AddNode(node.name, "add", {scaled, plus});
}

absl::StatusOr<int> SplitBias(const Graph& graph, const Node& node,
                              Copier& copier) {
  Graph& to = copier.copy();
  Dims dims(graph.type(node.outputs[0]).dims.size(), 1);
  dims[1] = graph.type(node.inputs[2]).dims[0];
  OPTRAIL_ASSIGN_OR_RETURN(
      const int bias,
      to.AddNode(absl::StrCat(node.name, "/bias"), "reshape",
                 {copier.Get(node.inputs[2])}, {{"dims", dims}}));
  OPTRAIL_ASSIGN_OR_RETURN(
      const int conv,
      to.AddNode(absl::StrCat(node.name, "/conv"), node.op,
                 {copier.Get(node.inputs[0]), copier.Get(node.inputs[1])},
                 node.attributes));
  return to.AddNode(node.name, "add", {conv, bias});
}

// The operand that an addition of zeros or a product with ones passes on; -1.
int PassedOn(const Graph& graph, const Node& node) {
  if (node.op != "add" && node.op != "mul") return -1;
  const double neutral = node.op == "add" ? 0 : 1;
  for (const int i : {0, 1}) {
    const Value& value = graph.values[node.inputs[i]];
    const int other = node.inputs[1 - i];
    const int producer = graph.values[other].producer;
    // A bias of zeros costs a layer nothing, and rules look for it.
    const bool is_bias = producer >= 0 && graph.nodes[producer].op == "matmul";
    if (value.constant == nullptr || value.constant->absent() || is_bias ||
        graph.is_constant(other) ||
        !(graph.type(other) == graph.type(node.outputs[0]))) {
      continue;
    }
    const Array array = ConstantArray(value.type, *value.constant);
    bool all = true;
    for (int64_t e = 0; all && e < array.elements(); ++e) {
      all = array.At(e) == neutral;
    }
    if (all) return other;
  }
  return -1;
}

}  // namespace

absl::StatusOr<Graph> Fuse(const Graph& graph,
                           const std::vector<FusionRule>& rules,
                           FusionReport* report, const FusionChooser& choose) {
  Graph fused = graph;
  for (const FusionRule& rule : rules) {
    absl::StatusOr<Graph> next = ApplyRule(fused, rule, report, choose);
    if (!next.ok()) {
      return absl::Status(
          next.status().code(),
          absl::StrCat("rule \"", rule.name, "\": ", next.status().message()));
    }
    fused = *std::move(next);
  }
  return fused;
}

absl::StatusOr<Graph> Simplify(const Graph& graph) {
  Copier copier(graph);
  for (const Node& node : graph.nodes) {
    bool constant = node.op == "batch_norm";
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      constant = constant && graph.is_constant(node.inputs[i]);
    }
    const int passed_on = PassedOn(graph, node);
    if (passed_on >= 0) {
      copier.Alias(node.outputs[0], copier.Get(passed_on));
    } else if (constant) {
      OPTRAIL_ASSIGN_OR_RETURN(const int y,
                               SplitBatchNorm(graph, node, copier));
      copier.Set(node.outputs[0], y);
    } else if (node.op == "conv" && node.inputs.size() > 2 &&
               node.inputs[2] >= 0) {
      OPTRAIL_ASSIGN_OR_RETURN(const int y, SplitBias(graph, node, copier));
      copier.Set(node.outputs[0], y);
    } else {
      OPTRAIL_RETURN_IF_ERROR(copier.CopyNode(node));
    }
  }
  return copier.Done();
}

}  // namespace optrail::graph
