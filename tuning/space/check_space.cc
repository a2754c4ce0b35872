// check_space --space=FILE --shapes=FILE [--hardware=FILES] [--out=FILE]
//
// Checks that both files can be read, that for every listed shape some config
// is valid on every hardware given, and that the default is valid for one of
// these; says how many are, and where the default had to be adjusted. Without
// --hardware every attribute has the value that docs/reference/space_format.md
// assumes for an unknown one. The `operator` macro runs it at build time.

#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "base/exit_code.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/textproto.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/shapes.h"
#include "tuning/space/space.h"

ABSL_FLAG(std::string, space, "", "Space file (textproto).");
ABSL_FLAG(std::string, shapes, "", "Shapes file (textproto).");
ABSL_FLAG(
    std::vector<std::string>, hardware, {},
    "Files of hardware (textproto of optrail.proto.Hardware) to bind to.");
ABSL_FLAG(bool, diagnose, false,
          "Also print how many configs each constraint leaves.");
ABSL_FLAG(std::string, out, "", "File for the summary; default: stdout.");

namespace optrail::tuning {
namespace {

// Why the default is refused, and for how many of the shapes.
struct Refusals {
  int count = 0;
  std::string first;
};

// Adds what it finds to `summary` and `refusals`.
absl::Status CheckOn(const proto::Hardware& hardware, const Space& space,
                     const std::vector<NamedShape>& shapes,
                     const std::string& shapes_path, std::string* summary,
                     Refusals* refusals) {
  const std::string on =
      hardware.id().empty() ? "" : absl::StrCat(" on ", hardware.id());
  for (const NamedShape& shape : shapes) {
    const auto bound = space.Bind(shape.shape, hardware);
    if (!bound.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(bound.status().message(), "\n  (the shape is listed at ",
                       shapes_path, ":", shape.line, on, ")"));
    }
    const absl::optional<int64_t> count = (*bound)->count();
    absl::StrAppend(summary, CanonicalText(shape.shape), on, ": ",
                    count.has_value() ? absl::StrCat(*count) : "uncounted",
                    " valid configs of ", (*bound)->raw_count(), "\n");
    for (const std::string& note : (*bound)->notes()) {
      absl::StrAppend(summary, "  note: ", note, "\n");
    }
    const std::string& refusal = (*bound)->default_refusal();
    if (!refusal.empty() && refusals->count++ == 0) {
      refusals->first = absl::StrCat(refusal, "\n  (the shape is listed at ",
                                     shapes_path, ":", shape.line, on, ")");
    }
    if (absl::GetFlag(FLAGS_diagnose)) {
      OPTRAIL_ASSIGN_OR_RETURN(const Diagnosis diagnosis,
                               space.Diagnose(shape.shape, hardware));
      absl::StrAppend(summary, "  ", diagnosis.ToString(), "\n");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Check() {
  const std::string space_path = absl::GetFlag(FLAGS_space);
  const std::string shapes_path = absl::GetFlag(FLAGS_shapes);
  OPTRAIL_ASSIGN_OR_RETURN(const std::string space_text, ReadFile(space_path));
  OPTRAIL_ASSIGN_OR_RETURN(const Space space,
                           Space::Parse(space_text, space_path));
  OPTRAIL_ASSIGN_OR_RETURN(const std::string shapes_text,
                           ReadFile(shapes_path));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<NamedShape> shapes,
                           ParseShapes(shapes_text, shapes_path));
  std::vector<proto::Hardware> all_hardware;
  for (const std::string& path : absl::GetFlag(FLAGS_hardware)) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    OPTRAIL_ASSIGN_OR_RETURN(const auto parsed,
                             ParseTextProto<proto::Hardware>(text, path));
    all_hardware.push_back(parsed.message);
  }
  if (all_hardware.empty()) all_hardware.emplace_back();
  // How many instantiations are too many is up to who compiles them now
  // (generate_knobs): what is compiled when asked for has no such limit.
  std::string summary = absl::StrCat("space ", space.hash(), "\n");
  Refusals refusals;
  for (const proto::Hardware& hardware : all_hardware) {
    OPTRAIL_RETURN_IF_ERROR(
        CheckOn(hardware, space, shapes, shapes_path, &summary, &refusals));
  }
  const size_t checked = all_hardware.size() * shapes.size();
  if (checked > 0 && refusals.count == static_cast<int>(checked)) {
    return absl::InvalidArgumentError(absl::StrCat(
        space_path,
        ": the default is valid for no listed shape: ", refusals.first,
        "\n  next: a default that is valid, or default_where for the shapes "
        "that need another"));
  }
  return summary;
}

absl::Status Run() {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string summary, Check());
  const std::string out = absl::GetFlag(FLAGS_out);
  if (!out.empty()) return WriteOutput(out, summary);
  std::cout << summary;
  return absl::OkStatus();
}

}  // namespace
}  // namespace optrail::tuning

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = optrail::tuning::Run();
  if (!status.ok()) std::cerr << status.message() << "\n";
  return ToInt(optrail::ExitCodeOf(status));
}
