#include "suites/observed/observed.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/quote.h"
#include "base/text/textproto.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "ops/core/operator.h"
#include "ops/core/registry.h"
#include "re2/re2.h"
#include "suites/proto/workload.pb.h"
#include "tracker/command/command_support.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

using tuning::ObservedKey;
using tuning::ObservedSource;

// Says which of files without a call are empty; "" if none is.
std::string WhyNoCalls(const std::vector<std::string>& files) {
  std::vector<std::string> empty;
  for (const std::string& file : files) {
    std::error_code error;
    if (std::filesystem::file_size(file, error) == 0 && !error) {
      empty.push_back(file);
    }
  }
  if (empty.empty()) return "";
  return absl::StrCat("; ", absl::StrJoin(empty, ", "),
                      empty.size() == 1 ? " has" : " have",
                      " 0 bytes: the program ended before it counted a call; "
                      "next: run it again with OPTRAIL_OBSERVE set");
}

// Most calls first.
std::vector<ObservedShape> ObservedShapes(
    const std::vector<tuning::ObservedRow>& rows) {
  std::map<ObservedKey, ObservedShape> by_key;
  for (const tuning::ObservedRow& row : rows) {
    ObservedKey key = row.key;
    key.source = ObservedSource::kExact;
    ObservedShape& shape = by_key[key];
    shape.key = key;
    shape.calls += row.calls();
    shape.by_source[static_cast<int>(row.key.source)] += row.calls();
    shape.ns += row.ns;
    shape.timed_calls += row.timed_runs;
  }
  std::vector<ObservedShape> shapes;
  for (auto& [key, shape] : by_key) shapes.push_back(std::move(shape));
  std::stable_sort(shapes.begin(), shapes.end(),
                   [](const ObservedShape& a, const ObservedShape& b) {
                     return a.calls > b.calls;
                   });
  return shapes;
}

// A workload has one device and one number of threads, and is tuned with hot or
// with cold caches.
using Where = std::tuple<std::string, int, std::string>;
Where WhereOf(const ObservedKey& key) {
  return {key.device, key.threads, key.cache_mode};
}

// What is there may be a workload of an earlier call, and nothing else.
absl::Status CheckMayReplace(const std::string& path) {
  if (path.empty() || !FileExists(path) || IsStream(path)) {
    return absl::OkStatus();
  }
  const absl::StatusOr<std::string> text = ReadRegularFile(path);
  if (text.ok() && ParseTextProto<proto::Workload>(*text, path).ok()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--out=", path, ": there is something else than a workload, expected a ",
      "new file, or one that optrail observe wrote; next: another name"));
}

absl::StatusOr<Where> ChooseWhere(const ObserveCommand& command,
                                  const std::vector<ObservedShape>& shapes) {
  std::map<Where, int64_t> calls;
  for (const ObservedShape& shape : shapes) {
    if (shape.key.op.empty()) continue;
    if (!command.device.empty() && command.device != shape.key.device) continue;
    if (command.threads != 0 && command.threads != shape.key.threads) continue;
    calls[WhereOf(shape.key)] += shape.calls;
  }
  const auto most = std::max_element(
      calls.begin(), calls.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != calls.end()) return most->first;
  return absl::NotFoundError(absl::StrCat(
      "no call was made with ",
      command.device.empty() ? ""
                             : absl::StrCat("--device=", command.device, " "),
      command.threads == 0 ? "" : absl::StrCat("--threads=", command.threads)));
}

// Why a workload cannot name the shape; empty: it can.
std::string WhyLeftOut(const ObservedShape& shape, const Where& where) {
  const ObservedKey& key = shape.key;
  if (key.op.empty()) return "shapes beyond what a file holds";
  if (WhereOf(key) != where) {
    return absl::StrCat("--device=", key.device, " --threads=", key.threads,
                        key.cache_mode == std::get<2>(where)
                            ? ""
                            : absl::StrCat(" --cache=", key.cache_mode));
  }
  if (!key.backend.empty()) return absl::StrCat("backend ", key.backend);
  const ops::OperatorEntry* const entry = ops::Registry::Get().Find(key.op);
  if (entry == nullptr) {
    return absl::StrCat("operator ", key.op, ", which is not built in here");
  }
  const auto parsed = tuning::ParseShape(key.shape);
  if (!parsed.ok() || !ops::CheckShape(*entry->op, *parsed).ok()) {
    return absl::StrCat(key.op, " ", key.shape, ", which is no shape of it");
  }
  return "";
}

// "my_service" for "/tmp/My-service.workload.textproto".
std::string NameOf(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  name = absl::AsciiStrToLower(name.substr(0, name.find('.')));
  for (char& c : name) {
    if (!absl::ascii_isalnum(c)) c = '_';
  }
  return name.empty() ? "observed" : name;
}

// Counts of a workload have 31 bits, and more than nine digits say nothing.
proto::Workload WorkloadOf(const ObserveCommand& command, const Where& where,
                           const std::vector<ObservedShape>& shapes) {
  proto::Workload workload;
  workload.set_name(NameOf(command.out));
  workload.set_doc("Calls that programs made, as liboptrail counted them.");
  workload.add_threads(std::get<int>(where));
  std::map<std::pair<std::string, std::string>, int64_t> calls;
  int64_t most = 1;
  for (const ObservedShape& shape : shapes) {
    int64_t& sum = calls[{shape.key.op, shape.key.shape}];
    most = std::max(most, sum += shape.calls);
  }
  const int64_t unit = (most + 999'999'999) / 1'000'000'000;
  std::vector<std::pair<int64_t, std::pair<std::string, std::string>>> sorted;
  for (const auto& [key, count] : calls) sorted.emplace_back(-count, key);
  std::sort(sorted.begin(), sorted.end());
  for (const auto& [negative, key] : sorted) {
    proto::WorkloadLayer& layer = *workload.add_layer();
    layer.set_operator_name(key.first);
    layer.set_shape(key.second);
    layer.set_count(
        static_cast<int32_t>(std::max<int64_t>(1, -negative / unit)));
  }
  return workload;
}

