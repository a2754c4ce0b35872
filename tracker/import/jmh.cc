#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "tracker/import/importers.h"
#include "tracker/import/json_fields.h"
#include "tracker/import/text_file.h"

namespace optrail::tracker {
namespace {

using Json = nlohmann::json;

double NsOfJmhUnit(absl::string_view unit) {
  if (unit == "min") return 60e9;
  if (unit == "hr") return 3600e9;
  if (unit == "day") return 24 * 3600e9;
  return NsOfUnit(unit);
}

// How a score is stored: as a time of `ns` times the score, as a rate of
// `per_second` times the score, or, where both are 0, as it is.
struct Unit {
  double ns = 0;
  double per_second = 0;
};

Unit UnitOf(absl::string_view text) {
  if (absl::ConsumePrefix(&text, "ops/")) {
    const double ns = NsOfJmhUnit(text);
    return {0, ns > 0 ? 1e9 / ns : 0};
  }
  return {absl::ConsumeSuffix(&text, "/op") ? NsOfJmhUnit(text) : 0, 0};
}

// "Bench.sort:size=64/avgt/threads:8"
std::string NameOf(const JsonFields& entry, const std::string& benchmark) {
  std::string name = benchmark;
  const char* separator = ":";
  const JsonFields params = entry.Part("params");
  for (const auto& [param, value] : params.json().items()) {
    absl::StrAppend(
        &name, separator, param, "=",
        value.is_string() ? value.get<std::string>() : ShortJson(value));
    separator = ",";
  }
  absl::StrAppend(&name, "/", entry.Text("mode"));
  const int64_t threads = entry.Count("threads").value_or(1);
  if (threads > 1) absl::StrAppend(&name, "/threads:", threads);
  return name;
}

// The scores of the iterations of each fork.
absl::StatusOr<std::vector<std::vector<double>>> Scores(
    const JsonFields& metric, double minimum) {
  const Json* forks = metric.Find("rawData");
  if (forks == nullptr || !forks->is_array() || forks->empty()) {
    return metric.Wrong(
        "rawData",
        forks == nullptr ? "is absent" : absl::StrCat("is ", ShortJson(*forks)),
        "an array for each fork (-Djmh.json.rawData=false leaves it out)");
  }
  std::vector<std::vector<double>> scores;
  size_t count = 0;
  for (size_t i = 0; i < forks->size(); ++i) {
    OPTRAIL_ASSIGN_OR_RETURN(
        std::vector<double> fork,
        metric.NumbersIn((*forks)[i], absl::StrCat("rawData[", i, "]"), minimum,
                         minimum == 0 ? "a finite number of at least 0"
                                      : "a finite number"));
    count += fork.size();
    scores.push_back(std::move(fork));
  }
  if (count == 0) return metric.Wrong("rawData", "is empty", "a score");
  return scores;
}

// Mode "sample" has pairs of a time and its count, for each iteration of each
// fork. An iteration's mean is its score, as in mode "avgt".
absl::StatusOr<std::vector<std::vector<double>>> MeansOfHistograms(
    const JsonFields& metric) {
  constexpr char kField[] = "rawDataHistogram";
  const auto wrong = [&](const Json& json) {
    return metric.Wrong(kField, absl::StrCat("holds ", ShortJson(json)),
                        "pairs of a time and a count, for each iteration of "
                        "each fork");
  };
  std::vector<std::vector<double>> means;
  const Json& forks = *metric.Find(kField);
  if (!forks.is_array() || forks.empty()) return wrong(forks);
  for (const Json& fork : forks) {
    if (!fork.is_array()) return wrong(fork);
    if (fork.empty()) return wrong(fork);
    std::vector<double>& scores = means.emplace_back();
    for (const Json& iteration : fork) {
      if (!iteration.is_array()) return wrong(iteration);
      double sum = 0, count = 0;
      for (const Json& pair : iteration) {
        OPTRAIL_ASSIGN_OR_RETURN(
            const std::vector<double> values,
            metric.NumbersIn(pair, kField, 0, "a finite number of at least 0"));
        if (values.size() != 2) return wrong(pair);
        sum += values[0] * values[1];
        count += values[1];
      }
      if (!(count > 0)) return wrong(iteration);
      scores.push_back(sum / count);
    }
  }
  return means;
}

absl::Status AddPrimary(const JsonFields& metric, const std::string& name,
                        CollectedResults& results) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string unit_text,
                           metric.Name("scoreUnit"));
  const Unit unit = UnitOf(unit_text);
  if (unit.ns == 0 && unit.per_second == 0) {
    return metric.Wrong("scoreUnit", absl::StrCat("is '", unit_text, "'"),
                        "a time such as ns/op or a rate such as ops/ms");
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::vector<double>> forks,
                           metric.Has("rawDataHistogram")
                               ? MeansOfHistograms(metric)
                               : Scores(metric, 0));
  for (size_t i = 0; i < forks.size(); ++i) {
    Collected& one = results.Of(name, static_cast<int64_t>(i));
    for (const double score : forks[i]) {
      if (unit.ns > 0) {
        OPTRAIL_RETURN_IF_ERROR(
            metric.AddTime("rawData", score, unit.ns, 1, one));
      } else {
        one.AddMetric("throughput", "1/s", proto::HIGHER_IS_BETTER,
                      score * unit.per_second);
      }
    }
  }
  return absl::OkStatus();
}

