#include "tracker/import/import_google_benchmark.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/statistics.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

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

// Google Benchmark writes NaN, Infinity and -Infinity as they are, which is no
// JSON. As strings they can be reported with benchmark and field.
std::string QuoteNonFinite(absl::string_view text) {
  std::string quoted;
  quoted.reserve(text.size());
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\' && i + 1 < text.size()) {
      quoted.append(text.data() + i, 2);
      ++i;
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    size_t length = 0;
    if (!in_string) {
      for (const absl::string_view word :
           {"-NaN", "NaN", "-Infinity", "Infinity"}) {
        if (absl::StartsWith(text.substr(i), word)) {
          length = word.size();
          break;
        }
      }
    }
    if (length == 0) {
      quoted.push_back(text[i]);
    } else {
      absl::StrAppend(&quoted, "\"", text.substr(i, length), "\"");
      i += length - 1;
    }
  }
  return quoted;
}

// "12:34" of a byte.
std::string LineAndColumn(absl::string_view text, size_t byte) {
  byte = std::min(byte, text.size());
  const absl::string_view before = text.substr(0, byte == 0 ? 0 : byte - 1);
  const size_t newline = before.rfind('\n');
  const size_t column = newline == absl::string_view::npos
                            ? before.size() + 1
                            : before.size() - newline;
  return absl::StrCat(1 + std::count(before.begin(), before.end(), '\n'), ":",
                      column);
}

absl::StatusOr<Json> ParseJson(const ImportedFile& file) {
  const std::string text = QuoteNonFinite(file.content);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    const bool cut_off = error.byte >= text.size();
    return absl::InvalidArgumentError(absl::StrCat(
        file.path, ":", LineAndColumn(text, error.byte), ": no valid JSON",
        cut_off ? "; the file ends early: was the benchmark interrupted?"
                : absl::StrCat(": ", error.what())));
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path, ": no valid JSON: ", error.what()));
  }
}

std::string Shown(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// One entry of "benchmarks", with what names it in messages.
class Entry {
 public:
  Entry(const Json& json, std::string path, size_t index)
      : json_(json), path_(std::move(path)), index_(index) {}

  const Json& json() const { return json_; }

  std::string Name() const {
    std::string name = Text("run_name");
    return name.empty() ? Text("name") : name;
  }

  // An optional text, "" if absent or no text.
  std::string Text(const char* field) const {
    const auto found = json_.find(field);
    return found != json_.end() && found->is_string()
               ? found->get<std::string>()
               : std::string();
  }

  bool Flag(const char* field) const {
    const auto found = json_.find(field);
    return found != json_.end() && found->is_boolean() && found->get<bool>();
  }

  absl::Status Wrong(absl::string_view field, absl::string_view found,
                     absl::string_view expected) const {
    const std::string name = Text("name");
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": benchmark ",
                     name.empty() ? absl::StrCat("number ", index_ + 1)
                                  : absl::StrCat("'", name, "'"),
                     ": ", field, " ", found, ", expected ", expected));
  }

  // A finite number of at least `minimum`.
  absl::StatusOr<double> Number(const char* field, double minimum,
                                absl::string_view expected) const {
    const auto found = json_.find(field);
    if (found == json_.end()) return Wrong(field, "is absent", expected);
    if (!found->is_number()) {
      return Wrong(field, absl::StrCat("is ", Shown(*found)), expected);
    }
    const double value = found->get<double>();
    if (!std::isfinite(value) || value < minimum) {
      return Wrong(field, absl::StrCat("is ", Shown(*found)), expected);
    }
    return value;
  }

  absl::StatusOr<double> TimeNs(const char* field) const {
    OPTRAIL_ASSIGN_OR_RETURN(const double value,
                             Number(field, 0, "a finite time of at least 0"));
    const std::string unit = Text("time_unit");
    if (unit.empty() || unit == "ns") return value;
    if (unit == "us") return value * 1e3;
    if (unit == "ms") return value * 1e6;
    if (unit == "s") return value * 1e9;
    return Wrong("time_unit", absl::StrCat("is '", unit, "'"),
                 "ns, us, ms or s");
  }

 private:
  const Json& json_;
  const std::string path_;
  const size_t index_;
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

proto::Direction DirectionOf(absl::string_view counter) {
  for (const absl::string_view rate : {"per_second", "/s", "FLOPS", "flops"}) {
    if (absl::EndsWith(counter, rate)) return proto::HIGHER_IS_BETTER;
  }
  // A counter may count anything; a rule of the policy says which way is good.
  return proto::DIRECTION_UNSPECIFIED;
}

std::string UnitOf(absl::string_view counter) {
  if (counter == "bytes_per_second") return "B/s";
  return absl::EndsWith(counter, "per_second") ? "1/s" : "";
}