// "exact 90%, default 10%".
std::string SourcesText(const ObservedShape& shape) {
  std::vector<std::string> parts;
  int64_t all = 0;
  for (const int64_t calls : shape.by_source) all += calls;
  for (int i = 0; i < tuning::kObservedSources; ++i) {
    if (shape.by_source[i] == 0) continue;
    const std::string name(
        tuning::ObservedSourceName(static_cast<ObservedSource>(i)));
    parts.push_back(
        shape.by_source[i] == all
            ? name
            : absl::StrCat(
                  name, " ",
                  FormatPercent(static_cast<double>(shape.by_source[i]) /
                                    static_cast<double>(all),
                                0)));
  }
  return absl::StrJoin(parts, ", ");
}

Table ShapesTable(const std::vector<ObservedShape>& shapes) {
  Table table({{"operator", Align::kLeft, "", Clip::kFold},
               {"shape", Align::kLeft, "", Clip::kFold},
               {"device"},
               {"threads", Align::kRight},
               {"calls", Align::kRight},
               {"share", Align::kRight},
               {"time", Align::kRight, "time_ns"},
               {"config"}});
  int64_t all = 0;
  for (const ObservedShape& shape : shapes) all += shape.calls;
  for (const ObservedShape& shape : shapes) {
    const double share =
        static_cast<double>(shape.calls) / static_cast<double>(all);
    table.AddRow(
        {shape.key.op.empty() ? "others" : shape.key.op, shape.key.shape,
         absl::StrCat(shape.key.device, shape.key.backend.empty() ? "" : ", ",
                      shape.key.backend,
                      shape.key.cache_mode == "cold" ? ", cold" : ""),
         Cell::Integer(shape.key.threads),
         Cell::Number(static_cast<double>(shape.calls),
                      FormatCount(shape.calls)),
         Cell::Number(share, FormatPercent(share)),
         shape.timed_calls == 0
             ? Cell::None()
             : Cell::Number(shape.TotalNs(), FormatDurationNs(shape.TotalNs())),
         SourcesText(shape)});
  }
  return table;
}

}  // namespace

absl::StatusOr<std::vector<ObservedShape>> ReadObservedShapes(
    const std::vector<std::string>& files, const std::string& op_regex,
    std::ostream* notes) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<RE2> pattern,
                           tracker::CompilePattern("op", op_regex));
  std::vector<std::string> partial;
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<tuning::ObservedRow> rows,
                           tuning::ReadObservedFiles(files, &partial));
  if (notes != nullptr) {
    for (const std::string& note : partial) {
      *notes << "note: " << EscapeForTerminal(note) << "\n";
    }
  }
  std::vector<ObservedShape> matching;
  std::set<std::string> names;
  for (ObservedShape& shape : ObservedShapes(rows)) {
    names.insert(shape.key.op);
    if (op_regex.empty() || tracker::MatchesWhole(*pattern, shape.key.op)) {
      matching.push_back(std::move(shape));
    }
  }
  if (!matching.empty()) return matching;
  return absl::NotFoundError(
      names.empty()
          ? absl::StrCat("no calls were counted in ",
                         absl::StrJoin(files, ", "), WhyNoCalls(files))
          : absl::StrCat("no call of --op=", op_regex,
                         "; there are: ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<int> RunObserve(const ObserveCommand& command, std::ostream& out,
                               std::ostream& notes) {
  OPTRAIL_RETURN_IF_ERROR(CheckMayReplace(command.out));
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<ObservedShape> shapes,
      ReadObservedShapes(command.files, command.op_regex, &notes));
  out << ShapesTable(shapes).Format(command.format, TerminalWidth());
  if (command.out.empty()) return 0;
  OPTRAIL_ASSIGN_OR_RETURN(const Where where, ChooseWhere(command, shapes));
  std::vector<ObservedShape> taken;
  std::map<std::string, int64_t> left_out;
  for (const ObservedShape& shape : shapes) {
    const std::string why = WhyLeftOut(shape, where);
    if (why.empty()) {
      taken.push_back(shape);
    } else {
      left_out[why] += shape.calls;
    }
  }
  for (const auto& [why, calls] : left_out) {
    notes << "left out: " << FormatCount(calls) << " calls of "
          << SanitiseText(why) << "\n";
  }
  if (taken.empty()) {
    return absl::NotFoundError("no call is left for a workload");
  }
  const proto::Workload workload = WorkloadOf(command, where, taken);
  OPTRAIL_RETURN_IF_ERROR(WriteOutput(
      command.out, absl::StrCat("# proto-file: suites/proto/workload.proto\n"
                                "# proto-message: optrail.proto.Workload\n",
                                PrintTextProto(workload))));
  notes << command.out << ": " << workload.layer_size()
        << (workload.layer_size() == 1 ? " shape" : " shapes")
        << "; next: optrail tune"
        << (std::get<0>(where) == "cpu"
                ? ""
                : absl::StrCat(" --device=", std::get<0>(where)))
        << " --workload=" << QuoteForShell(command.out)
        << (std::get<2>(where) == "cold" ? " --cache=cold" : "")
        << " --total_trials=" << 50 * workload.layer_size() << "\n";
  return 0;
}

}  // namespace optrail::suites
