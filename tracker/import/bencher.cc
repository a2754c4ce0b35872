#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "re2/re2.h"
#include "tracker/import/importers.h"
#include "tracker/import/json_fields.h"

namespace optrail::tracker {
namespace {

// The measures that every project of Bencher has, by slug.
struct Measure {
  const char* slug;
  const char* unit;
  proto::Direction direction;
};

constexpr Measure kMeasures[] = {
    {"throughput", "1/s", proto::HIGHER_IS_BETTER},
    {"build-time", "s", proto::LOWER_IS_BETTER},
    {"file-size", "B", proto::LOWER_IS_BETTER},
    {"instructions", "", proto::LOWER_IS_BETTER},
};

// "Build Time" and "build-time" are the name and the slug of one measure.
std::string Slug(const std::string& measure) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(measure), {{" ", "-"}});
}

absl::Status AddMeasure(const JsonFields& metric, const std::string& name,
                        Collected& one) {
  const std::string slug = Slug(name);
  if (slug == "latency") {
    OPTRAIL_ASSIGN_OR_RETURN(
        const double ns,
        metric.Number("value", 0, "nanoseconds of at least 0"));
    return metric.AddTime("value", ns, 1, 1, one);
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      const double value,
      metric.Number("value", std::numeric_limits<double>::lowest(),
                    "a finite number"));
  for (const Measure& measure : kMeasures) {
    if (slug != measure.slug) continue;
    one.AddMetric(slug, measure.unit, measure.direction, value);
    return absl::OkStatus();
  }
  one.AddMetric(name, value);
  return absl::OkStatus();
}

absl::Status AddBenchmark(const JsonFields& entry, const std::string& name,
                          CollectedResults& results) {
  if (!entry.json().is_object()) {
    return entry.Wrong("the value",
                       absl::StrCat("is ", ShortJson(entry.json())),
                       "an object of measures");
  }
  Collected& one = results.Of(name);
  for (const auto& [measure, metric] : entry.json().items()) {
    const std::string where =
        absl::StrCat(entry.where(), ": measure '", measure, "'");
    if (!metric.is_object()) {
      return JsonFields(metric, where)
          .Wrong("the value", absl::StrCat("is ", ShortJson(metric)),
                 "an object with a value");
    }
    if (one.metrics.count(Slug(measure)) > 0) {
      return JsonFields(metric, where).GivenTwice(Slug(measure));
    }
    OPTRAIL_RETURN_IF_ERROR(
        AddMeasure(JsonFields(metric, where), measure, one));
  }
  return absl::OkStatus();
}

// {"NAME": {"MEASURE": {"value": or one of its bounds.
bool Recognises(absl::string_view content) {
  constexpr char kName[] = R"re("(?:[^"\\]|\\.)+")re";
  static const RE2* const kStart = new RE2(absl::StrCat(
      "\\s*\\{\\s*", kName, "\\s*:\\s*\\{\\s*", kName, "\\s*:\\s*\\{\\s*",
      "\"(?:value|lower_value|upper_value)\"\\s*:(?s:.)*"));
  const absl::string_view head = content.substr(0, 4096);
  return RE2::FullMatch({head.data(), head.size()}, *kStart);
}

absl::Status Read(const ImportedFile& file, CollectedResults& results,
                  proto::Run&) {
  JsonOptions options;
  options.unique_keys = true;
  OPTRAIL_ASSIGN_OR_RETURN(const nlohmann::json json,
                           ParseJson(file.content, file.path, options));
  if (!json.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path,
                     ": expected an object of benchmarks, as Bencher's metric "
                     "format has it"));
  }
  for (const auto& [name, measures] : json.items()) {
    const JsonFields entry(measures,
                           EntryName(file.path, "benchmark", name, 0));
    if (name.empty()) return entry.Wrong("its name", "is empty", "a text");
    OPTRAIL_RETURN_IF_ERROR(AddBenchmark(entry, name, results));
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr Importer kBencher = {"bencher", Recognises, Read};

}  // namespace optrail::tracker
