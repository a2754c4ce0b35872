#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "tracker/import/importers.h"
#include "tracker/import/json_fields.h"
#include "tracker/import/text_file.h"

namespace optrail::tracker {
namespace {

using Json = nlohmann::json;

// The columns of a benchmark: null where it lacks one.
class Columns {
 public:
  static absl::StatusOr<Columns> Of(const JsonFields& top) {
    OPTRAIL_ASSIGN_OR_RETURN(const Json* names,
                             top.Results("result_columns", "asv"));
    return Columns(*names);
  }

  const Json* Find(const Json& row, absl::string_view column) const {
    for (size_t i = 0; i < names_.size() && i < row.size(); ++i) {
      if (names_[i].is_string() && names_[i] == std::string(column)) {
        return row[i].is_null() ? nullptr : &row[i];
      }
    }
    return nullptr;
  }

  // The element of a column that belongs to combination `i` of parameters.
  const Json* Find(const Json& row, absl::string_view column, size_t i) const {
    const Json* all = Find(row, column);
    if (all == nullptr || !all->is_array() || i >= all->size()) return nullptr;
    return (*all)[i].is_null() ? nullptr : &(*all)[i];
  }

 private:
  explicit Columns(const Json& names) : names_(names) {}

  const Json& names_;
};

// What the value of a benchmark means follows from its name; the unit stands
// in another file, benchmarks.json.
struct Kind {
  const char* prefix;
  const char* metric;
  const char* unit;
  proto::Direction direction;
};

Kind KindOf(absl::string_view name) {
  constexpr Kind kKinds[] = {
      {"timeraw_", "time", "s", proto::LOWER_IS_BETTER},
      {"time_", "time", "s", proto::LOWER_IS_BETTER},
      {"mem_", "memory", "B", proto::LOWER_IS_BETTER},
      {"peakmem_", "peak_memory", "B", proto::LOWER_IS_BETTER},
  };
  const size_t dot = name.rfind('.');
  const absl::string_view function =
      dot == absl::string_view::npos ? name : name.substr(dot + 1);
  for (const Kind& kind : kKinds) {
    if (absl::StartsWith(function, kind.prefix)) return kind;
  }
  return {"", "value", "", proto::DIRECTION_UNSPECIFIED};
}

// The combinations of parameters in asv's order, the last one fastest; "" alone
// where there are none. InvalidArgument unless there are `count`.
absl::StatusOr<std::vector<std::string>> Combinations(const JsonFields& entry,
                                                      const Json* params,
                                                      size_t count) {
  if (count == 0) return std::vector<std::string>();
  const Json none = Json::array();
  const Json& all = params == nullptr ? none : *params;
  size_t product = 1;
  for (const Json& values : all) {
    if (!values.is_array()) {
      return entry.Wrong("params", absl::StrCat("holds ", ShortJson(values)),
                         "an array of values for each parameter");
    }
    product = std::min(product * values.size(), count + 1);
  }
  if (product != count) {
    return entry.Wrong("result", absl::StrCat("has ", count, " values"),
                       "one for each combination of the parameters");
  }
  std::vector<std::string> texts = {""};
  for (const Json& values : all) {
    std::vector<std::string> longer;
    for (const std::string& before : texts) {
      for (const Json& value : values) {
        longer.push_back(absl::StrCat(
            before, before.empty() ? "(" : ", ",
            value.is_string() ? value.get<std::string>() : ShortJson(value)));
      }
    }
    texts = std::move(longer);
  }
  for (std::string& text : texts) {
    if (!text.empty()) text.push_back(')');
  }
  return texts;
}

absl::Status AddTimes(const JsonFields& entry, const Json* samples,
                      double seconds, Collected& one) {
  constexpr double kNsPerSecond = 1e9;
  std::vector<double> times;
  if (samples != nullptr) {
    OPTRAIL_ASSIGN_OR_RETURN(
        times,
        entry.NumbersIn(*samples, "samples", 0, "a finite time of at least 0"));
  }
  for (const double time : times) {
    OPTRAIL_RETURN_IF_ERROR(
        entry.AddTime("samples", time, kNsPerSecond, 1, one));
  }
  return times.empty()
             ? entry.SetAggregate("median", seconds, kNsPerSecond, one)
             : absl::OkStatus();
}

// One value of "result": a number, null for a failure or NaN for a skip.
absl::Status AddValue(const JsonFields& entry, const Json& value,
                      const Json* samples, const Kind& kind, Collected& one) {
  if (value.is_null()) {
    one.outcome = proto::CRASHED;
    one.detail = "it failed";
    return absl::OkStatus();
  }
  if (value == "NaN") {
    one.outcome = proto::UNSUPPORTED;
    one.detail = "it was skipped";
    return absl::OkStatus();
  }
  const bool is_time = std::string(kind.metric) == "time";
  const double minimum = is_time ? 0 : std::numeric_limits<double>::lowest();
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<double> number,
      entry.NumbersIn(Json::array({value}), "result", minimum,
                      is_time ? "seconds of at least 0, null or NaN"
                              : "a finite number, null or NaN"));
  if (is_time) return AddTimes(entry, samples, number[0], one);
  one.AddMetric(kind.metric, kind.unit, kind.direction, number[0]);
  return absl::OkStatus();
}

absl::Status AddBenchmark(const JsonFields& entry, const std::string& name,
                          const Columns& columns, CollectedResults& results) {
  const Json& row = entry.json();
  if (!row.is_array()) {
    return entry.Wrong("the row", absl::StrCat("is ", ShortJson(row)),
                       "an array of columns");
  }
  const Json* params = columns.Find(row, "params");
  if (params != nullptr && !params->is_array()) {
    return entry.Wrong("params", absl::StrCat("is ", ShortJson(*params)),
                       "an array");
  }
  const Json* values = columns.Find(row, "result");
  if (values == nullptr) {  // nothing worked, such as the set-up
    Collected& one = results.Of(name);
    one.outcome = proto::CRASHED;
    one.detail = "all of it failed";
    return absl::OkStatus();
  }
  if (!values->is_array()) {
    return entry.Wrong("result", absl::StrCat("is ", ShortJson(*values)),
                       "an array");
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> combinations,
                           Combinations(entry, params, values->size()));
  const Kind kind = KindOf(name);
  for (size_t i = 0; i < combinations.size(); ++i) {
    const std::string full = absl::StrCat(name, combinations[i]);
    if (results.Has(full)) return entry.GivenTwice(full);
    OPTRAIL_RETURN_IF_ERROR(AddValue(entry, (*values)[i],
                                     columns.Find(row, "samples", i), kind,
                                     results.Of(full)));
  }
  return absl::OkStatus();
}

// The first start of a benchmark, as "date" is the commit's.
void ReadStart(const Json& rows, const Columns& columns, proto::Run& run) {
  constexpr int64_t kNsPerMs = 1'000'000;
  constexpr int64_t kMostMs = std::numeric_limits<int64_t>::max() / kNsPerMs;
  absl::optional<int64_t> first_ms;
  for (const Json& row : rows) {
    const Json* started = columns.Find(row, "started_at");
    if (started == nullptr || !started->is_number()) continue;
    const double ms = started->get<double>();
    if (!(ms > 0 && ms < static_cast<double>(kMostMs))) continue;
    first_ms = std::min(first_ms.value_or(kMostMs), static_cast<int64_t>(ms));
  }
  if (first_ms.has_value()) run.set_started_unix_ns(*first_ms * kNsPerMs);
}

void ReadMachine(const JsonFields& top, proto::Run& run) {
  const JsonFields params = top.Part("params");
  int64_t cpus = 0;
  SetMachine(params.Text("cpu"),
             absl::SimpleAtoi(params.Text("num_cpu"), &cpus)
                 ? absl::make_optional(cpus)
                 : absl::nullopt,
             run);
  // "virtualenv-py3.11-numpy1.26": other versions begin a new epoch.
  run.mutable_toolchain()->set_compiler(top.Text("env_name"));
  run.mutable_toolchain()->set_os(params.Text("os"));
}

bool Recognises(absl::string_view content) {
  return LooksLike(content, '{', {"\"commit_hash\"", "\"env_name\""});
}

absl::Status Read(const ImportedFile& file, CollectedResults& results,
                  proto::Run& run) {
  JsonOptions options;
  options.quote_non_finite = true;  // a benchmark that was skipped
  options.unique_keys = true;
  OPTRAIL_ASSIGN_OR_RETURN(const Json json,
                           ParseJson(file.content, file.path, options));
  const JsonFields top(json, file.path);
  if (top.Count("version") != 2) {
    const Json* version = top.Find("version");
    return top.Wrong(
        "version",
        version == nullptr ? "is absent"
                           : absl::StrCat("is ", ShortJson(*version)),
        "2, as asv writes since 0.5 (`asv update` converts older files)");
  }
  OPTRAIL_ASSIGN_OR_RETURN(const Columns columns, Columns::Of(top));
  OPTRAIL_ASSIGN_OR_RETURN(const JsonFields rows, top.Object("results"));
  for (const auto& [name, row] : rows.json().items()) {
    OPTRAIL_RETURN_IF_ERROR(AddBenchmark(
        JsonFields(row, EntryName(file.path, "benchmark", name, 0)), name,
        columns, results));
  }
  ReadStart(rows.json(), columns, run);
  SetCommit(top.Text("commit_hash"), run.mutable_commit());
  ReadMachine(top, run);
  return absl::OkStatus();
}

}  // namespace

extern constexpr Importer kAsv = {"asv", Recognises, Read};

}  // namespace optrail::tracker
