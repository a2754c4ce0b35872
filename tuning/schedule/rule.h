#ifndef OPTRAIL_TUNING_SCHEDULE_RULE_H_
#define OPTRAIL_TUNING_SCHEDULE_RULE_H_

// A sketch rule proposes structure: it looks at one stage of a program and
// changes it by primitives, asking for a decision wherever there is a choice.
// Rules know loops and access patterns, and nothing of operators.
//
//   class UnrollReductions : public SketchRule {
//     std::string name() const override { return "unroll_reductions"; }
//     void Apply(const Machine&, int stage, Decisions& decisions,
//                Program& program) const override { ... }
//   };
//   OPTRAIL_REGISTER_SKETCH_RULE(75, UnrollReductions)
//
// Derive() goes through the stages, readers before what they read, and offers
// each to all rules in the order of their numbers. What a rule offers must
// depend on the algorithm and the decisions before it alone, never on the
// machine, so that a stored trace means the same everywhere; the machine may
// only narrow what is drawn. docs/method/schedules.md adds one in ten minutes.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tuning/schedule/algorithm.h"
#include "tuning/schedule/program.h"
#include "tuning/schedule/trace.h"

namespace optrail::tuning {

struct Machine {
  int threads = 1;
  int vector_bytes = 64;
};

class SketchRule {
 public:
  virtual ~SketchRule() = default;
  virtual std::string name() const = 0;
  // Raised when the same decisions come to mean another program.
  virtual int version() const { return 1; }
  // Decisions are named "s<stage>_..." (DecisionName).
  virtual void Apply(const Machine& machine, int stage, Decisions& decisions,
                     Program& program) const = 0;
};

// "s3_tile1"; the number is left out where it is negative.
std::string DecisionName(int stage, const std::string& what, int number = -1);

// Before main. Rules of equal order go by name.
bool RegisterSketchRule(int order, std::unique_ptr<SketchRule> rule);
// In the order in which they are applied.
std::vector<const SketchRule*> SketchRules();
// Names and versions of all, which a stored trace depends on:
// "inline 1, cache_write 1, ...".
std::string SketchRulesText();

// The program that `decisions` make of an algorithm. InvalidArgument: a trace
// that does not fit (Decisions::Finish), or a program beyond what may be
// compiled (Program::Check). `asked_by`, if given, becomes for each decision
// the name of the rule that asked for it.
absl::StatusOr<Program> Derive(
    const Algorithm& algorithm, const Machine& machine, Decisions& decisions,
    std::map<std::string, std::string>* asked_by = nullptr);

}  // namespace optrail::tuning

#define OPTRAIL_SCHEDULE_CONCAT_INNER_(a, b) a##b
#define OPTRAIL_SCHEDULE_CONCAT_(a, b) OPTRAIL_SCHEDULE_CONCAT_INNER_(a, b)
#define OPTRAIL_REGISTER_SKETCH_RULE(order, Class)             \
  [[maybe_unused]] static const bool OPTRAIL_SCHEDULE_CONCAT_( \
      optrail_sketch_rule_, __LINE__) =                        \
      ::optrail::tuning::RegisterSketchRule(order, std::make_unique<Class>());

#endif  // OPTRAIL_TUNING_SCHEDULE_RULE_H_
