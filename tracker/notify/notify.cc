#include "tracker/notify/notify.h"

#include <iostream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "tracker/compare/compare.h"
#include "tracker/gate/gate_report.h"
#include "tracker/notify/alert.h"
#include "tracker/notify/annotations.h"
#include "tracker/notify/badge.h"
#include "tracker/notify/junit.h"

namespace optrail::tracker {
namespace {

std::vector<Annotation> AnnotationsOf(const GateReport& report) {
  std::vector<Annotation> annotations;
  for (const GateRow& row : report.rows) {
    if (row.action != proto::FAIL) continue;
    const bool is_red = row.row.verdict != Verdict::kCannotTell;
    annotations.push_back(
        {is_red, absl::StrCat("performance: ", row.row.name),
         absl::StrCat(VerdictName(row.row.verdict), " (", row.row.metric,
                      "): ", row.row.reason)});
  }
  if (annotations.empty() && report.exit_code != 0) {
    annotations.push_back(
        {report.exit_code == 1, "performance", report.summary});
  }
  return annotations;
}

std::string Badge(const std::string& label, const GateReport& report) {
  switch (report.exit_code) {
    case 0:
      return BadgeSvg(label, "fine", ToneColor(Tone::kNeutral));
    case 1:
      return BadgeSvg(label, absl::StrCat(report.CountRed(), " worse"),
                      ToneColor(Tone::kWorse));
    default:
      return BadgeSvg(label, "can't tell", ToneColor(Tone::kUnsure));
  }
}

absl::Status WriteOut(const std::string& path, const std::string& text) {
  if (path.empty()) return absl::OkStatus();
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(DirectoryOf(path)));
  return WriteFileAtomically(path, text);
}

}  // namespace

absl::Status CheckOutputs(const GateOutputs& outputs) {
  if (outputs.annotations.empty()) return absl::OkStatus();
  return ParseAnnotationStyle(outputs.annotations).status();
}

absl::Status Publish(const GateOutputs& outputs, const GateReport& report) {
  OPTRAIL_RETURN_IF_ERROR(WriteOut(outputs.verdict_out, GateJson(report)));
  OPTRAIL_RETURN_IF_ERROR(WriteOut(outputs.markdown_out, GateMarkdown(report)));
  OPTRAIL_RETURN_IF_ERROR(WriteOut(outputs.junit_out, GateJunit(report)));
  OPTRAIL_RETURN_IF_ERROR(
      WriteOut(outputs.badge_out, Badge(outputs.badge_label, report)));
  if (!outputs.annotations.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(const AnnotationStyle style,
                             ParseAnnotationStyle(outputs.annotations));
    std::cerr << Annotations(style, AnnotationsOf(report));
  }
  if (!outputs.alert_command.empty() && report.exit_code != 0) {
    const absl::Status said = RunAlert(outputs.alert_command, GateJson(report));
    if (!said.ok()) std::cerr << "note: " << said.message() << "\n";
  }
  return absl::OkStatus();
}

}  // namespace optrail::tracker
