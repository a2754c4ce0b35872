#include "tracker/notify/notify.h"

#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/substitute.h"
#include "base/file/file.h"
#include "base/file/file_system.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"
#include "base/text/table.h"
#include "base/text/utf8.h"
#include "tracker/compare/row_table.h"
#include "tracker/gate/gate_report.h"
#include "tracker/notify/junit.h"
#include "tracker/notify/xml.h"

namespace optrail::tracker {
namespace {

// What only a terminal or a reader could be fooled by goes first, then what
// each service's own syntax would take for its end.
std::string GithubText(absl::string_view text) {
  return absl::StrReplaceAll(EscapeForTerminal(text), {{"%", "%25"}});
}

std::string GithubTitle(absl::string_view text) {
  return absl::StrReplaceAll(GithubText(text), {{":", "%3A"}, {",", "%2C"}});
}

std::string AzureText(absl::string_view text) {
  return absl::StrReplaceAll(EscapeForTerminal(text),
                             {{"%", "%AZP25"}, {"]", "%5D"}, {";", "%3B"}});
}

std::string TeamcityText(absl::string_view text) {
  return absl::StrReplaceAll(
      EscapeForTerminal(text),
      {{"|", "||"}, {"'", "|'"}, {"[", "|["}, {"]", "|]"}});
}

std::string Line(AnnotationStyle style, const Annotation& note) {
  switch (style) {
    case AnnotationStyle::kGithub:
      return absl::StrCat("::", note.is_error ? "error" : "warning",
                          " title=", GithubTitle(note.title),
                          "::", GithubText(note.text), "\n");
    case AnnotationStyle::kAzure:
      return absl::StrCat(
          "##vso[task.logissue type=", note.is_error ? "error" : "warning", "]",
          AzureText(note.title), ": ", AzureText(note.text), "\n");
    case AnnotationStyle::kTeamcity:
      if (note.is_error) {
        return absl::StrCat("##teamcity[buildProblem description='",
                            TeamcityText(note.title), ": ",
                            TeamcityText(note.text), "']\n");
      }
      return absl::StrCat("##teamcity[message text='", TeamcityText(note.title),
                          ": ", TeamcityText(note.text),
                          "' status='WARNING']\n");
  }
  return "";
}

constexpr size_t kMostBytes = 80;

std::string Escape(absl::string_view text) {
  return EscapeForXml(text.substr(0, kMostBytes));
}

// The width in Verdana at 11 pixels, about; textLength makes the text fit
// whatever font there is.
int TextWidth(absl::string_view text) {
  return static_cast<int>(
      6.6 * DisplayWidth(EscapeForTerminal(text.substr(0, kMostBytes))));
}

std::vector<Annotation> AnnotationsOf(const GateReport& report) {
  std::vector<Annotation> annotations;
  for (const GateRow& row : report.rows) {
    if (row.action != proto::FAIL) continue;
    annotations.push_back(
        {IsRed(row), absl::StrCat("performance: ", row.row.name),
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

}  // namespace

absl::StatusOr<AnnotationStyle> ParseAnnotationStyle(absl::string_view name) {
  if (name == "github") return AnnotationStyle::kGithub;
  if (name == "azure") return AnnotationStyle::kAzure;
  if (name == "teamcity") return AnnotationStyle::kTeamcity;
  return absl::InvalidArgumentError(absl::StrCat(
      "--annotations=", name, ": expected github, azure or teamcity"));
}

std::string Annotations(AnnotationStyle style,
                        const std::vector<Annotation>& annotations, int limit) {
  std::string lines;
  const int count = static_cast<int>(annotations.size());
  for (int i = 0; i < count && i < limit; ++i) {
    absl::StrAppend(&lines, Line(style, annotations[i]));
  }
  if (count > limit) {
    absl::StrAppend(
        &lines,
        Line(style, {false, "optrail",
                     absl::StrCat(count - limit, " more are not annotated")}));
  }
  return lines;
}

std::string BadgeSvg(absl::string_view label, absl::string_view message,
                     absl::string_view color) {
  const int label_text = TextWidth(label);
  const int message_text = TextWidth(message);
  const int left = label_text + 12;
  const int width = left + message_text + 12;
  return absl::Substitute(
      R"svg(<svg xmlns="http://www.w3.org/2000/svg" width="$0" height="20" role="img" aria-label="$1: $2">
<title>$1: $2</title>
<clipPath id="r"><rect width="$0" height="20" rx="3"/></clipPath>
<g clip-path="url(#r)"><rect width="$3" height="20" fill="#4a4f55"/><rect x="$3" width="$4" height="20" fill="$5"/></g>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11"><text x="6" y="14" textLength="$6">$1</text><text x="$7" y="14" textLength="$8">$2</text></g>
</svg>
)svg",
      width, Escape(label), Escape(message), left, width - left, color,
      label_text, left + 6, message_text);
}

absl::Status CheckOutputs(const GateOutputs& outputs) {
  for (const auto& [flag, path] :
       {std::pair("verdict_out", &outputs.verdict_out),
        {"markdown_out", &outputs.markdown_out},
        {"junit_out", &outputs.junit_out},
        {"badge_out", &outputs.badge_out}}) {
    FileInfo info;
    if (FileSystem::Real()->Stat(*path, &info) == 0 && info.is_directory) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--", flag, "=", *path, ": expected a file, and that is a folder"));
    }
  }
  if (outputs.annotations.empty()) return absl::OkStatus();
  return ParseAnnotationStyle(outputs.annotations).status();
}

absl::Status WriteOut(const std::string& path, const std::string& text) {
  if (path.empty()) return absl::OkStatus();
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(DirectoryOf(path)));
  return WriteOutput(path, text);
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

absl::Status RunAlert(const std::string& command, const std::string& json,
                      absl::Duration deadline) {
  CommandOptions options;
  options.stdin_text = json;
  options.timeout = deadline;
  options.max_stdout_bytes = 1 << 16;
  OPTRAIL_ASSIGN_OR_RETURN(const CommandResult result,
                           RunCommand({"/bin/sh", "-c", command}, options));
  if (!result.stdout_text.empty()) {
    std::cerr << SanitiseText(
                     absl::StripTrailingAsciiWhitespace(result.stdout_text))
              << "\n";
  }
  if (result.exit.ok()) return absl::OkStatus();
  return absl::UnknownError(
      absl::StrCat("--alert_command ", result.exit.ToString(),
                   result.stderr_text.empty() ? "" : ": ",
                   EscapeForTerminal(absl::StripTrailingAsciiWhitespace(
                       TruncateUtf8(result.stderr_text, 500)))));
}

}  // namespace optrail::tracker
