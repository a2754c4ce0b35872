#include "tuning/replay/session_recording.h"

#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "tuning/proto/meter_window.h"
#include "tuning/session/objective.h"

namespace optrail::tuning {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNsPerMs = 1e6;

// Returns the name of a failure in recordings.
const char* FailureName(proto::Outcome outcome) {
  switch (outcome) {
    case proto::COMPILE_ERROR:
      return "CompilationFailedConfig";
    case proto::WRONG_RESULT:
      return "correctness";
    case proto::TIMED_OUT:
      return "timeout";
    case proto::LAUNCH_ERROR:
    case proto::CRASHED:
    case proto::OUT_OF_MEMORY:
      return "RuntimeFailedConfig";
    default:
      return "InvalidConfig";
  }
}

Json ValueOfKnob(const proto::KnobValue& value) {
  switch (value.value_case()) {
    case proto::KnobValue::kBool:
      return value.bool_();
    case proto::KnobValue::kVariant:
      return value.variant();
    default:
      return value.int_();
  }
}

}  // namespace

absl::StatusOr<std::string> RecordingOf(const proto::Session& session) {
  std::set<std::string> knobs;
  Json cache = Json::object();
  bool any = false;
  for (const proto::Trial& trial : session.trials()) {
    // A lower bound and a busy machine say nothing of the config.
    if (trial.outcome() == proto::CENSORED ||
        trial.outcome() == proto::CONTENDED) {
      continue;
    }
    Json row = Json::object();
    std::vector<std::string> key;
    for (const proto::KnobValue& value : trial.config().set()) {
      knobs.insert(value.knob());
      row[value.knob()] = ValueOfKnob(value);
      key.push_back(row[value.knob()].dump());
    }
    const absl::optional<double> time_ns = ValueOf(trial, kTimeMetric);
    if (trial.outcome() == proto::OK && time_ns) {
      any = true;
      row["time"] = *time_ns / kNsPerMs;
    } else {
      row["time"] = FailureName(trial.outcome());
    }
    if (const auto joules = ValueOf(trial, kJoules)) {
      row["nvml_energy"] = *joules;
    }
    for (const proto::Fact& fact : trial.facts()) {
      row["facts"][fact.name()] = fact.value();
    }
    cache[absl::StrJoin(key, ",")] = std::move(row);
  }
  if (!any) {
    return absl::InvalidArgumentError(
        absl::StrCat("session ", session.session_id(),
                     ": no trial has a time, expected one at least"));
  }
  Json recording = Json::object();
  recording["tune_params_keys"] = knobs;
  recording["cache"] = std::move(cache);
  return absl::StrCat(recording.dump(), "\n");
}

}  // namespace optrail::tuning
