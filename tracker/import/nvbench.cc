#include <cmath>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "re2/re2.h"
#include "tracker/import/importers.h"
#include "tracker/import/json_fields.h"
#include "tracker/import/text_file.h"

namespace optrail::tracker {
namespace {

using Json = nlohmann::json;

constexpr double kNsPerSecond = 1e9;

// A number of a summary, which the tool writes as a text: "1.2e-05", "inf".
absl::StatusOr<double> NumberOf(const JsonFields& datum) {
  double value = 0;
  const std::string text = datum.Text("value");
  if (absl::SimpleAtod(text, &value) && std::isfinite(value)) return value;
  const Json* found = datum.Find("value");
  return datum.Wrong(
      "value",
      found == nullptr ? "is absent" : absl::StrCat("is ", ShortJson(*found)),
      "the text of a finite number");
}

// The summaries of a state.
class Summaries {
 public:
  static absl::StatusOr<Summaries> Of(const JsonFields& state) {
    OPTRAIL_ASSIGN_OR_RETURN(const Json* all,
                             state.Results("summaries", "--json"));
    return Summaries(*all, state.where());
  }

  // The value `name` of the summary `tag`; without fields if there is none.
  JsonFields Find(absl::string_view tag, absl::string_view name) const {
    static const auto* const kNone = new Json(Json::object());
    const std::string where = absl::StrCat(where_, ": ", tag);
    for (const Json& json : all_) {
      const JsonFields summary(json, where);
      if (summary.Text("tag") != tag) continue;
      const Json* data = summary.Find("data");
      if (data == nullptr || !data->is_array()) continue;
      for (const Json& datum : *data) {
        if (JsonFields(datum, where).Text("name") == name) {
          return JsonFields(datum, where);
        }
      }
    }
    return JsonFields(*kNone, where);
  }

 private:
  Summaries(const Json& all, std::string where)
      : all_(all), where_(std::move(where)) {}

  const Json& all_;
  std::string where_;
};

// The folder "X-bin" stands beside the file X, wherever both were moved to; no
// other file is read, whatever a file says.
absl::StatusOr<std::string> SamplesPath(const JsonFields& filename,
                                        const std::string& path) {
  static const RE2* const kPath = new RE2("(?:.*/)?([^/]+-bin/[0-9]+\\.bin)");
  std::string tail;
  if (RE2::FullMatch(filename.Text("value"), *kPath, &tail)) {
    return JoinPath(DirectoryOf(path), tail);
  }
  return filename.Wrong("value",
                        absl::StrCat("is '", filename.Text("value"), "'"),
                        "a path such as x.json-bin/0.bin");
}

// Little-endian floats, seconds each. --jsonbin writes them.
absl::Status AddSamples(const JsonFields& filename, const JsonFields& size,
                        const std::string& path, Collected& one) {
  OPTRAIL_ASSIGN_OR_RETURN(const double count, NumberOf(size));
  OPTRAIL_ASSIGN_OR_RETURN(const std::string file, SamplesPath(filename, path));
  const absl::StatusOr<std::string> read = ReadFile(file);
  if (!read.ok()) {
    return filename.Wrong(
        "the file", absl::StrCat("is not there: ", read.status().message()),
        "the samples beside the file, where --jsonbin writes them");
  }
  const std::string& bytes = *read;
  if (count < 1 || static_cast<double>(bytes.size()) != 4 * count) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": has ", bytes.size(), " bytes, expected 4 for each of ", count,
        " samples, as ", path, " says"));
  }
  for (size_t i = 0; i < bytes.size(); i += 4) {
    uint32_t bits = 0;
    for (int byte = 3; byte >= 0; --byte) {
      bits = bits << 8 | static_cast<unsigned char>(bytes[i + byte]);
    }
    float seconds = 0;
    std::memcpy(&seconds, &bits, sizeof(seconds));
    if (!std::isfinite(seconds) || seconds < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(file, ": sample ", i / 4, " is ", seconds,
                       ", expected a finite time of at least 0"));
    }
    OPTRAIL_RETURN_IF_ERROR(
        filename.AddTime(file, seconds, kNsPerSecond, 1, one));
  }
  return absl::OkStatus();
}

// Time on the GPU, else on the CPU for benchmarks that do not use one.
absl::Status AddTimes(const JsonFields& state, const Summaries& summaries,
                      const std::string& path, Collected& one) {
  for (const absl::string_view group : {"nv/cold/", "nv/cpu_only/"}) {
    const JsonFields mean = summaries.Find(
        absl::StrCat(group, "time/", group == "nv/cold/" ? "gpu" : "cpu",
                     "/mean"),
        "value");
    if (!mean.Has("value")) continue;
    const std::string samples =
        absl::StrCat("nv/json/bin:", group, "sample_times");
    const JsonFields filename = summaries.Find(samples, "filename");
    if (filename.Has("value")) {
      return AddSamples(filename, summaries.Find(samples, "size"), path, one);
    }
    OPTRAIL_ASSIGN_OR_RETURN(const double seconds, NumberOf(mean));
    if (seconds < 0) {
      return mean.Wrong("value", absl::StrCat("is ", seconds), "at least 0");
    }
    one.labels.insert("mean of its samples");
    return mean.AddTime("value", seconds, kNsPerSecond, 1, one);
  }
  return state.Wrong("summaries", "hold no time",
                     "nv/cold/time/gpu/mean or nv/cpu_only/time/cpu/mean");
}

