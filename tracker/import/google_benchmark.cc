#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "nlohmann/json.hpp"
#include "tracker/import/importers.h"
#include "tracker/import/json_fields.h"
#include "tracker/import/suite_name.h"
#include "tracker/import/text_file.h"

namespace optrail::tracker {
namespace {

using Json = nlohmann::json;

// Fields of a benchmark that are no counters.
bool IsCounter(const std::string& field) {
  static const auto* const kFields =
      new std::set<std::string>{"name",
                                "family_index",
                                "per_family_instance_index",
                                "run_name",
                                "run_type",
                                "repetitions",
                                "repetition_index",
                                "threads",
                                "aggregate_name",
                                "aggregate_unit",
                                "iterations",
                                "real_time",
                                "cpu_time",
                                "time_unit",
                                "error_occurred",
                                "error_message",
                                "skipped",
                                "skip_message",
                                "label",
                                "big_o",
                                "real_coefficient",
                                "cpu_coefficient",
                                "rms"};
  return kFields->count(field) == 0;
}

// One entry of "benchmarks".
class Entry : public JsonFields {
 public:
  using JsonFields::JsonFields;

  std::string Name() const {
    std::string name = Text("run_name");
    return name.empty() ? Text("name") : name;
  }

  absl::StatusOr<double> TimeNs(const char* field) const {
    OPTRAIL_ASSIGN_OR_RETURN(const double value,
                             Number(field, 0, "a finite time of at least 0"));
    const std::string unit = Text("time_unit");
    const double ns = unit.empty() ? 1 : NsOfUnit(unit);
    if (ns > 0 && !FitsStoredTime(value * ns, 1)) {
      return Wrong(field, absl::StrCat("is ", value, " ", unit),
                   "less than 280 years");
    }
    if (ns > 0) return value * ns;
    return Wrong("time_unit", absl::StrCat("is '", unit, "'"),
                 "ns, us, ms or s");
  }
};

// "" for a plain repetition.
std::string AggregateName(const Entry& entry) {
  const std::string type = entry.Text("run_type");
  if (type == "iteration") return "";
  if (type == "aggregate") {
    const std::string name = entry.Text("aggregate_name");
    return name.empty() ? "unknown" : name;
  }
  // Before 1.5 only the name tells.
  const std::string name = entry.Text("name");
  for (const absl::string_view suffix :
       {"mean", "median", "stddev", "cv", "BigO", "RMS"}) {
    if (absl::EndsWith(name, absl::StrCat("_", suffix))) {
      return std::string(suffix);
    }
  }
  return "";
}

std::string BenchmarkName(const Entry& entry, absl::string_view aggregate) {
  std::string name = entry.Name();
  if (!aggregate.empty() && entry.Text("run_name").empty()) {
    absl::string_view stripped = name;
    absl::ConsumeSuffix(&stripped, absl::StrCat("_", aggregate));
    return std::string(stripped);
  }
  return name;
}

void AddCounters(const Entry& entry, Collected& collected) {
  for (const auto& [field, value] : entry.json().items()) {
    if (!IsCounter(field)) continue;
    if (value.is_number() && std::isfinite(value.get<double>())) {
      collected.AddMetric(field, value.get<double>());
    } else if (value.is_number() || value.is_string()) {
      collected.labels.insert(
          absl::StrCat("counter ", field, " was ", ShortJson(value)));
    }
  }
}

absl::Status AddRepetition(const Entry& entry, Collected& collected) {
  OPTRAIL_ASSIGN_OR_RETURN(const double time_ns, entry.TimeNs("real_time"));
  OPTRAIL_ASSIGN_OR_RETURN(
      const double iterations,
      entry.Number("iterations", 1, "a count of at least 1"));
  if (!FitsStoredTime(time_ns, iterations)) {
    return entry.Wrong("iterations",
                       absl::StrCat("is ", iterations, " of ", time_ns, " ns"),
                       "less than 280 years altogether");
  }
  if (collected.times_ns.empty()) {
    collected.calls_per_sample = static_cast<int64_t>(iterations);
  }
  collected.times_ns.push_back(time_ns);
  if (entry.Has("cpu_time")) {
    OPTRAIL_ASSIGN_OR_RETURN(const double cpu_ns, entry.TimeNs("cpu_time"));
    collected.AddMetric("cpu_time", "ns", proto::LOWER_IS_BETTER, cpu_ns);
  }
  AddCounters(entry, collected);
  return absl::OkStatus();
}

absl::Status AddAggregate(const Entry& entry, absl::string_view aggregate,
                          Collected& collected) {
  // The median is what a process' own samples would give.
  if (aggregate != "median" && aggregate != "mean") return absl::OkStatus();
  if (aggregate == "mean" && collected.aggregate_ns.has_value()) {
    return absl::OkStatus();
  }
  OPTRAIL_ASSIGN_OR_RETURN(collected.aggregate_ns, entry.TimeNs("real_time"));
  collected.aggregate = std::string(aggregate);
  return absl::OkStatus();
}

absl::Status AddEntry(const Entry& entry, Collected& collected) {
  if (entry.Flag("error_occurred")) {
    collected.outcome = proto::CRASHED;
    collected.detail = entry.Text("error_message");
    return absl::OkStatus();
  }
  if (entry.Flag("skipped")) {
    collected.outcome = proto::UNSUPPORTED;
    collected.detail = entry.Text("skip_message");
    return absl::OkStatus();
  }
  const std::string label = entry.Text("label");
  if (!label.empty()) collected.labels.insert(label);
  const std::string aggregate = AggregateName(entry);
  return aggregate.empty() ? AddRepetition(entry, collected)
                           : AddAggregate(entry, aggregate, collected);
}

std::string SizeText(int64_t bytes) {
  if (bytes % (1 << 20) == 0) return absl::StrCat(bytes >> 20, "m");
  return absl::StrCat(bytes >> 10, "k");
}

void ReadHardware(const JsonFields& context, proto::Hardware* hardware) {
  int64_t largest_cache = 0;
  if (const auto cpus = context.Count("num_cpus");
      cpus.has_value() && *cpus > 0 && *cpus < 1 << 20) {
    hardware->set_cores(static_cast<int32_t>(*cpus));
  }
  const Json* caches = context.Find("caches");
  if (caches != nullptr && caches->is_array()) {
    for (const Json& json : *caches) {
      const JsonFields cache(json, "");
      const auto bytes = cache.Count("size");
      const auto level = cache.Count("level");
      if (!bytes.has_value() || !level.has_value()) continue;
      const bool instructions = cache.Text("type") == "Instruction";
      if (level == 1 && !instructions) hardware->set_l1d_bytes(*bytes);
      if (level == 2) hardware->set_l2_bytes(*bytes);
      if (level == 3) hardware->set_l3_bytes(*bytes);
      largest_cache = std::max(largest_cache, *bytes);
    }
  }
  std::string made = "imported";
  if (hardware->has_cores())
    absl::StrAppend(&made, "-", hardware->cores(), "c");
  if (largest_cache > 0) absl::StrAppend(&made, "-", SizeText(largest_cache));
  hardware->set_id(made);
}

absl::Status AddBenchmark(const Json& json, const std::string& path,
                          size_t index, CollectedResults& collected) {
  if (!json.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(EntryName(path, "benchmark", "", index), " is ",
                     ShortJson(json), ", expected an object"));
  }
  const std::string given = JsonFields(json, path).Text("name");
  const Entry entry(json, EntryName(path, "benchmark", given, index));
  const std::string name = BenchmarkName(entry, AggregateName(entry));
  if (name.empty()) return entry.Wrong("name", "is absent", "a text");
  return AddEntry(entry, collected.Of(name));
}

bool Recognises(absl::string_view content) {
  return LooksLike(content, '{', {"\"benchmarks\""}) ||
         LooksLike(content, '{', {"\"context\""});
}

absl::Status Read(const ImportedFile& file, CollectedResults& results,
                  proto::Run& run) {
  JsonOptions json_options;
  json_options.quote_non_finite = true;  // as it writes them
  OPTRAIL_ASSIGN_OR_RETURN(const Json json,
                           ParseJson(file.content, file.path, json_options));
  const JsonFields top(json, file.path);
  OPTRAIL_ASSIGN_OR_RETURN(
      const Json* benchmarks,
      top.Results("benchmarks", "--benchmark_format=json"));
  const Json nothing = Json::object();
  const JsonFields context(top.Has("context") ? *top.Find("context") : nothing,
                           file.path);
  run.set_suite(StableSuiteName(context.Text("executable")));
  OPTRAIL_RETURN_IF_ERROR(context.ReadStart("date", run));
  ReadHardware(context, run.mutable_hardware());
  run.mutable_toolchain()->set_compilation_mode(
      context.Text("library_build_type"));
  if (const Json* load = context.Find("load_avg");
      load != nullptr && load->is_array() && !load->empty() &&
      load->front().is_number()) {
    results.conditions.set_load_average(load->front().get<double>());
  }
  for (size_t i = 0; i < benchmarks->size(); ++i) {
    OPTRAIL_RETURN_IF_ERROR(
        AddBenchmark((*benchmarks)[i], file.path, i, results));
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr Importer kGoogleBenchmark = {"google_benchmark", Recognises,
                                              Read};

}  // namespace optrail::tracker
