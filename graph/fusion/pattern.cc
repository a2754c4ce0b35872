#include "graph/fusion/pattern.h"

#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace optrail::graph {
namespace {

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

std::optional<double> ScalarOf(const Graph& graph, int value) {
  const Value& v = graph.values[value];
  if (v.constant == nullptr || v.constant->absent() ||
      Elements(v.type.dims) != 1) {
    return std::nullopt;
  }
  return ConstantArray(v.type, *v.constant).At(0);
}

}  // namespace

absl::StatusOr<Term> ParseTerm(absl::string_view text) {
  return TermParser(text).Parse();
}

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

}  // namespace optrail::graph
