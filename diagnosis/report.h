#ifndef OPTRAIL_DIAGNOSIS_REPORT_H_
#define OPTRAIL_DIAGNOSIS_REPORT_H_

// A diagnosis for people, for pull requests and for programs.
//
//   std::cout << DiagnosisText(diagnosis, /*markdown=*/false);
//   std::cout << DiagnosesJson({diagnosis});
//   std::cout << SummaryOf(diagnoses).ToText(TerminalWidth());
//
// The JSON is described by docs/json_schemas/diagnose.schema.json.

#include <string>

#include "absl/types/span.h"
#include "base/text/table.h"
#include "tracker/proto/diagnosis.pb.h"

namespace optrail::diagnosis {

// Numbers that are not known are listed at its end, if `with_unknown`.
std::string DiagnosisText(const proto::Diagnosis& diagnosis, bool markdown,
                          bool with_unknown = true);

// Lists the numbers that are not known, each once, with the reason that the
// first task gives and with the count of tasks if there are several. "" if all
// are known.
std::string UnknownText(absl::Span<const proto::Diagnosis> diagnoses);

// A row for each: the time, the first cause, the first advice, and what became
// of it.
Table SummaryOf(absl::Span<const proto::Diagnosis> diagnoses);

std::string DiagnosesJson(absl::Span<const proto::Diagnosis> diagnoses);

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_REPORT_H_