// What a file says of one benchmark, while it is read.
struct Collected {
  proto::BenchmarkResult result;
  std::vector<double> times_ns;  // one per repetition
  int64_t calls_per_sample = 0;
  std::map<std::string, proto::MetricSamples> metrics;
  absl::optional<double> aggregate_ns;
  std::string aggregate;
  std::set<std::string> dropped_counters;
};

void AddMetric(const std::string& name, const std::string& unit,
               proto::Direction direction, double value, Collected& collected) {
  proto::MetricSamples& samples = collected.metrics[name];
  samples.set_metric(name);
  samples.set_unit(unit);
  samples.set_direction(direction);
  samples.add_values(value);
}

void AddCounters(const Entry& entry, Collected& collected) {
  for (const auto& [field, value] : entry.json().items()) {
    if (!IsCounter(field)) continue;
    if (value.is_number() && std::isfinite(value.get<double>())) {
      AddMetric(field, UnitOf(field), DirectionOf(field), value.get<double>(),
                collected);
    } else if (value.is_number() || value.is_string()) {
      collected.dropped_counters.insert(
          absl::StrCat("counter ", field, " was ", Shown(value)));
    }
  }
}

absl::Status AddRepetition(const Entry& entry, Collected& collected) {
  OPTRAIL_ASSIGN_OR_RETURN(const double time_ns, entry.TimeNs("real_time"));
  OPTRAIL_ASSIGN_OR_RETURN(
      const double iterations,
      entry.Number("iterations", 1, "a count of at least 1"));
  constexpr double kMostNs = 9e18;
  if (time_ns * iterations > kMostNs || iterations > kMostNs) {
    return entry.Wrong("iterations",
                       absl::StrCat("is ", iterations, " of ", time_ns, " ns"),
                       "less than 280 years altogether");
  }
  if (collected.calls_per_sample == 0) {
    collected.calls_per_sample = static_cast<int64_t>(iterations);
  }
  collected.times_ns.push_back(time_ns);
  if (entry.json().contains("cpu_time")) {
    OPTRAIL_ASSIGN_OR_RETURN(const double cpu_ns, entry.TimeNs("cpu_time"));
    AddMetric("cpu_time", "ns", proto::LOWER_IS_BETTER, cpu_ns, collected);
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
    collected.result.set_outcome(proto::CRASHED);
    collected.result.set_detail(entry.Text("error_message"));
    return absl::OkStatus();
  }
  if (entry.Flag("skipped")) {
    collected.result.set_outcome(proto::UNSUPPORTED);
    collected.result.set_detail(entry.Text("skip_message"));
    return absl::OkStatus();
  }
  const std::string label = entry.Text("label");
  if (!label.empty() && collected.result.labels().empty()) {
    collected.result.add_labels(label);
  }
  const std::string aggregate = AggregateName(entry);
  return aggregate.empty() ? AddRepetition(entry, collected)
                           : AddAggregate(entry, aggregate, collected);
}

proto::BenchmarkResult Finish(Collected& collected,
                              const proto::Conditions& conditions) {
  proto::BenchmarkResult& result = collected.result;
  if (result.outcome() == proto::OUTCOME_UNSPECIFIED) {
    result.set_outcome(proto::OK);
  }
  if (result.outcome() != proto::OK) return std::move(result);
  if (collected.times_ns.empty() && !collected.aggregate_ns.has_value()) {
    return std::move(result);
  }
  proto::Measurement* measurement = result.add_measurements();
  *measurement->mutable_conditions() = conditions;
  if (collected.times_ns.empty()) {
    measurement->set_aggregate_only(true);
    measurement->set_median_ns(*collected.aggregate_ns);
    result.add_labels(absl::StrCat("aggregate: ", collected.aggregate));
    return std::move(result);
  }
  measurement->set_calls_per_sample(collected.calls_per_sample);
  for (const double time_ns : collected.times_ns) {
    measurement->add_sample_ns(std::llround(
        time_ns * static_cast<double>(collected.calls_per_sample)));
  }
  measurement->set_median_ns(Median(collected.times_ns));
  measurement->set_clean_sample_count(
      static_cast<int>(collected.times_ns.size()));
  for (auto& [name, samples] : collected.metrics) {
    *measurement->add_metrics() = std::move(samples);
  }
  for (const std::string& dropped : collected.dropped_counters) {
    result.add_labels(dropped);
  }
  return std::move(result);
}

std::string SizeText(int64_t bytes) {
  if (bytes % (1 << 20) == 0) return absl::StrCat(bytes >> 20, "m");
  return absl::StrCat(bytes >> 10, "k");
}