// Adds the readings of profilers and auxiliary counters.
absl::Status AddSecondary(const JsonFields& metric, absl::string_view field,
                          const std::string& name, CollectedResults& results) {
  absl::ConsumePrefix(&field, "\u00b7");  // until JMH 1.35
  const std::string unit = metric.Text("scoreUnit");
  const auto forks = Scores(metric, std::numeric_limits<double>::lowest());
  if (!forks.ok()) {
    results.Of(name).labels.insert(
        absl::StrCat("metric ", field, " has scores that are no numbers"));
    return absl::OkStatus();
  }
  proto::Direction direction = DirectionOfName(unit);
  if (absl::EndsWith(unit, "/op")) direction = proto::LOWER_IS_BETTER;
  if (absl::StartsWith(unit, "ops/")) direction = proto::HIGHER_IS_BETTER;
  for (size_t i = 0; i < forks->size(); ++i) {
    Collected& one = results.Of(name, static_cast<int64_t>(i));
    for (const double score : (*forks)[i]) {
      one.AddMetric(std::string(field), unit, direction, score);
    }
  }
  return absl::OkStatus();
}

absl::Status AddEntry(const Json& json, const std::string& path, size_t index,
                      CollectedResults& results) {
  const JsonFields unnamed(json, EntryName(path, "benchmark", "", index));
  OPTRAIL_ASSIGN_OR_RETURN(const std::string benchmark,
                           unnamed.Name("benchmark"));
  const JsonFields entry(json, EntryName(path, "benchmark", benchmark, index));
  OPTRAIL_RETURN_IF_ERROR(entry.Name("mode").status());
  const std::string name = NameOf(entry, benchmark);
  if (results.Has(name)) return entry.GivenTwice(name);
  OPTRAIL_ASSIGN_OR_RETURN(const JsonFields primary,
                           entry.Object("primaryMetric"));
  OPTRAIL_RETURN_IF_ERROR(AddPrimary(primary, name, results));
  const JsonFields secondary = entry.Part("secondaryMetrics");
  for (const auto& [field, metric] : secondary.json().items()) {
    OPTRAIL_RETURN_IF_ERROR(AddSecondary(
        JsonFields(metric, absl::StrCat(secondary.where(), ": ", field)), field,
        name, results));
  }
  return absl::OkStatus();
}

bool Recognises(absl::string_view content) {
  return LooksLike(content, '[', {"\"benchmark\"", "\"mode\""});
}

absl::Status Read(const ImportedFile& file, CollectedResults& results,
                  proto::Run& run) {
  OPTRAIL_ASSIGN_OR_RETURN(const Json json, ParseJson(file.content, file.path));
  if (!json.is_array()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.path, ": expected an array of benchmarks, as -rf json writes it"));
  }
  for (size_t i = 0; i < json.size(); ++i) {
    OPTRAIL_RETURN_IF_ERROR(AddEntry(json[i], file.path, i, results));
  }
  if (json.empty()) return absl::OkStatus();
  const JsonFields first(json[0], file.path);
  if (const std::string vm = first.Text("vmName"); !vm.empty()) {
    run.mutable_toolchain()->set_compiler(
        absl::StrCat(vm, " ", first.Text("jdkVersion")));
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr Importer kJmh = {"jmh", Recognises, Read};

}  // namespace optrail::tracker
