#include "carbon/jobs_csv.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/csv_reader.h"
#include "carbon/energy_of.h"
#include "carbon/grid.h"

namespace optrail::carbon {
namespace {

constexpr char kHeader[] = "id,watts,hours,release,deadline,preemptible";
constexpr double kMostHours = 24 * 366 * 10;
constexpr size_t kMostJobs = 1'000'000;

struct Job {
  PlanJob job;
  StatedJob stated;
  int64_t line = 0;
};

// Power and duration of a session or run.
absl::StatusOr<Energy> FromHistory(const std::string& id,
                                   const tracker::History& history,
                                   const PowerModel& model) {
  const auto session = history.ReadSession(id);
  if (session.ok()) return EnergyOfSession(*session, model);
  const auto run = history.ReadRun(id);
  if (run.ok()) return EnergyOfRun(*run, model);
  return absl::NotFoundError(absl::StrCat(
      "session is \"", id, "\", expected a session or run of ", history.dir()));
}

absl::StatusOr<double> Number(const CsvReader& reader, absl::string_view what,
                              absl::string_view text, double most) {
  double value = 0;
  if (absl::SimpleAtod(text, &value) && std::isfinite(value) && value >= 0 &&
      value <= most) {
    return value;
  }
  return reader.ErrorHere(absl::StrCat(what, " is ", QuoteCsvField(text),
                                       ", expected a number from 0 to ", most));
}

absl::StatusOr<Job> ParseJob(const CsvReader& reader,
                             const std::vector<absl::string_view>& fields,
                             const tracker::History& history,
                             const PowerModel& model, JobsFile* file) {
  Job job;
  job.line = reader.line();
  job.job.id = std::string(fields[0]);
  if (job.job.id.empty()) return reader.ErrorHere("id is empty");
  Energy known;
  if (fields.size() > 6 && !fields[6].empty()) {
    const absl::StatusOr<Energy> found =
        FromHistory(std::string(fields[6]), history, model);
    if (!found.ok()) return reader.ErrorHere(found.status().message());
    known = *found;
  }
  const bool asks = fields[1].empty() || fields[2].empty();
  if (asks && (known.seconds <= 0 || (fields[1].empty() && !known.known))) {
    return reader.ErrorHere(
        "watts or hours is empty, expected both, or a session whose energy is "
        "known");
  }
  file->from_history += asks;
  if (asks) job.stated.session = std::string(fields[6]);
  job.stated.estimated = fields[1].empty() && known.estimated;
  file->of_device_watts |= fields[1].empty() && known.of_device_watts;
  if (fields[1].empty()) {
    job.job.watts = known.joules / known.seconds;
  } else {
    OPTRAIL_ASSIGN_OR_RETURN(job.job.watts,
                             Number(reader, "watts", fields[1], 1e9));
  }
  if (fields[2].empty()) {
    job.stated.hours = known.seconds / kHourS;
  } else {
    OPTRAIL_ASSIGN_OR_RETURN(job.stated.hours,
                             Number(reader, "hours", fields[2], kMostHours));
    if (job.stated.hours == 0) {
      return reader.ErrorHere("hours is 0, expected a duration above 0");
    }
  }
  for (const int i : {3, 4}) {
    const absl::StatusOr<int64_t> time = ParseTime(fields[i]);
    if (!time.ok()) return reader.ErrorHere(time.status().message());
    (i == 3 ? job.stated.release_unix_s : job.stated.deadline_unix_s) = *time;
  }
  if (fields[5] != "yes" && fields[5] != "no") {
    return reader.ErrorHere(absl::StrCat(
        "preemptible is ", QuoteCsvField(fields[5]), ", expected yes or no"));
  }
  job.job.preemptible = fields[5] == "yes";
  return job;
}

// The first hour that begins at `unix_s` or later, and the last that ends by
// then, as numbers of hours since the phase.
int64_t CeilHour(int64_t unix_s, int64_t phase_s) {
  return (unix_s - phase_s + kHourS - 1) / kHourS;
}
int64_t FloorHour(int64_t unix_s, int64_t phase_s) {
  return (unix_s - phase_s) / kHourS;
}

std::string TooShort(const Job& job, int64_t there, int64_t needed,
                     int64_t phase_s) {
  if (job.stated.deadline_unix_s <= job.stated.release_unix_s) {
    return absl::StrCat("job \"", job.job.id, "\": deadline is ",
                        TimeText(job.stated.deadline_unix_s),
                        ", expected it after the release, ",
                        TimeText(job.stated.release_unix_s));
  }
  return absl::StrCat("job \"", job.job.id, "\" has ", there, " whole ",
                      there == 1 ? "hour" : "hours",
                      " between release and deadline, expected at least ",
                      needed, "; hours begin at minute ", phase_s / 60,
                      " (UTC), as those of the intensity do");
}

}  // namespace

absl::StatusOr<JobsFile> ParseJobs(absl::string_view csv,
                                   const std::string& name,
                                   const tracker::History& history,
                                   const PowerModel& model,
                                   int64_t hour_phase_s) {
  CsvReader reader(csv, name);
  std::vector<absl::string_view> fields;
  OPTRAIL_ASSIGN_OR_RETURN(const bool has_header, reader.Next(fields));
  const std::string header = absl::StrJoin(fields, ",");
  if (!has_header ||
      (header != kHeader && header != absl::StrCat(kHeader, ",session"))) {
    return reader.ErrorHere(absl::StrCat("expected the line \"", kHeader,
                                         "\" first, or with \",session\""));
  }
  const size_t columns = fields.size();
  JobsFile file;
  std::vector<Job> jobs;
  absl::flat_hash_map<std::string, int64_t> lines;  // by id
  int64_t first_hour = std::numeric_limits<int64_t>::max(), last_hour = 0;
  while (true) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool more, reader.Next(fields));
    if (!more) break;
    if (fields.size() != columns || jobs.size() == kMostJobs) {
      return reader.ErrorHere(absl::StrCat(fields.size(), " fields, expected ",
                                           columns, ", and at most ", kMostJobs,
                                           " jobs"));
    }
    OPTRAIL_ASSIGN_OR_RETURN(Job job,
                             ParseJob(reader, fields, history, model, &file));
    const auto [known, is_new] = lines.emplace(job.job.id, job.line);
    if (!is_new) {
      return reader.ErrorHere(
          absl::StrCat("id is ", QuoteCsvField(job.job.id), ", the id of line ",
                       known->second, ", expected one that no other job has"));
    }
    const int64_t release = CeilHour(job.stated.release_unix_s, hour_phase_s);
    const int64_t deadline =
        FloorHour(job.stated.deadline_unix_s, hour_phase_s);
    const auto hours =
        std::max<int64_t>(1, static_cast<int64_t>(std::ceil(job.stated.hours)));
    if (deadline - release < hours) {
      return reader.ErrorHere(TooShort(
          job, std::max<int64_t>(deadline - release, 0), hours, hour_phase_s));
    }
    job.stated.watts = job.job.watts;
    job.job.watts *= job.stated.hours / static_cast<double>(hours);
    job.job.hours = static_cast<int>(hours);
    first_hour = std::min(first_hour, release);
    last_hour = std::max(last_hour, deadline);
    jobs.push_back(std::move(job));
  }
  if (jobs.empty()) return reader.ErrorHere("there are no jobs");
  if (last_hour - first_hour > static_cast<int64_t>(kMostHours)) {
    return reader.ErrorHere("jobs are more than ten years apart");
  }
  file.start_unix_s = first_hour * kHourS + hour_phase_s;
  file.hours = static_cast<int>(last_hour - first_hour);
  for (Job& job : jobs) {
    job.job.release = static_cast<int>(
        CeilHour(job.stated.release_unix_s, hour_phase_s) - first_hour);
    job.job.deadline = static_cast<int>(
        FloorHour(job.stated.deadline_unix_s, hour_phase_s) - first_hour);
    file.jobs.push_back(std::move(job.job));
    file.stated.push_back(std::move(job.stated));
  }
  return file;
}

absl::StatusOr<JobsFile> ReadJobs(const std::string& path,
                                  const tracker::History& history,
                                  const PowerModel& model,
                                  int64_t hour_phase_s) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string csv, ReadRegularFile(path));
  return ParseJobs(csv, path, history, model, hour_phase_s);
}

}  // namespace optrail::carbon
