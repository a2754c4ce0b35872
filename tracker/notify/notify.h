#ifndef OPTRAIL_TRACKER_NOTIFY_NOTIFY_H_
#define OPTRAIL_TRACKER_NOTIFY_NOTIFY_H_

// The outputs of a gate's verdict beside standard output and exit code: files,
// annotations of a CI service, a badge, an alert command.
//
//   OPTRAIL_RETURN_IF_ERROR(CheckOutputs(outputs));
//   OPTRAIL_RETURN_IF_ERROR(Publish(outputs, report));
//
// Texts are escaped: a benchmark's name can neither end a command of a service
// nor begin another one, and is no markup in a badge.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tracker/gate/gate.h"

namespace optrail::tracker {

struct GateOutputs {
  std::string verdict_out;   // JSON, written atomically
  std::string markdown_out;  // for the pull request, written atomically
  std::string junit_out;     // JUnit's XML (junit.h), written atomically
  std::string annotations;   // "github", "azure", "teamcity"; "": none
  std::string badge_out;     // SVG file, written atomically
  std::string badge_label = "performance";
  // Run with the verdict's JSON (as --format=json prints it) on its standard
  // input unless the exit code is 0. Its failure is logged and changes
  // nothing.
  std::string alert_command;
};

// Before anything is measured: InvalidArgument for an option that is wrong.
absl::Status CheckOutputs(const GateOutputs& outputs);

// Writes `text` to the file `path` and creates its folder, since CI writes into
// one that a fresh clone lacks (.optrail); "" writes nothing.
absl::Status WriteOut(const std::string& path, const std::string& text);

// Annotations go to standard error, which CI services read as well. Errors:
// those of writing files.
absl::Status Publish(const GateOutputs& outputs, const GateReport& report);

// Runs `command` with sh and `json` on its standard input; its output goes to
// standard error. A command that fails, or has not ended by `deadline` and is
// killed, is an error that says how and quotes its last words. It tells
// somebody and never changes a verdict.
absl::Status RunAlert(const std::string& command, const std::string& json,
                      absl::Duration deadline = absl::Minutes(1));

enum class AnnotationStyle {
  kGithub,    // ::error title=...::...
  kAzure,     // ##vso[task.logissue type=error]...
  kTeamcity,  // ##teamcity[buildProblem description='...']
};

// InvalidArgument that says which there are.
absl::StatusOr<AnnotationStyle> ParseAnnotationStyle(absl::string_view name);

struct Annotation {
  bool is_error = true;  // else a warning
  std::string title;
  std::string text;
};

// A line each, of the first `limit`; one more says how many there are beyond.
std::string Annotations(AnnotationStyle style,
                        const std::vector<Annotation>& annotations,
                        int limit = 10);

// A badge as SVG, complete in itself: a label on grey, a message on a colour
// that also stands in words beside it. `color` is ours, the texts may be
// anyone's.
std::string BadgeSvg(absl::string_view label, absl::string_view message,
                     absl::string_view color);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_NOTIFY_NOTIFY_H_
