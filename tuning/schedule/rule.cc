#include "tuning/schedule/rule.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace optrail::tuning {
namespace {

using Rules =
    std::map<std::pair<int, std::string>, std::unique_ptr<SketchRule>>;

Rules& AllRules() {
  static auto& rules = *new Rules();
  return rules;
}

// The last stage that is not done and all of whose readers are; -1: none.
int NextStage(const Program& program, std::vector<bool>& done) {
  done.resize(program.stage_count(), false);
  for (int s = program.stage_count() - 1; s >= 0; --s) {
    if (done[s]) continue;
    bool ready = true;
    for (const Reader& reader : program.Readers(s)) ready &= done[reader.stage];
    if (ready) return s;
  }
  return -1;
}

}  // namespace

std::string DecisionName(int stage, const std::string& what, int number) {
  return number < 0 ? absl::StrCat("s", stage, "_", what)
                    : absl::StrCat("s", stage, "_", what, number);
}

bool RegisterSketchRule(int order, std::unique_ptr<SketchRule> rule) {
  std::string name = rule->name();
  return AllRules()
      .emplace(std::make_pair(order, std::move(name)), std::move(rule))
      .second;
}

std::vector<const SketchRule*> SketchRules() {
  std::vector<const SketchRule*> rules;
  for (const auto& [order, rule] : AllRules()) rules.push_back(rule.get());
  return rules;
}

std::string SketchRulesText() {
  return absl::StrJoin(
      SketchRules(), ", ", [](std::string* text, const SketchRule* rule) {
        absl::StrAppend(text, rule->name(), " ", rule->version());
      });
}

absl::StatusOr<Program> Derive(const Algorithm& algorithm,
                               const Machine& machine, Decisions& decisions,
                               std::map<std::string, std::string>* asked_by) {
  constexpr int kMaxStages = 64;
  Program program(algorithm);
  std::vector<bool> done;
  const std::vector<const SketchRule*> rules = SketchRules();
  for (int s; (s = NextStage(program, done)) >= 0;) {
    bool waits = false;
    for (const SketchRule* rule : rules) {
      rule->Apply(machine, s, decisions, program);
      if (asked_by != nullptr) {
        for (const auto& [name, value] : decisions.trace()) {
          asked_by->emplace(name, rule->name());
        }
      }
      if (program.stage_count() > kMaxStages) {
        return absl::InvalidArgumentError(
            absl::StrCat("more than ", kMaxStages, " stages"));
      }
      // A stage that has a new reader waits for that.
      done.resize(program.stage_count(), false);
      for (const Reader& reader : program.Readers(s)) {
        waits |= !done[reader.stage];
      }
      if (waits) break;
    }
    if (!waits) done[s] = true;
  }
  const absl::Status finished = decisions.Finish();
  if (!finished.ok()) return finished;
  const absl::Status checked = program.Check();
  if (!checked.ok()) return checked;
  return program;
}

}  // namespace optrail::tuning
