#ifndef OPTRAIL_TRACKER_GATE_POLICY_H_
#define OPTRAIL_TRACKER_GATE_POLICY_H_

// Policy is a checked tracker/proto/policy.proto: patterns compiled, dates
// parsed, absent fields filled in.
//
//   OPTRAIL_ASSIGN_OR_RETURN(Policy policy, Policy::Load("gate.textproto"));
//   const RuleView rule = policy.RuleFor("matmul/cpu/...", "time");
//
// docs/reference/policy_format.md describes the file.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tracker/compare/compare.h"
#include "tracker/proto/policy.pb.h"

namespace optrail::tracker {

// The rules for one benchmark and metric.
struct RuleView {
  proto::Action action = proto::IGNORE;
  Threshold threshold;
  std::string matched;  // "rule 2 (line 14)", "the built-in rule {...}"
};

class Policy {
 public:
  // Errors name file, line and column, the value and what was expected.
  static absl::StatusOr<Policy> Load(absl::string_view path);
  static absl::StatusOr<Policy> Parse(absl::string_view text,
                                      absl::string_view file_name);

  // The policy of an empty file.
  static Policy Default();

  // The policy in `path`. Without one the default policy, of `metric` instead
  // of time where that is given: a regular expression, matched as a whole.
  static absl::StatusOr<Policy> LoadOr(const std::string& path,
                                       const std::string& metric);

  // With every absent field filled in.
  const proto::Policy& proto() const { return proto_; }

  RuleView RuleFor(absl::string_view benchmark, absl::string_view metric) const;

  // The exemption that holds at `now_unix_s`, or null.
  const proto::Exemption* ExemptionFor(absl::string_view benchmark,
                                       absl::string_view metric,
                                       int64_t now_unix_s) const;
  // Those that have run out, to be said.
  std::vector<const proto::Exemption*> ExpiredExemptions(
      int64_t now_unix_s) const;

  // What becomes of a verdict that the rule does not gate by its effect.
  proto::Action ActionFor(Verdict verdict, const RuleView& rule) const;

 private:
  struct Compiled;

  Policy() = default;

  proto::Policy proto_;
  std::shared_ptr<const Compiled> compiled_;
};

// "window:main", "window:main:20", "run:ID", "commit:HASH", "tag:NAME",
// "merge-base:main"; a bare word is a run, a commit or "latest~N".
absl::StatusOr<proto::Baseline> ParseBaseline(absl::string_view text);
std::string BaselineText(const proto::Baseline& baseline);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_GATE_POLICY_H_
