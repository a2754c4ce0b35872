#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "tracker/import/importers.h"
#include "tracker/import/json_fields.h"
#include "tracker/import/text_file.h"

namespace optrail::tracker {
namespace {

using Json = nlohmann::json;

// FullName has namespace, type, method and parameters; before 0.11 they stand
// by themselves.
std::string FullName(const JsonFields& entry) {
  const std::string full = entry.Text("FullName");
  if (!full.empty() || entry.Text("Method").empty()) return full;
  std::string name = entry.Text("Namespace");
  for (const char* part : {"Type", "Method"}) {
    absl::StrAppend(&name, name.empty() ? "" : ".", entry.Text(part));
  }
  const std::string parameters = entry.Text("Parameters");
  return parameters.empty() ? name : absl::StrCat(name, "(", parameters, ")");
}

// "Job-ABCDEF(Runtime=.NET 9.0)" of "Type.Method: Job-... [Size=64]".
std::string JobOf(const JsonFields& entry) {
  const std::string text = entry.Text("DisplayInfo");
  const size_t colon = text.find(": ");
  if (colon == std::string::npos) return text;
  const std::string job = text.substr(colon + 2);
  return job.substr(0, job.find(" ["));
}

// What each launch, a process of its own, measured; the overhead is subtracted
// and outliers are removed already. Absent from a brief report.
absl::Status AddMeasurements(const JsonFields& entry, const std::string& name,
                             CollectedResults& results) {
  const Json* measurements = entry.Find("Measurements");
  if (measurements == nullptr || measurements->is_null()) {
    return absl::OkStatus();
  }
  OPTRAIL_RETURN_IF_ERROR(
      entry.Results("Measurements", "the exporter").status());
  for (size_t i = 0; i < measurements->size(); ++i) {
    const JsonFields measurement(
        (*measurements)[i],
        absl::StrCat(entry.where(), ": Measurements[", i, "]"));
    if (measurement.Text("IterationStage") != "Result" &&
        measurement.Text("IterationMode") != "Result") {
      continue;
    }
    const auto launch = measurement.Count("LaunchIndex");
    if (!launch.has_value()) {
      return measurement.Wrong("LaunchIndex", "is no count", "0, 1, 2, ...");
    }
    OPTRAIL_ASSIGN_OR_RETURN(
        const double operations,
        measurement.Number("Operations", 1, "a count of at least 1"));
    OPTRAIL_ASSIGN_OR_RETURN(
        const double ns,
        measurement.Number("Nanoseconds", 0, "a finite time of at least 0"));
    Collected& one = results.Of(name, *launch);
    OPTRAIL_RETURN_IF_ERROR(measurement.AddTime("Nanoseconds", ns / operations,
                                                1, operations, one));
    one.calls_per_sample = static_cast<int64_t>(operations);
  }
  return absl::OkStatus();
}

// A brief report does not say which launch a value is of: they count as one
// process. Old reports have the median alone.
absl::Status AddStatistics(const JsonFields& statistics, Collected& collected) {
  constexpr char kExpected[] = "a finite time of at least 0";
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<double> values,
                           statistics.Numbers("OriginalValues", 0, kExpected));
  for (const double value : values) {
    OPTRAIL_RETURN_IF_ERROR(
        statistics.AddTime("OriginalValues", value, 1, 1, collected));
  }
  if (!values.empty()) return absl::OkStatus();
  OPTRAIL_ASSIGN_OR_RETURN(const double median,
                           statistics.Number("Median", 0, kExpected));
  return statistics.SetAggregate("Median", median, 1, collected);
}

void AddMetrics(const JsonFields& entry, Collected& collected) {
  constexpr char kAllocated[] = "Allocated Memory";
  if (const auto bytes =
          entry.Part("Memory").Count("BytesAllocatedPerOperation")) {
    collected.AddMetric(kAllocated, "B", proto::LOWER_IS_BETTER,
                        static_cast<double>(*bytes));
  }
  const Json* metrics = entry.Find("Metrics");
  if (metrics == nullptr || !metrics->is_array()) return;
  for (const Json& json : *metrics) {
    const JsonFields metric(json, entry.where());
    const JsonFields descriptor = metric.Part("Descriptor");
    const std::string id = descriptor.Text("Id");
    const auto value = metric.Number("Value", -1e300, "a number");
    if (id.empty() || !value.ok() || collected.metrics.count(id) > 0) continue;
    collected.AddMetric(id, descriptor.Text("Unit"),
                        descriptor.Flag("TheGreaterTheBetter")
                            ? proto::HIGHER_IS_BETTER
                            : proto::LOWER_IS_BETTER,
                        *value);
  }
}

absl::Status AddEntry(const JsonFields& entry, const std::string& name,
                      CollectedResults& results) {
  if (results.Has(name)) return entry.GivenTwice(name);
  const Json* statistics = entry.Find("Statistics");
  if (statistics == nullptr || statistics->is_null()) {
    Collected& failed = results.Of(name);
    failed.outcome = proto::CRASHED;
    failed.detail = "it has no statistics: the benchmark failed";
    return absl::OkStatus();
  }
  OPTRAIL_ASSIGN_OR_RETURN(const JsonFields fields, entry.Object("Statistics"));
  OPTRAIL_RETURN_IF_ERROR(AddMeasurements(entry, name, results));
  if (!results.Has(name)) {
    OPTRAIL_RETURN_IF_ERROR(AddStatistics(fields, results.Of(name)));
  }
  AddMetrics(entry, results.First(name));
  return absl::OkStatus();
}

void ReadHost(const JsonFields& host, proto::Run& run) {
  // A text since 0.10, an object before.
  std::string processor = host.Text("ProcessorName");
  if (processor.empty()) processor = host.Part("ProcessorName").Text("Value");
  SetMachine(processor, host.Count("LogicalCoreCount"), run);
  proto::Toolchain& toolchain = *run.mutable_toolchain();
  toolchain.set_compiler(host.Text("RuntimeVersion"));
  toolchain.set_compilation_mode(host.Text("Configuration"));
  toolchain.set_os(host.Text("OsVersion"));
}

bool Recognises(absl::string_view content) {
  return LooksLike(content, '{', {"\"HostEnvironmentInfo\""});
}

absl::Status Read(const ImportedFile& file, CollectedResults& results,
                  proto::Run& run) {
  OPTRAIL_ASSIGN_OR_RETURN(const Json json, ParseJson(file.content, file.path));
  const JsonFields top(json, file.path);
  OPTRAIL_ASSIGN_OR_RETURN(const Json* benchmarks,
                           top.Results("Benchmarks", "--exporters json"));
  std::map<std::string, int> entries;
  for (const Json& benchmark : *benchmarks) {
    ++entries[FullName(JsonFields(benchmark, file.path))];
  }
  for (size_t i = 0; i < benchmarks->size(); ++i) {
    const Json& benchmark = (*benchmarks)[i];
    std::string name = FullName(JsonFields(benchmark, file.path));
    const JsonFields entry(benchmark,
                           EntryName(file.path, "benchmark", name, i));
    if (name.empty()) return entry.Wrong("FullName", "is absent", "a text");
    // One benchmark in several jobs, such as runtimes.
    if (entries[name] > 1) absl::StrAppend(&name, " [", JobOf(entry), "]");
    OPTRAIL_RETURN_IF_ERROR(AddEntry(entry, name, results));
  }
  ReadHost(top.Part("HostEnvironmentInfo"), run);
  return absl::OkStatus();
}

}  // namespace

extern constexpr Importer kBenchmarkDotNet = {"benchmark_dot_net", Recognises,
                                              Read};

}  // namespace optrail::tracker
