#include "ops/device/energy/calibration.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file/file.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "base/text/textproto.h"
#include "base/text/units.h"

namespace optrail::ops {
namespace {

// Fewer steps of the counter say nothing of its pace.
constexpr int kFewestSteps = 3;
// A device under load takes this much more than at rest, at least; else its
// sensor does not see the load, or there is none.
constexpr double kLeastRise = 1.01;
// Power is steady from where it stays this near to where it ends up.
constexpr double kSteady = .03;
// It is looked at in steps of this, and of as many updates of the counter: two
// of an H200's scatter by 17%.
constexpr int64_t kLeastSettleStepNs = 250'000'000;
constexpr int64_t kUpdatesOfAStep = 10;
constexpr int kLengths = 6;  // doubled each time

double SecondsBetween(const SensorReading& from, const SensorReading& to) {
  return static_cast<double>(to.now_ns - from.now_ns) * 1e-9;
}

// The readings within [from_ns, to_ns).
absl::Span<const SensorReading> Between(
    absl::Span<const SensorReading> readings, int64_t from_ns, int64_t to_ns) {
  const auto before = [](const SensorReading& reading, int64_t ns) {
    return reading.now_ns < ns;
  };
  const auto* const begin =
      std::lower_bound(readings.begin(), readings.end(), from_ns, before);
  const auto* const end =
      std::lower_bound(begin, readings.end(), to_ns, before);
  return {begin, static_cast<size_t>(end - begin)};
}

// The best that a part of a trace tells of its power.
absl::StatusOr<double> Watts(absl::Span<const SensorReading> readings,
                             double range) {
  if (readings.size() < 2) return absl::NotFoundError("too few readings");
  const double seconds = SecondsBetween(readings.front(), readings.back());
  absl::StatusOr<double> joules = CounterJoules(readings, range);
  if (absl::IsNotFound(joules.status())) joules = IntegratedJoules(readings);
  if (!joules.ok()) return joules.status();
  return *joules / seconds;
}

// How often the counter moves: the median time between steps.
int64_t UpdateNs(absl::Span<const SensorReading> readings) {
  std::vector<double> gaps;
  int64_t last_ns = 0;
  for (size_t i = 1; i < readings.size(); ++i) {
    if (!readings[i].joules || readings[i].joules == readings[i - 1].joules) {
      continue;
    }
    if (last_ns > 0) {
      gaps.push_back(static_cast<double>(readings[i].now_ns - last_ns));
    }
    last_ns = readings[i].now_ns;
  }
  return gaps.empty() ? 0 : static_cast<int64_t>(Median(gaps));
}

// The mean of what power readings show; nullopt if there are none.
absl::optional<double> ShownWatts(absl::Span<const SensorReading> readings) {
  const absl::StatusOr<double> joules = IntegratedJoules(readings);
  if (!joules.ok()) return absl::nullopt;
  return *joules / SecondsBetween(readings.front(), readings.back());
}

// Until the power of short windows stays near that of the second half, by the
// counter and by power readings, which may follow later.
int64_t SettleNs(absl::Span<const SensorReading> load, double range) {
  const int64_t step_ns =
      std::max(kLeastSettleStepNs, kUpdatesOfAStep * UpdateNs(load));
  const int64_t start_ns = load.front().now_ns;
  const int64_t end_ns = load.back().now_ns;
  const int64_t half_ns = start_ns + (end_ns - start_ns) / 2;
  const absl::StatusOr<double> level =
      Watts(Between(load, half_ns, end_ns + 1), range);
  const absl::optional<double> shown_level =
      ShownWatts(Between(load, half_ns, end_ns + 1));
  if (!level.ok()) return 0;
  int64_t settled_ns = 0;
  for (int64_t at = start_ns; at + step_ns <= half_ns; at += step_ns) {
    const auto part = Between(load, at, at + step_ns + 1);
    const absl::StatusOr<double> watts = Watts(part, range);
    const absl::optional<double> shown = ShownWatts(part);
    const bool steady = watts.ok() &&
                        std::abs(*watts / *level - 1) <= kSteady &&
                        (!shown || !shown_level ||
                         std::abs(*shown / *shown_level - 1) <= kSteady);
    if (!steady) settled_ns = at + step_ns - start_ns;
  }
  return settled_ns;
}

// Twice the relative standard deviation of power over windows that overlap.
absl::optional<double> SpreadOf(absl::Span<const SensorReading> steady,
                                int64_t window_ns, double range) {
  std::vector<double> watts;
  for (int64_t at = steady.front().now_ns;
       at + window_ns <= steady.back().now_ns; at += window_ns / 4) {
    const auto one = Watts(Between(steady, at, at + window_ns + 1), range);
    if (one.ok()) watts.push_back(*one);
  }
  constexpr size_t kFewestWindows = 9;  // two and more that do not overlap
  if (watts.size() < kFewestWindows) return absl::nullopt;
  return 2 * StandardDeviation(watts) / Mean(watts);
}

void FindWindow(absl::Span<const SensorReading> steady, double range,
                const CalibrationOptions& options,
                proto::MeterCalibration* found) {
  int64_t window_ns = absl::ToInt64Nanoseconds(options.shortest_window);
  for (int i = 0; i < kLengths; ++i, window_ns *= 2) {
    const auto spread = SpreadOf(steady, window_ns, range);
    if (!spread) continue;
    proto::MeterCalibration::Length& length = *found->add_lengths();
    length.set_window_ns(window_ns);
    length.set_spread(*spread);
  }
  // A longer one that is worse says that the shorter was lucky.
  for (int i = found->lengths_size() - 1; i >= 0; --i) {
    const bool is_last = i == found->lengths_size() - 1;
    if (!is_last && found->lengths(i).spread() > options.spread) break;
    found->set_window_ns(found->lengths(i).window_ns());
  }
  if (found->window_ns() == 0) found->set_window_ns(window_ns / 2);
}

// AGREES, UNCHECKED, or a reason to refuse.
void HoldAgainstEachOther(absl::Span<const SensorReading> steady, double range,
                          const CalibrationOptions& options,
                          proto::MeterCalibration* found) {
  const double seconds = SecondsBetween(steady.front(), steady.back());
  const absl::StatusOr<double> counted = CounterJoules(steady, range);
  const absl::StatusOr<double> integrated = IntegratedJoules(steady);
  found->set_margin(options.margin);
  if (counted.ok()) found->set_counter_watts(*counted / seconds);
  if (integrated.ok()) found->set_integrated_watts(*integrated / seconds);
  if (!counted.ok() && !absl::IsNotFound(counted.status())) {
    found->set_refused(std::string(counted.status().message()));
    return;
  }
  if (!counted.ok() && !integrated.ok()) {
    found->set_refused("there is neither a counter nor a power reading");
    return;
  }
  if (!counted.ok() || !integrated.ok()) {
    found->set_check(proto::UNCHECKED);
    return;
  }
  const double apart = std::abs(*counted / *integrated - 1);
  if (apart <= options.margin) {
    found->set_check(proto::AGREES);
    return;
  }
  found->set_refused(
      absl::StrFormat("the energy counter says %.4g W and integrated power "
                      "%.4g W over the same "
                      "%.1f s: they differ by %s, and %s is allowed",
                      *counted / seconds, *integrated / seconds, seconds,
                      FormatPercent(apart), FormatPercent(options.margin, 0)));
}

std::string PathOf(const std::string& folder, const std::string& device) {
  return JoinPath(JoinPath(folder, "meters"), device + ".textproto");
}

}  // namespace

absl::StatusOr<double> CounterJoules(absl::Span<const SensorReading> readings,
                                     double range) {
  if (readings.size() < 2 || !readings.front().joules) {
    return absl::NotFoundError("there is no energy counter");
  }
  double total = 0, at_first_step = 0, at_last_step = 0;
  size_t first_step = 0, last_step = 0;
  int steps = 0;
  for (size_t i = 1; i < readings.size(); ++i) {
    if (!readings[i].joules) {
      return absl::FailedPreconditionError("the energy counter went away");
    }
    double more = *readings[i].joules - *readings[i - 1].joules;
    if (more < 0) more += range;
    if (more < 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("the energy counter went back by ", -more, " J"));
    }
    if (more == 0) continue;
    total += more;
    if (steps++ == 0) {
      first_step = i;
      at_first_step = total;
    }
    last_step = i;
    at_last_step = total;
  }
  const double seconds = SecondsBetween(readings.front(), readings.back());
  if (steps == 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("the energy counter stood still for %.2f s", seconds));
  }
  if (steps < kFewestSteps) return total;
  const double between =
      SecondsBetween(readings[first_step], readings[last_step]);
  return (at_last_step - at_first_step) / between * seconds;
}

