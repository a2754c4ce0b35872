#include "carbon/energy_of.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "base/stats/distributions.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "base/text/csv_reader.h"
#include "carbon/grid.h"
#include "tuning/proto/meter_window.h"
#include "tuning/proto/session_clock.h"

namespace optrail::carbon {
namespace {

// One process says nothing of how others would read: an assumption.
constexpr double kOneProcessUncertainty = .1;

// Half the 95% interval of the mean over processes, relative.
double SpreadOf(const std::vector<double>& processes) {
  if (processes.size() < 2) return kOneProcessUncertainty;
  const auto n = static_cast<double>(processes.size());
  const double t = StudentTQuantile(.975, n - 1);
  return t * StandardDeviation(processes) / std::sqrt(n) / Mean(processes);
}

// Metered sums windows of energy up: their power, and whether it is believed.
struct Metered {
  double joules = 0, seconds = 0;
  // How they came about: one that is unchecked, estimated or shared stands for
  // all.
  proto::MeterWindow label;
  bool any = false;
};

template <typename Measurements>
void AddWindows(const Measurements& measurements, Metered* metered) {
  for (const proto::Measurement& measurement : measurements) {
    for (const proto::MeterWindow& window : measurement.windows()) {
      if (window.metric() != tuning::kJoules || window.duration_ns() <= 0) {
        continue;
      }
      metered->joules += window.value();
      metered->seconds += static_cast<double>(window.duration_ns()) * 1e-9;
      proto::MeterWindow& label = metered->label;
      if (!std::exchange(metered->any, true)) label = window;
      if (window.estimated()) label.set_estimated(true);
      if (window.shared()) label.set_shared(true);
      if (window.check() != proto::AGREES) label.set_check(window.check());
    }
  }
}

// A time at the power of its windows, or of the model.
Energy OverTime(double seconds, const Metered& metered, double busy_cores,
                const proto::Hardware& hardware, const PowerModel& model) {
  Energy energy;
  energy.seconds = seconds;
  energy.uncertainty = kModelUncertainty;
  double watts = 0;
  if (metered.seconds > 0) {
    watts = metered.joules / metered.seconds;
    energy.basis = absl::StrFormat(
        "estimated: %.4g W as windows of it were metered, for all of its time",
        watts);
  } else {
    watts = ModelWatts(hardware, busy_cores, model);
    energy.basis = ModelText(hardware, model);
    energy.of_device_watts = TakesDeviceWatts(hardware);
  }
  energy.known = watts > 0 && seconds > 0;
  energy.joules = watts * seconds;
  return energy;
}

}  // namespace

Energy EnergyOfCall(const proto::BenchmarkResult& result,
                    const proto::Hardware& hardware, const PowerModel& model) {
  std::vector<double> joules, times_ns;
  Metered metered;
  AddWindows(result.measurements(), &metered);
  for (const proto::Measurement& measurement : result.measurements()) {
    if (measurement.has_median_ns()) {
      times_ns.push_back(measurement.median_ns());
    }
    const auto read = tuning::MeteredPerCall(measurement, tuning::kJoules);
    if (read) joules.push_back(*read);
  }
  Energy energy;
  if (!times_ns.empty()) energy.seconds = Median(times_ns) * 1e-9;
  if (!joules.empty()) {
    energy.known = true;
    energy.joules = Median(joules);
    energy.estimated = metered.label.estimated();
    energy.scatter = SpreadOf(joules);
    energy.uncertainty = energy.estimated ? kModelUncertainty : energy.scatter;
    energy.basis = absl::StrCat("metered: ", tuning::WindowText(metered.label));
    return energy;
  }
  if (times_ns.empty()) return energy;
  energy = OverTime(energy.seconds, metered,
                    std::max(result.key().threads(), 1), hardware, model);
  energy.scatter = SpreadOf(times_ns);
  return energy;
}

Energy EnergyOfRun(const proto::Run& run, const PowerModel& model) {
  Metered metered;
  int threads = 1;
  for (const proto::BenchmarkResult& result : run.results()) {
    AddWindows(result.measurements(), &metered);
    threads = std::max(threads, result.key().threads());
  }
  return OverTime(static_cast<double>(run.elapsed_ns()) * 1e-9, metered,
                  threads, run.hardware(), model);
}

Energy EnergyOfSession(const proto::Session& session, const PowerModel& model) {
  Metered metered;
  for (const proto::Trial& trial : session.trials()) {
    AddWindows(trial.measurements(), &metered);
  }
  for (const proto::Finalist& finalist : session.finalists()) {
    AddWindows(finalist.measurements(), &metered);
  }
  return OverTime(static_cast<double>(tuning::ClockNs(session)) * 1e-9, metered,
                  std::max(session.task().threads(), 1), session.hardware(),
                  model);
}

absl::StatusOr<WallMeter> WallMeter::Parse(absl::string_view csv,
                                           const std::string& name) {
  CsvReader reader(csv, name);
  std::vector<absl::string_view> fields;
  OPTRAIL_ASSIGN_OR_RETURN(const bool has_header, reader.Next(fields));
  if (!has_header || fields.size() != 2 || fields[0] != "time" ||
      fields[1] != "watts") {
    return reader.ErrorHere("expected the line \"time,watts\" first");
  }
  WallMeter meter;
  meter.name_ = name;
  while (true) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool more, reader.Next(fields));
    if (!more) break;
    if (fields.size() != 2) return reader.ErrorHere("expected time and watts");
    absl::Time time;
    std::string error;
    if (fields[0].size() > 40 ||
        !absl::ParseTime(absl::RFC3339_full, fields[0], &time, &error)) {
      return reader.ErrorHere(
          absl::StrCat("time is ", QuoteCsvField(fields[0]),
                       ", expected one like 2026-01-01T00:00:00Z"));
    }
    Reading reading;
    reading.unix_s = absl::ToDoubleSeconds(time - absl::UnixEpoch());
    if (!absl::SimpleAtod(fields[1], &reading.watts) ||
        !std::isfinite(reading.watts) || reading.watts < 0 ||
        reading.watts > 1e9) {
      return reader.ErrorHere(absl::StrCat("watts is ",
                                           QuoteCsvField(fields[1]),
                                           ", expected a power from 0 on"));
    }
    if (!meter.readings_.empty() &&
        reading.unix_s <= meter.readings_.back().unix_s) {
      return reader.ErrorHere("time does not come after the line before");
    }
    meter.readings_.push_back(reading);
  }
  if (meter.readings_.size() < 2) {
    return reader.ErrorHere("fewer than two readings");
  }
  return meter;
}