void ReadHardware(const Json& context, const std::string& id,
                  proto::Hardware* hardware) {
  hardware->set_device_kind(proto::CPU);
  int64_t largest_cache = 0;
  if (const auto cpus = context.find("num_cpus");
      cpus != context.end() && cpus->is_number_integer()) {
    hardware->set_cores(cpus->get<int32_t>());
  }
  const auto caches = context.find("caches");
  if (caches != context.end() && caches->is_array()) {
    for (const Json& cache : *caches) {
      if (!cache.is_object() || !cache.contains("size") ||
          !cache["size"].is_number_integer() || !cache.contains("level") ||
          !cache["level"].is_number_integer()) {
        continue;
      }
      const int64_t bytes = cache["size"].get<int64_t>();
      const int64_t level = cache["level"].get<int64_t>();
      const bool instructions =
          cache.contains("type") && cache["type"] == "Instruction";
      if (level == 1 && !instructions) hardware->set_l1d_bytes(bytes);
      if (level == 2) hardware->set_l2_bytes(bytes);
      if (level == 3) hardware->set_l3_bytes(bytes);
      largest_cache = std::max(largest_cache, bytes);
    }
  }
  if (!id.empty()) {
    hardware->set_id(id);
  } else {
    std::string made = "imported";
    if (hardware->has_cores())
      absl::StrAppend(&made, "-", hardware->cores(), "c");
    if (largest_cache > 0) absl::StrAppend(&made, "-", SizeText(largest_cache));
    hardware->set_id(made);
  }
}

int64_t ReadDate(const Json& context, int64_t default_unix_ns) {
  const auto date = context.find("date");
  if (date == context.end() || !date->is_string()) return default_unix_ns;
  absl::Time time;
  std::string error;
  for (const char* format : {absl::RFC3339_full, "%Y-%m-%d %H:%M:%S"}) {
    if (absl::ParseTime(format, date->get<std::string>(), &time, &error)) {
      return absl::ToUnixNanos(time);
    }
  }
  return default_unix_ns;
}

class Impl : public Importer {
 public:
  absl::string_view format() const override { return "google_benchmark"; }

  bool Recognises(absl::string_view content) const override {
    const absl::string_view head =
        absl::StripLeadingAsciiWhitespace(content).substr(0, 65536);
    return absl::StartsWith(head, "{") &&
           (absl::StrContains(head, "\"benchmarks\"") ||
            absl::StrContains(head, "\"context\""));
  }

  absl::StatusOr<proto::Run> Parse(
      const ImportedFile& file, const ImportOptions& options) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const Json json, ParseJson(file));
    const auto benchmarks = json.find("benchmarks");
    if (!json.is_object() || benchmarks == json.end() ||
        !benchmarks->is_array()) {
      return absl::InvalidArgumentError(absl::StrCat(
          file.path, ": expected an object with an array 'benchmarks', as ",
          "--benchmark_format=json writes it"));
    }
    const Json context = json.contains("context") && json["context"].is_object()
                             ? json["context"]
                             : Json::object();
    proto::Run run;
    run.set_source(std::string(format()));
    run.set_started_unix_ns(ReadDate(context, options.default_started_unix_ns));
    ReadHardware(context, options.hardware_id, run.mutable_hardware());
    if (const auto mode = context.find("library_build_type");
        mode != context.end() && mode->is_string()) {
      run.mutable_toolchain()->set_compilation_mode(mode->get<std::string>());
    }
    proto::Conditions conditions;
    if (const auto load = context.find("load_avg");
        load != context.end() && load->is_array() && !load->empty() &&
        load->front().is_number()) {
      conditions.set_load_average(load->front().get<double>());
    }

    std::vector<std::string> order;
    std::map<std::string, Collected> collected;
    for (size_t i = 0; i < benchmarks->size(); ++i) {
      const Entry entry((*benchmarks)[i], file.path, i);
      if (!entry.json().is_object()) {
        return absl::InvalidArgumentError(absl::StrCat(
            file.path, ": benchmark number ", i + 1, " is ",
            Shown(entry.json()).substr(0, 40), ", expected an object"));
      }
      const std::string name = BenchmarkName(entry, AggregateName(entry));
      if (name.empty()) return entry.Wrong("name", "is absent", "a text");
      const auto [it, is_new] = collected.emplace(name, Collected());
      if (is_new) {
        it->second.result.mutable_key()->set_operator_name(name);
        order.push_back(name);
      }
      OPTRAIL_RETURN_IF_ERROR(AddEntry(entry, it->second));
    }
    for (const std::string& name : order) {
      *run.add_results() = Finish(collected[name], conditions);
    }
    return run;
  }
};

}  // namespace

const Importer* GoogleBenchmarkImporter() {
  static const Impl* const importer = new Impl;
  return importer;
}

}  // namespace optrail::tracker
