#include "ops/halide/describe.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace optrail::halide {
namespace {

using Halide::Expr;
using Halide::Internal::Call;
using Halide::Internal::Definition;
using Halide::Internal::Function;
using Halide::Internal::Interval;

template <class... Parts>
void Expect(bool holds, const Parts&... parts) {
  if (holds) return;
  std::ostringstream why;
  (why << ... << parts);
  throw std::invalid_argument(why.str());
}

struct Read {
  std::string name;  // of a stage or an image
  bool of_image = false;
  std::vector<Expr> args;
  Function function;  // unless of_image
};

// Reads, in the order of the text, and arithmetic outside of indices.
class Walk : public Halide::Internal::IRVisitor {
 public:
  explicit Walk(const std::set<std::string>& images) : images(images) {}

  const std::set<std::string>& images;
  std::vector<Read> reads;
  double flop = 0;

 private:
  using IRVisitor::visit;
  template <class Op>
  void Count(const Op* op, double cost) {
    if (op->type.is_float()) flop += cost;
    IRVisitor::visit(op);
  }
  void visit(const Halide::Internal::Add* op) override { Count(op, 1); }
  void visit(const Halide::Internal::Sub* op) override { Count(op, 1); }
  void visit(const Halide::Internal::Mul* op) override { Count(op, 1); }
  void visit(const Halide::Internal::Div* op) override { Count(op, 4); }
  void visit(const Halide::Internal::Min* op) override { Count(op, 1); }
  void visit(const Halide::Internal::Max* op) override { Count(op, 1); }
  void visit(const Halide::Internal::Select* op) override { Count(op, 1); }
  void visit(const Call* op) override {
    if (op->call_type == Call::Halide || op->call_type == Call::Image) {
      Read read;
      read.name = op->name;
      read.of_image = op->call_type == Call::Image;
      read.args = op->args;
      // An image is read through a function of its own, which is inlined.
      constexpr char kOfImage[] = "_im";
      const size_t end = read.name.rfind(kOfImage);
      const bool may_be = end != std::string::npos && !read.of_image &&
                          end + sizeof kOfImage - 1 == read.name.size();
      if (may_be && images.count(read.name.substr(0, end)) > 0) {
        read.name.resize(end);
        read.of_image = true;
      }
      if (!read.of_image) read.function = Function(op->func);
      reads.push_back(std::move(read));
      return;
    }
    // Exponentials and their like take about as much as ten.
    Count(op, op->is_extern() ? 10 : 1);
  }
};

Walk WalkOf(const Definition& definition, const std::set<std::string>& images) {
  Walk walk(images);
  for (const Expr& value : definition.values()) value.accept(&walk);
  return walk;
}

std::set<std::string> ImagesOf(const optrail::halide::Call& call) {
  std::set<std::string> images;
  for (const Halide::ImageParam& image : call.inputs) {
    images.insert(image.name());
  }
  return images;
}

std::vector<Definition> DefinitionsOf(const Function& function) {
  std::vector<Definition> definitions = {function.definition()};
  for (const Definition& update : function.updates()) {
    definitions.push_back(update);
  }
  return definitions;
}

struct Range {
  int64_t min = 0, max = -1;
  bool empty() const { return max < min; }
  void Include(const Range& other) {
    if (empty()) *this = other;
    min = std::min(min, other.min);
    max = std::max(max, other.max);
  }
};

int64_t ConstantOf(const Expr& e, const std::string& what) {
  const int64_t* const value =
      Halide::Internal::as_const_int(Halide::Internal::simplify(e));
  Expect(value != nullptr, what, " is not constant: ", e);
  return *value;
}

struct LoopRange {
  std::string name;
  Range range;
};

// The loops of a definition, axes first.
std::vector<LoopRange> LoopsOf(const Function& function,
                               const Definition& definition,
                               const std::vector<Range>& axes) {
  std::vector<LoopRange> loops;
  for (size_t d = 0; d < function.args().size(); ++d) {
    loops.push_back({function.args()[d], axes[d]});
  }
  for (const auto& rvar : definition.schedule().rvars()) {
    const int64_t min = ConstantOf(rvar.min, "a reduction's begin");
    loops.push_back(
        {rvar.var,
         {min, min + ConstantOf(rvar.extent, "a reduction's extent") - 1}});
  }
  return loops;
}

// Computes the range of an index; nothing if that cannot be told.
bool RangeOf(const Expr& index, const std::vector<LoopRange>& loops,
             Range* range) {
  Halide::Internal::Scope<Interval> scope;
  for (const LoopRange& loop : loops) {
    scope.push(loop.name, Interval(static_cast<int>(loop.range.min),
                                   static_cast<int>(loop.range.max)));
  }
  const Interval interval =
      Halide::Internal::bounds_of_expr_in_scope(index, scope);
  if (!interval.is_bounded()) return false;
  const Expr min = Halide::Internal::simplify(interval.min);
  const Expr max = Halide::Internal::simplify(interval.max);
  const int64_t* const low = Halide::Internal::as_const_int(min);
  const int64_t* const high = Halide::Internal::as_const_int(max);
  if (low == nullptr || high == nullptr) return false;
  *range = {*low, *high};
  return true;
}

// "1,0,4", or "*" where a step of some loop is not always the same.
std::string CoefficientsOf(const Expr& index,
                           const std::vector<LoopRange>& loops) {
  std::string text;
  for (const LoopRange& loop : loops) {
    const Expr v = Halide::Internal::Variable::make(Halide::Int(32), loop.name);
    const Expr step = Halide::Internal::simplify(
        Halide::Internal::substitute(loop.name, v + 1, index) - index);
    const int64_t* const coefficient = Halide::Internal::as_const_int(step);
    if (coefficient == nullptr) return "*";
    text += (text.empty() ? "" : ",") + std::to_string(*coefficient);
  }
  return text.empty() ? "-" : text;
}

}  // namespace

