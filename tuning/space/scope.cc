#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tuning/space/expression.h"
#include "tuning/space/expression_node.h"

namespace optrail::tuning {

void Scope::AddKnob(absl::string_view name, ExprType type,
                    std::vector<std::string> variants) {
  for (const std::string& variant : variants) Intern(variant);
  knobs_.push_back({std::string(name), type, std::move(variants)});
}

void Scope::AddAttribute(absl::string_view name, ExprType type) {
  attributes_.emplace(std::string(name), type);
}

void Scope::AddLet(absl::string_view name, const Expression& expression) {
  lets_.emplace(std::string(name), expression.node_);
}

int64_t Scope::Intern(absl::string_view text) {
  return strings_
      .try_emplace(std::string(text), static_cast<int64_t>(strings_.size()))
      .first->second;
}

const Scope::Knob* Scope::Find(absl::string_view name, int* index) const {
  for (size_t i = 0; i < knobs_.size(); ++i) {
    if (knobs_[i].name == name) {
      *index = static_cast<int>(i);
      return &knobs_[i];
    }
  }
  return nullptr;
}

std::string Scope::KnobNames() const {
  std::string names =
      absl::StrJoin(knobs_, ", ", [](std::string* out, const Knob& knob) {
        absl::StrAppend(out, knob.name);
      });
  for (const auto& [name, node] : lets_) absl::StrAppend(&names, ", ", name);
  return names;
}

std::string Scope::AttributeNames() const {
  return absl::StrJoin(attributes_, ", ",
                       [](std::string* out, const auto& attribute) {
                         absl::StrAppend(out, attribute.first);
                       });
}

}  // namespace optrail::tuning
