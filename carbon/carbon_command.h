#ifndef OPTRAIL_CARBON_CARBON_COMMAND_H_
#define OPTRAIL_CARBON_CARBON_COMMAND_H_

// The commands of `optrail carbon`. Each returns the process' exit code; a
// Status is wrong use or bad input.
//
//   CarbonPlanCommand command;
//   command.jobs = "jobs.csv";
//   command.grid.intensity = "grid.csv";
//   command.grid.zone = "DE";
//   OPTRAIL_ASSIGN_OR_RETURN(const ExitCode code,
//                            RunCarbonPlan(command, std::cout));

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "base/exit_code.h"
#include "carbon/certificate.h"
#include "carbon/power_model.h"
#include "tracker/command/command_support.h"

namespace optrail::carbon {

// GridOptions names the files that describe the electricity.
struct GridOptions {
  std::string intensity;  // path of the CSV
  std::string tariff;     // likewise, or ""
  std::string zone;
};

// Makes a PDF of a page (reports/pdf.h).
using PagePrinter =
    std::function<absl::StatusOr<std::string>(absl::string_view html)>;

struct CarbonPlanCommand {
  tracker::CommonOptions common;
  GridOptions grid;
  PowerModel model;
  std::string jobs;
  int machines = 1;
  absl::optional<double> most_cost;
  // Prints what each of these brings, as a deadline that long after the
  // earliest end of each job, in place of the plan.
  std::vector<absl::Duration> slacks;
  // Path of the plan as a page, or ""; one that ends in .json is data, one that
  // ends in .pdf is printed.
  std::string out;
  PagePrinter print;  // null: there are no PDFs
};
absl::StatusOr<ExitCode> RunCarbonPlan(const CarbonPlanCommand& command,
                                       std::ostream& out);

struct CarbonFootprintCommand {
  tracker::CommonOptions common;
  GridOptions grid;
  PowerModel model;
  std::vector<std::string> records;  // ids of runs and sessions
  double calls_per_year = 0;         // 0: not asked
  std::string wall_meter;            // path of a CSV, or ""
};
absl::StatusOr<ExitCode> RunCarbonFootprint(
    const CarbonFootprintCommand& command, std::ostream& out);

struct CarbonCertifyCommand {
  tracker::CommonOptions common;
  GridOptions grid;
  CertificateInputs inputs;  // but for what the grid's files say
  std::string key;           // path of a private key, or ""
  std::string out;           // of a copy of the JSON, or ""; "-": `out` has it
};
// The history keeps the certificate, so that `history thin` leaves its runs
// whole. A page stands beside each JSON. kNotEnoughData if nobody knows what a
// benchmark emits, or if the two runs cannot tell whether they differ: the
// reason is on the standard error, and in the latter case the certificate too.
absl::StatusOr<ExitCode> RunCarbonCertify(const CarbonCertifyCommand& command,
                                          std::ostream& out);

struct CarbonVerifyCommand {
  tracker::CommonOptions common;
  std::string certificate;
  std::string key;  // path of the key that has to have signed it, or ""
};
// kCheckFailed for one that does not follow.
absl::StatusOr<ExitCode> RunCarbonVerify(const CarbonVerifyCommand& command,
                                         std::ostream& out);

struct CarbonIndicesCommand {
  tracker::CommonOptions common;
  PowerModel model;
};
absl::StatusOr<ExitCode> RunCarbonIndices(const CarbonIndicesCommand& command,
                                          std::ostream& out);

}  // namespace optrail::carbon

#endif  // OPTRAIL_CARBON_CARBON_COMMAND_H_