absl::StatusOr<WallMeter> WallMeter::Read(const std::string& path) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string csv, ReadRegularFile(path));
  return Parse(csv, path);
}

absl::StatusOr<double> WallMeter::Joules(int64_t from_unix_ns,
                                         int64_t to_unix_ns) const {
  const double from = static_cast<double>(from_unix_ns) * 1e-9;
  const double to = static_cast<double>(to_unix_ns) * 1e-9;
  if (from < readings_.front().unix_s || to > readings_.back().unix_s) {
    return absl::NotFoundError(absl::StrCat(
        name_, " does not reach from ", TimeText(from_unix_ns / 1'000'000'000),
        " to ", TimeText(to_unix_ns / 1'000'000'000)));
  }
  double joules = 0;
  for (size_t i = 1; i < readings_.size(); ++i) {
    const Reading& a = readings_[i - 1];
    const Reading& b = readings_[i];
    const double begin = std::max(from, a.unix_s), end = std::min(to, b.unix_s);
    if (end <= begin) continue;
    if (b.unix_s - a.unix_s > kMostGapS) {
      return absl::NotFoundError(absl::StrFormat(
          "%s has no reading for %.0f s after %s, expected one at least every "
          "%.0f s",
          name_, b.unix_s - a.unix_s, TimeText(static_cast<int64_t>(a.unix_s)),
          kMostGapS));
    }
    const auto at = [&](double time) {
      return a.watts +
             (b.watts - a.watts) * (time - a.unix_s) / (b.unix_s - a.unix_s);
    };
    joules += (at(begin) + at(end)) / 2 * (end - begin);
  }
  if (joules <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        name_, " reads 0 W from ", TimeText(from_unix_ns / 1'000'000'000),
        " to ", TimeText(to_unix_ns / 1'000'000'000),
        ", expected the power of a machine that runs; next: check the sensor"));
  }
  return joules;
}

}  // namespace optrail::carbon
