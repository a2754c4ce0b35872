#include "reports/schedule_view.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/stats/statistics.h"
#include "reports/knob_effects.h"
#include "tuning/schedule/rule.h"
#include "tuning/schedule/trace_source.h"

namespace optrail::reports {
namespace {

using tuning::Decisions;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The program of a config: of its trace, or the rules' own.
absl::StatusOr<tuning::Program> ProgramOf(
    const tuning::Algorithm& algorithm, const proto::Config& config,
    tuning::Trace* trace, std::map<std::string, std::string>* asked_by) {
  const auto given = tuning::TraceOf(config);
  Decisions decisions =
      given.ok() ? Decisions::Replay(*given) : Decisions::Default();
  auto program =
      tuning::Derive(algorithm, tuning::Machine(), decisions, asked_by);
  if (trace != nullptr) *trace = decisions.trace();
  return program;
}

// "conv" of "s1_tile0".
std::string StageNameOf(absl::string_view decision,
                        const tuning::Program& program) {
  int stage = -1;
  if (!absl::ConsumePrefix(&decision, "s") ||
      !absl::SimpleAtoi(decision.substr(0, decision.find('_')), &stage) ||
      stage < 0 || stage >= program.stage_count()) {
    return "";
  }
  return program.stage(stage).name;
}

// The config whose program is shown: the winner or, of a session without one,
// the best that was read.
const proto::Config* Shown(const tracker::SessionAnalysis& session) {
  if (session.header.has_winner()) return &session.header.winner();
  if (session.improvements.empty()) return nullptr;
  return &session.trials[session.improvements.back().trial].config;
}

void AddSketches(const tracker::SessionAnalysis& session,
                 const tuning::Algorithm& algorithm,
                 const std::string& of_winner, ScheduleView* view) {
  struct Tried {
    int trials = 0, failed = 0;
    std::vector<double> times;
  };
  std::map<std::string, Tried> tried;
  for (const tracker::TrialPoint& trial : session.trials) {
    const auto program = ProgramOf(algorithm, trial.config, nullptr, nullptr);
    if (!program.ok()) continue;
    Tried& at = tried[program->SketchText()];
    ++at.trials;
    if (trial.cost) at.times.push_back(*trial.cost);
    at.failed += trial.outcome != proto::OK && trial.outcome != proto::CENSORED;
  }
  for (auto& [text, at] : tried) {
    std::sort(at.times.begin(), at.times.end());
    view->sketches.push_back(
        {text, at.trials, at.failed, at.times.empty() ? kNaN : at.times[0],
         at.times.empty() ? kNaN : Quantile(at.times, 0.5), text == of_winner});
  }
  std::stable_sort(view->sketches.begin(), view->sketches.end(),
                   [](const auto& a, const auto& b) {
                     if (std::isnan(a.best_ns) != std::isnan(b.best_ns)) {
                       return std::isnan(b.best_ns);
                     }
                     return a.best_ns < b.best_ns;
                   });
}

// Rules by what their decisions explain.
void AddRules(const std::map<std::string, std::string>& asked_by,
              const std::map<std::string, absl::optional<double>>& importance,
              ScheduleView* view) {
  std::map<std::string, ScheduleView::Rule> rules;
  for (const auto& [decision, name] : asked_by) {
    ScheduleView::Rule& rule = rules[name];
    rule.name = name;
    ++rule.decisions;
    const auto found = importance.find(decision);
    if (found == importance.end() || !found->second.has_value()) continue;
    rule.importance = rule.importance.value_or(0) + *found->second;
  }
  for (auto& [name, rule] : rules) view->rules.push_back(std::move(rule));
  std::stable_sort(
      view->rules.begin(), view->rules.end(), [](const auto& a, const auto& b) {
        return a.importance.value_or(-1) > b.importance.value_or(-1);
      });
}

}  // namespace

absl::optional<ScheduleView> ViewOfSchedule(const proto::Session& session,
                                            const TuningSession& converted) {
  if (!session.has_schedule()) return absl::nullopt;
  ScheduleView view;
  const std::string rules = tuning::SketchRulesText();
  if (session.schedule().rules() != rules) {
    view.note = absl::StrCat("Its programs were made by other rules (",
                             session.schedule().rules(), ") than these (",
                             rules, "), which would make others.");
    return view;
  }
  const auto algorithm = tuning::ParseAlgorithm(session.schedule().algorithm());
  if (!algorithm.ok()) {
    view.note = std::string(algorithm.status().message());
    return view;
  }
  const proto::Config* const shown = Shown(converted.of);
  std::string of_winner;
  if (shown != nullptr) {
    std::map<std::string, std::string> asked_by;
    tuning::Trace trace, usual;
    const auto program = ProgramOf(*algorithm, *shown, &trace, &asked_by);
    if (!program.ok()) {
      view.note = std::string(program.status().message());
      return view;
    }
    of_winner = program->SketchText();
    view.loops = program->LoopsText();
    std::map<std::string, absl::optional<double>> importance;
    for (const KnobEffect& effect : KnobEffects(converted)) {
      importance[converted.knobs[effect.knob].name] = effect.importance;
    }
    Decisions own = Decisions::Default();
    if (tuning::Derive(*algorithm, tuning::Machine(), own).ok()) {
      usual = own.trace();
    }
    for (const auto& [name, value] : trace) {
      ScheduleView::Decision decision;
      decision.name = name;
      decision.stage = StageNameOf(name, *program);
      decision.rule = asked_by[name];
      decision.value = value;
      if (usual.count(name) > 0) decision.usual = usual[name];
      decision.importance = importance[name];
      view.decisions.push_back(std::move(decision));
    }
    AddRules(asked_by, importance, &view);
  }
  AddSketches(converted.of, *algorithm, of_winner, &view);
  return view;
}

}  // namespace optrail::reports