struct Metric {
  const char* tag;
  const char* name;
  const char* unit;
  double scale;  // from the file's unit
  proto::Direction direction;
};

constexpr Metric kMetrics[] = {
    {"nv/cold/time/cpu/mean", "cpu_time", "ns", 1e9, proto::LOWER_IS_BETTER},
    {"nv/batch/time/gpu/mean", "batch_time", "ns", 1e9, proto::LOWER_IS_BETTER},
    {"nv/cold/bw/item_rate", "items_per_second", "1/s", 1,
     proto::HIGHER_IS_BETTER},
    {"nv/cold/bw/global/bytes_per_second", "bytes_per_second", "B/s", 1,
     proto::HIGHER_IS_BETTER},
};

absl::Status AddState(const JsonFields& state, const std::string& name,
                      const std::string& path, CollectedResults& results) {
  if (results.Has(name)) return state.GivenTwice(name);
  Collected& one = results.Of(name);
  if (state.Flag("is_skipped")) {
    one.outcome = proto::UNSUPPORTED;
    one.detail = state.Text("skip_reason");
    return absl::OkStatus();
  }
  OPTRAIL_ASSIGN_OR_RETURN(const Summaries summaries, Summaries::Of(state));
  OPTRAIL_RETURN_IF_ERROR(AddTimes(state, summaries, path, one));
  for (const Metric& metric : kMetrics) {
    const JsonFields datum = summaries.Find(metric.tag, "value");
    if (!datum.Has("value")) continue;
    OPTRAIL_ASSIGN_OR_RETURN(const double value, NumberOf(datum));
    one.AddMetric(metric.name, metric.unit, metric.direction,
                  value * metric.scale);
  }
  return absl::OkStatus();
}

// "copy[Elements=2^20 T=I32]"; a state begins with "Device=0 ", which is left
// out where there is one device.
std::string NameOf(const std::string& benchmark, absl::string_view state,
                   bool one_device) {
  static const RE2* const kDevice = new RE2("Device=[0-9]+ ?");
  re2::StringPiece rest(state.data(), state.size());
  if (one_device) RE2::Consume(&rest, *kDevice);
  return rest.empty() ? benchmark
                      : absl::StrCat(benchmark, "[", rest.as_string(), "]");
}

absl::Status ReadDevices(const JsonFields& top, proto::Run& run) {
  const Json* devices = top.Find("devices");
  if (devices == nullptr || devices->is_null()) return absl::OkStatus();
  OPTRAIL_RETURN_IF_ERROR(top.Results("devices", "--json").status());
  std::string model;
  for (const Json& json : *devices) {
    const std::string name = JsonFields(json, top.where()).Text("name");
    if (!model.empty() && name != model) {
      return top.Wrong("devices", absl::StrCat("are ", model, " and ", name),
                       "one kind: a run is of one hardware (--devices)");
    }
    model = name;
  }
  if (model.empty()) return absl::OkStatus();
  SetMachine(model, JsonFields((*devices)[0], "").Count("number_of_sms"), run);
  run.mutable_hardware()->set_device_kind(proto::CUDA);
  return absl::OkStatus();
}

bool Recognises(absl::string_view content) {
  return LooksLike(content, '{', {"\"nvbench\""});
}

absl::Status Read(const ImportedFile& file, CollectedResults& results,
                  proto::Run& run) {
  OPTRAIL_ASSIGN_OR_RETURN(const Json json, ParseJson(file.content, file.path));
  const JsonFields top(json, file.path);
  const auto major =
      top.Part("meta").Part("version").Part("json").Count("major");
  if (major != 1) {
    return top.Wrong(
        "meta.version.json.major",
        major.has_value() ? absl::StrCat("is ", *major) : "is absent",
        "1: the format that this version reads");
  }
  OPTRAIL_RETURN_IF_ERROR(ReadDevices(top, run));
  OPTRAIL_ASSIGN_OR_RETURN(const Json* benchmarks,
                           top.Results("benchmarks", "--json"));
  const Json* devices = top.Find("devices");
  const bool one_device =
      devices == nullptr || !devices->is_array() || devices->size() <= 1;
  for (size_t i = 0; i < benchmarks->size(); ++i) {
    const JsonFields unnamed((*benchmarks)[i],
                             EntryName(file.path, "benchmark", "", i));
    OPTRAIL_ASSIGN_OR_RETURN(const std::string benchmark, unnamed.Name("name"));
    OPTRAIL_ASSIGN_OR_RETURN(const Json* states,
                             unnamed.Results("states", "--json"));
    for (const Json& state : *states) {
      const std::string name =
          NameOf(benchmark, JsonFields(state, "").Text("name"), one_device);
      OPTRAIL_RETURN_IF_ERROR(
          AddState(JsonFields(state, EntryName(file.path, "state", name, i)),
                   name, file.path, results));
    }
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr Importer kNvbench = {"nvbench", Recognises, Read};

}  // namespace optrail::tracker