absl::StatusOr<double> IntegratedJoules(
    absl::Span<const SensorReading> readings) {
  const auto watts_of = [](const SensorReading& reading) {
    return reading.watts ? reading.watts : reading.average_watts;
  };
  if (readings.size() < 2) return absl::NotFoundError("too few readings");
  double joules = 0;
  for (size_t i = 1; i < readings.size(); ++i) {
    const auto before = watts_of(readings[i - 1]),
               after = watts_of(readings[i]);
    if (!before || !after)
      return absl::NotFoundError("there is no power reading");
    joules +=
        (*before + *after) / 2 * SecondsBetween(readings[i - 1], readings[i]);
  }
  return joules;
}

proto::MeterCalibration CalibrationOf(const EnergyTrace& trace, double range,
                                      const CalibrationOptions& options) {
  proto::MeterCalibration found;
  if (trace.load.size() < 2 || trace.idle.size() < 2) {
    found.set_refused("the sensor gave no readings");
    return found;
  }
  found.set_counter_update_ns(UpdateNs(trace.load));
  found.set_settle_ns(SettleNs(trace.load, range));
  const auto steady =
      Between(trace.load, trace.load.front().now_ns + found.settle_ns(),
              trace.load.back().now_ns + 1);
  HoldAgainstEachOther(steady, range, options, &found);
  if (!found.refused().empty()) return found;
  const absl::StatusOr<double> idle = Watts(trace.idle, range);
  const absl::StatusOr<double> load = Watts(steady, range);
  // One that stands still at rest and moves under load takes nothing at rest.
  found.set_idle_watts(idle.ok() ? *idle : 0);
  if (load.ok() && *load < kLeastRise * found.idle_watts()) {
    found.set_check(proto::METER_CHECK_UNSPECIFIED);
    found.set_refused(
        absl::StrFormat("the device takes %.4g W at rest and %.4g W under "
                        "load: its sensor does "
                        "not see the load, or others work there",
                        found.idle_watts(), *load));
    return found;
  }
  FindWindow(steady, range, options, &found);
  return found;
}

