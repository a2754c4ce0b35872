#include "suites/workload/workload.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/textproto.h"
#include "base/text/utf8.h"
#include "ops/core/operator.h"
#include "ops/core/registry.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {

absl::StatusOr<proto::Workload> ParseWorkload(absl::string_view text,
                                              absl::string_view filename) {
  OPTRAIL_ASSIGN_OR_RETURN(auto parsed,
                           ParseTextProto<proto::Workload>(text, filename));
  proto::Workload& workload = parsed.message;
  const auto root = parsed.root();
  if (workload.name().empty() || workload.layer().empty()) {
    return root.Error("a workload needs a name and at least one layer");
  }
  // It becomes the name of a suite, and of files.
  if (!std::all_of(workload.name().begin(), workload.name().end(), [](char c) {
        return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_';
      })) {
    return root.Child("name").Error(
        absl::StrCat("name is \"", EscapeForTerminal(workload.name()),
                     "\", expected [a-z0-9_]+"));
  }
  if (workload.processes() < 0 || workload.processes() > kMostProcesses) {
    return root.Child("processes")
        .Error(absl::StrCat("processes is ", workload.processes(),
                            ", expected 0 (the command's default) to ",
                            kMostProcesses));
  }
  if (workload.tune_seconds() < 0) {
    return root.Child("tune_seconds")
        .Error(absl::StrCat("tune_seconds is ", workload.tune_seconds(),
                            ", expected 0 (the command's default) or more"));
  }
  std::set<std::pair<std::string, std::string>> seen;
  for (int i = 0; i < workload.layer_size(); ++i) {
    proto::WorkloadLayer& layer = *workload.mutable_layer(i);
    const auto place = root.Child("layer", i);
    const ops::Registry& registry = ops::Registry::Get();
    const ops::OperatorEntry* entry = registry.Find(layer.operator_name());
    if (entry == nullptr) {
      return place.Child("operator_name")
          .Error(registry.UnknownOperator(layer.operator_name()).message());
    }
    const absl::StatusOr<proto::Shape> shape =
        tuning::ParseShape(layer.shape());
    const absl::Status checked =
        shape.ok() ? ops::CheckShape(*entry->op, *shape) : shape.status();
    if (!checked.ok()) return place.Child("shape").Error(checked.message());
    layer.set_shape(tuning::CanonicalText(*shape));
    if (!seen.insert({layer.operator_name(), layer.shape()}).second) {
      return place.Error(absl::StrCat(layer.operator_name(), " ", layer.shape(),
                                      " is listed twice; raise its count"));
    }
    if (layer.count() < 0) {
      return place.Child("count").Error(
          absl::StrCat("count is ", layer.count(), ", expected 0 or more"));
    }
    if (layer.count() == 0) layer.set_count(1);
    if (layer.part().empty() != layer.way().empty()) {
      return place.Error(absl::StrCat("part is \"", layer.part(),
                                      "\" and way is \"", layer.way(),
                                      "\", expected both or neither"));
    }
  }
  for (int i = 0; i < workload.threads_size(); ++i) {
    if (workload.threads(i) < 0 || workload.threads(i) > 1024) {
      return root.Child("threads", i)
          .Error(absl::StrCat("threads is ", workload.threads(i),
                              ", expected 0 (all cores) to 1024"));
    }
  }
  if (workload.threads().empty()) workload.add_threads(1);
  return workload;
}

absl::StatusOr<proto::Workload> FindWorkload(const std::string& name_or_path) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const NamedFile file,
      FindFile(EmbeddedWorkloads(), "workload", name_or_path));
  return ParseWorkload(file.text, file.path);
}

}  // namespace optrail::suites
