#include "diagnosis/diagnose.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "diagnosis/classes.h"

namespace optrail::diagnosis {

std::string VerdictOf(
    const Numbers& numbers,
    const google::protobuf::RepeatedPtrField<proto::DiagnosisCause>& causes) {
  const Number* const roofline = numbers.Find("roofline_share");
  if (const double reached = ReachedShare(numbers); reached >= kHealthyShare) {
    return absl::StrFormat(
        "already within 10%% of the roofline (%.0f%% of it): nothing to gain "
        "here",
        100 * reached);
  }
  if (IsInconclusive(numbers)) {
    return absl::StrFormat(
        "inconclusive: others have the cores (%.0f%% of samples disturbed), "
        "which looks like a kernel whose threads wait; measure again on a "
        "quiet machine",
        100 * numbers.ValueOr("disturbed_share", 0));
  }
  if (!causes.empty()) return causes[0].chain().rbegin()->says();
  if (roofline != nullptr && roofline->value > 1) {
    return absl::StrFormat(
        "no cause found; faster than the measured ceilings (%.0f%% of the "
        "roofline), so they do not tell what is left",
        100 * roofline->value);
  }
  std::string verdict = "no cause found";
  if (roofline != nullptr) {
    absl::StrAppendFormat(&verdict, "; %.0f%% of the roofline",
                          100 * roofline->value);
  }
  if (const ClassRule* const limit = LimitOf(numbers); limit != nullptr) {
    // The class "compute" is all that does not wait for data, and the roofline
    // may name a level of memory for the same kernel.
    absl::StrAppend(&verdict,
                    limit->name() == "compute"
                        ? "; limited by its own instructions, not by waiting "
                          "for data: "
                        : absl::StrCat("; limited by ", limit->name(), ": "),
                    FillIn(limit->says(), numbers));
    const std::vector<std::string> limits = PossibleLimits(numbers);
    if (limits.size() > 1) {
      absl::StrAppend(&verdict, "; within the numbers' intervals also by ",
                      absl::StrJoin(limits.begin() + 1, limits.end(), ", "));
    }
  }
  return verdict;
}

absl::StatusOr<proto::Diagnosis> Diagnose(const Subject& subject,
                                          const Machine& machine,
                                          const AdviceTools& tools,
                                          const DiagnoseOptions& options) {
  const int64_t start_ns = Clock::Real()->NowNs();
  OPTRAIL_ASSIGN_OR_RETURN(
      const Numbers numbers,
      RunExperiments(subject, machine, tools.evaluator_for));
  proto::Diagnosis diagnosis;
  diagnosis.set_created_unix_ns(Clock::Real()->WallNs());
  *diagnosis.mutable_task() = subject.entry.task;
  *diagnosis.mutable_config() = subject.config;
  diagnosis.set_time_ns(numbers.ValueOr("time_ns", 0));
  if (const Number* const roofline = numbers.Find("roofline_share")) {
    diagnosis.set_roofline_share(roofline->value);
  }
  *diagnosis.mutable_numbers() = numbers.ToProto();
  const std::vector<proto::DiagnosisCause> causes = Judge(numbers);
  *diagnosis.mutable_causes() = {causes.begin(), causes.end()};
  diagnosis.set_verdict(VerdictOf(numbers, diagnosis.causes()));
  for (proto::DiagnosisAdvice& advice :
       AdviceFor(subject, tools, numbers, causes)) {
    if (options.try_advice) TryAdvice(subject, tools, &advice);
    *diagnosis.add_advice() = std::move(advice);
  }
  diagnosis.set_elapsed_seconds(
      static_cast<double>(Clock::Real()->NowNs() - start_ns) * 1e-9);
  return diagnosis;
}

}  // namespace optrail::diagnosis