absl::StatusOr<proto::MeterCalibration> ReadCalibration(
    const std::string& folder, const std::string& device, int64_t now_unix_ns,
    absl::Duration age) {
  const std::string path = PathOf(folder, device);
  OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const auto kept = ParseTextProto<proto::MeterCalibration>(text, path);
  if (!kept.ok()) return absl::NotFoundError(kept.status().message());
  const absl::Duration old =
      absl::Nanoseconds(now_unix_ns - kept->message.taken_unix_ns());
  if (old < absl::ZeroDuration() || old > age ||
      kept->message.device() != device) {
    return absl::NotFoundError(absl::StrCat(path, " is out of date"));
  }
  return kept->message;
}

absl::Status KeepCalibration(const std::string& folder,
                             const proto::MeterCalibration& calibration) {
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(JoinPath(folder, "meters")));
  std::string text;
  google::protobuf::TextFormat::PrintToString(calibration, &text);
  return WriteFileAtomically(PathOf(folder, calibration.device()), text);
}

std::string CalibrationText(const proto::MeterCalibration& calibration) {
  if (!calibration.refused().empty()) {
    return absl::StrCat("refused: ", calibration.refused());
  }
  std::string text =
      calibration.check() == proto::AGREES
          ? absl::StrCat(
                "counter and power agree within ",
                FormatPercent(std::abs(calibration.counter_watts() /
                                           calibration.integrated_watts() -
                                       1)))
          : "unchecked: there is one source only";
  absl::StrAppend(
      &text, absl::StrFormat("; %.4g W at rest", calibration.idle_watts()),
      "; windows of ",
      FormatDurationNs(static_cast<double>(calibration.window_ns())), " after ",
      FormatDurationNs(static_cast<double>(calibration.settle_ns())));
  return text;
}

}  // namespace optrail::ops
