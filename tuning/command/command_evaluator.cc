#include "tuning/command/command_evaluator.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/process/subprocess.h"
#include "base/text/utf8.h"

namespace optrail::tuning {
namespace {

proto::Outcome OutcomeOf(const ExitInfo& exit) {
  switch (exit.kind) {
    case ExitInfo::Kind::kTimedOut:
      return proto::TIMED_OUT;
    case ExitInfo::Kind::kOutOfMemory:
    case ExitInfo::Kind::kMachineOutOfMemory:
      return proto::OUT_OF_MEMORY;
    default:
      return exit.ok() ? proto::OK : proto::CRASHED;
  }
}

// The end of what a failed command said.
std::string LastWords(absl::string_view text) {
  constexpr size_t kLength = 200;
  text = absl::StripAsciiWhitespace(text);
  if (text.empty()) return "";
  return absl::StrCat(": ", SanitiseText(TailUtf8(text, kLength)));
}

}  // namespace

CommandTrial CommandEvaluator::Evaluate(
    const std::map<std::string, std::string>& values) const {
  CommandOptions options;
  options.timeout = limits_.timeout;
  options.max_resident_bytes = limits_.max_resident_bytes;
  options.working_directory = limits_.working_directory;
  options.guard = limits_.guard;
  CommandTrial trial;
  const absl::StatusOr<CommandResult> result =
      RunCommand({"/bin/sh", "-c", command_.Fill(values)}, options);
  if (!result.ok()) {
    trial.outcome = proto::LAUNCH_ERROR;
    trial.detail = std::string(result.status().message());
    return trial;
  }
  trial.elapsed = result->exit.wall_time;
  trial.outcome = OutcomeOf(result->exit);
  if (trial.outcome != proto::OK) {
    trial.detail =
        absl::StrCat(result->exit.ToString(), LastWords(result->stderr_text));
    return trial;
  }
  for (const Metric& metric : metrics_) {
    const absl::StatusOr<double> value =
        ReadMetric(metric, result->stdout_text);
    if (!value.ok()) {
      trial.outcome = proto::WRONG_RESULT;
      trial.detail = std::string(value.status().message());
      trial.values.clear();
      return trial;
    }
    trial.values.push_back(*value);
  }
  return trial;
}

}  // namespace optrail::tuning