Stages StagesOf(const optrail::halide::Call& call, const Results& results) {
  size_t wanted = 0;
  for (const Operand& operand : call.operands) wanted += !operand.is_input;
  Expect(results.funcs.size() == wanted, "the algorithm has ",
         results.funcs.size(), " results, the operator ", wanted);
  const std::set<std::string> images = ImagesOf(call);
  Stages stages;
  std::set<std::string> seen;
  const std::function<void(const Function&)> visit =
      [&](const Function& function) {
        if (!seen.insert(function.name()).second) return;
        for (const Definition& definition : DefinitionsOf(function)) {
          for (const Read& read : WalkOf(definition, images).reads) {
            if (!read.of_image) visit(read.function);
          }
        }
        stages.funcs.emplace_back(function);
      };
  for (const Halide::Func& result : results.funcs) {
    visit(result.function());
    for (size_t s = 0; s < stages.funcs.size(); ++s) {
      if (stages.funcs[s].name() == result.name()) stages.outputs.push_back(s);
    }
  }
  return stages;
}

std::string Describe(const optrail::halide::Call& call, const Stages& all) {
  const std::vector<Halide::Func>& stages = all.funcs;
  const std::set<std::string> images = ImagesOf(call);
  std::map<std::string, int> stage_index, input_index;
  for (size_t i = 0; i < stages.size(); ++i) {
    stage_index[stages[i].name()] = static_cast<int>(i);
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    input_index[call.inputs[i].name()] = static_cast<int>(i);
  }
  // How much of each stage is needed, from the outputs on.
  std::vector<std::vector<Range>> needed(stages.size());
  for (size_t i = 0; i < stages.size(); ++i) {
    needed[i].resize(stages[i].args().size());
  }
  size_t output = 0;
  for (const Operand& operand : call.operands) {
    if (operand.is_input) continue;
    std::vector<Range>& of = needed[all.outputs[output++]];
    Expect(operand.extents.size() == of.size(), "the algorithm's result has ",
           of.size(), " dimensions, the operator's output ",
           operand.extents.size());
    for (size_t d = 0; d < operand.extents.size(); ++d) {
      of[d] = {0, operand.extents[d] - 1};
    }
  }
  for (size_t i = stages.size(); i-- > 0;) {
    const Function function = stages[i].function();
    for (const Definition& definition : DefinitionsOf(function)) {
      const auto loops = LoopsOf(function, definition, needed[i]);
      for (const Read& read : WalkOf(definition, images).reads) {
        if (read.of_image || read.name == function.name()) continue;
        std::vector<Range>& of = needed[stage_index.at(read.name)];
        for (size_t d = 0; d < read.args.size(); ++d) {
          Range range;
          Expect(RangeOf(read.args[d], loops, &range), "stage ",
                 function.name(), " reads ", read.name,
                 " where nobody can tell: ", read.args[d]);
          of[d].Include(range);
        }
      }
    }
  }

  std::ostringstream text;
  const auto print_extents = [&](const std::string& name, int bytes,
                                 const std::vector<int64_t>& extents) {
    text << " " << name << " " << bytes;
    for (const int64_t extent : extents) text << " " << extent;
    text << "\n";
  };
  size_t input = 0;
  for (const Operand& operand : call.operands) {
    if (!operand.is_input) continue;
    text << "input";
    print_extents("input" + std::to_string(input++), operand.type.bytes(),
                  operand.extents);
  }
  for (size_t i = 0; i < stages.size(); ++i) {
    const Function function = stages[i].function();
    std::vector<int64_t> extents;
    for (const Range& range : needed[i]) {
      extents.push_back(range.max - range.min + 1);
    }
    std::string name = function.name();
    name = name.substr(0, name.find('$'));
    text << "stage";
    print_extents(name, function.output_types()[0].bytes(), extents);
    for (const Definition& definition : DefinitionsOf(function)) {
      for (size_t d = 0; d < definition.args().size(); ++d) {
        const auto* const variable =
            definition.args()[d].as<Halide::Internal::Variable>();
        Expect(variable != nullptr && variable->name == function.args()[d],
               "stage ", name, " is written at ", definition.args()[d],
               "; only the stage's own variables are described");
      }
      const auto loops = LoopsOf(function, definition, needed[i]);
      const bool is_update = !definition.schedule().rvars().empty();
      const bool associative =
          is_update &&
          Halide::Internal::prove_associativity(
              function.name(), definition.args(), definition.values())
              .associative();
      const Walk walk = WalkOf(definition, images);
      text << "def " << associative << " " << walk.flop;
      for (const auto& rvar : definition.schedule().rvars()) {
        text << " " << ConstantOf(rvar.extent, "a reduction's extent");
      }
      text << "\n";
      for (const Read& read : walk.reads) {
        if (read.name == function.name()) continue;
        text << "read " << (read.of_image ? "input " : "stage ")
             << (read.of_image ? input_index.at(read.name)
                               : stage_index.at(read.name));
        for (const Expr& arg : read.args) {
          text << " " << CoefficientsOf(arg, loops);
        }
        text << "\n";
      }
    }
  }
  if (all.outputs != std::vector<size_t>{stages.size() - 1}) {
    text << "outputs";
    for (const size_t s : all.outputs) text << " " << s;
    text << "\n";
  }
  return text.str();
}

}  // namespace optrail::halide
