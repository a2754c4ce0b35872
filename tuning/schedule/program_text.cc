// The text of a program, for people.

#include <functional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tuning/schedule/program.h"

namespace optrail::tuning {
namespace {

using Where = StagePlan::Where;

}  // namespace

absl::string_view Program::KindName(LoopKind kind) {
  switch (kind) {
    case LoopKind::kParallel:
      return "parallel";
    case LoopKind::kVector:
      return "vectorize";
    case LoopKind::kUnrolled:
      return "unroll";
    default:
      return "for";
  }
}

std::string Program::StepsText() const {
  return absl::StrCat(absl::StrJoin(steps_, "\n"), "\n");
}

std::vector<int> Program::StagesInOrder() const {
  std::vector<int> order;
  std::vector<bool> seen(stage_count());
  const std::function<void(int)> visit = [&](int s) {
    if (seen[s]) return;
    seen[s] = true;
    for (const Definition& definition : stage(s).definitions) {
      for (const Access& access : definition.reads) {
        if (!access.of_input) visit(access.source);
      }
    }
    order.push_back(s);
  };
  for (const int output : outputs_) visit(output);
  return order;
}

void Program::AppendLoopsText(int s, int indent, std::string* text) const {
  const auto computed_at = [&](const LoopPlace& place) {
    for (const int other : StagesInOrder()) {
      if (plans_[other].where == Where::kAt && plans_[other].at == place) {
        AppendLoopsText(other, indent, text);
      }
    }
  };
  const int begin = indent;
  for (size_t d = 0; d < plans_[s].nests.size(); ++d) {
    indent = begin;
    for (size_t l = 0; l < plans_[s].nests[d].size(); ++l) {
      const Loop& loop = plans_[s].nests[d][l];
      // Once round is no loop.
      if (loop.extent > 1) {
        absl::StrAppend(text, std::string(indent, ' '), KindName(loop.kind),
                        " ", loop.name, " < ", loop.extent, "\n");
        indent += 2;
      }
      computed_at({s, static_cast<int>(d), static_cast<int>(l)});
    }
    std::vector<std::string> reads;
    if (d > 0) reads.push_back(stage(s).name);
    for (const Access& access : stage(s).definitions[d].reads) {
      const std::string& name = access.of_input
                                    ? algorithm_.inputs[access.source].name
                                    : stage(access.source).name;
      if (!absl::c_linear_search(reads, name)) reads.push_back(name);
    }
    absl::StrAppend(text, std::string(indent, ' '), stage(s).name, " = ",
                    reads.empty()
                        ? "constant"
                        : absl::StrCat("f(", absl::StrJoin(reads, ", "), ")"),
                    "\n");
  }
}

std::string Program::SketchText() const {
  std::vector<std::string> parts;
  std::vector<int> order = StagesInOrder();
  std::reverse(order.begin(), order.end());
  for (const int s : order) {
    const StagePlan& plan = plans_[s];
    std::string part = stage(s).name;
    if (plan.where == Where::kInline) {
      part += " inlined";
    } else if (plan.where == Where::kAt) {
      absl::StrAppend(&part, " in ", stage(plan.at.stage).name);
    } else {
      part += " at root";
    }
    for (const Nest& nest : plan.nests) {
      const auto is_parallel = [](const Loop& loop) {
        return loop.kind == LoopKind::kParallel;
      };
      if (absl::c_any_of(nest, is_parallel)) {
        part += ", parallel";
        break;
      }
    }
    parts.push_back(std::move(part));
  }
  return absl::StrJoin(parts, "; ");
}

std::string Program::LoopsText() const {
  std::string text;
  for (const int s : StagesInOrder()) {
    if (plans_[s].where == Where::kRoot) AppendLoopsText(s, 0, &text);
  }
  return text;
}

}  // namespace optrail::tuning
