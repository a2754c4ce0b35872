#include "cli/shared_machine.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/text/units.h"
#include "ops/device/cpu/noise.h"

ABSL_DECLARE_FLAG(std::string, metric);
ABSL_DECLARE_FLAG(std::string, policy);
ABSL_DECLARE_FLAG(std::string, target);
ABSL_DECLARE_FLAG(bool, quiet);

namespace optrail::cli {
namespace {

constexpr double kShared = .05;
// Time slices of other programs are a few milliseconds each.
constexpr absl::Duration kProbe = absl::Milliseconds(300);

}  // namespace

bool IsSharedMachine(double waiting) { return waiting > kShared; }

int ProcessesFor(double waiting) {
  return static_cast<int>(std::min(100., std::ceil(10 / (1 - waiting))));
}

std::string MetricAdvice(double waiting, const std::string& metric) {
  if (metric != "time" || !IsSharedMachine(waiting)) return "";
  return absl::StrCat(
      "note: programs on this machine wait for a core ",
      FormatPercent(waiting, 0),
      " of their time, which `time` counts; next: --metric=cpu_time needs "
      "fewer rounds, unless the benchmark sleeps or uses several threads");
}

std::string ServingAdvice(double waiting) {
  if (!IsSharedMachine(waiting)) return "";
  return absl::StrCat(
      "note: programs on this machine wait for a core ",
      FormatPercent(waiting, 0),
      " of their time: latencies are longer, and loads that are held lower, "
      "than on a machine that does nothing else");
}

void AdviseServingIfShared() {
  const double waiting = ops::ProbeNoise(kProbe).run_delay_fraction.value_or(0);
  const std::string advice = ServingAdvice(waiting);
  if (!advice.empty()) std::cerr << advice << "\n";
}

void AdviseMetricIfShared() {
  const std::string metric = absl::GetFlag(FLAGS_metric);
  if (metric != "time" || absl::GetFlag(FLAGS_quiet) ||
      !absl::GetFlag(FLAGS_policy).empty() ||
      !absl::GetFlag(FLAGS_target).empty()) {
    return;
  }
  const double waiting = ops::ProbeNoise(kProbe).run_delay_fraction.value_or(0);
  const std::string advice = MetricAdvice(waiting, metric);
  if (!advice.empty()) std::cerr << advice << "\n";
}

}  // namespace optrail::cli
