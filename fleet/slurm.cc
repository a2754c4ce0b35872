#include "fleet/slurm.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/process/subprocess.h"
#include "base/text/quote.h"

namespace optrail::fleet {

absl::StatusOr<std::vector<std::string>> SubmitPilots(
    int count, const std::vector<std::string>& options,
    const std::vector<std::string>& pilot) {
  std::string words;
  for (const std::string& word : pilot) {
    absl::StrAppend(&words, QuoteForShell(word), " ");
  }
  // Slurm starts a job again after a failure of its node, not of its process.
  const std::string script = absl::StrCat(
      "#!/bin/sh\n"
      "trap 'kill \"$pilot\"; wait \"$pilot\"; exit' TERM\n"
      "for attempt in 1 2 3 4 5; do\n"
      "  ",
      words,
      "& pilot=$!\n"
      "  wait \"$pilot\" && exit 0\n"
      "  sleep 5\n"
      "done\n"
      "exit 1\n");
  // The job's environment is not that of whoever submits it.
  std::vector<std::string> argv = {"sbatch",
                                   "--parsable",
                                   "--requeue",
                                   "--export=NONE",
                                   "--signal=B:TERM@60",
                                   "--open-mode=append",
                                   "--job-name=optrail-pilot"};
  argv.insert(argv.end(), options.begin(), options.end());
  CommandOptions command;
  command.stdin_text = script;
  command.timeout = absl::Minutes(1);
  std::vector<std::string> jobs;
  for (int i = 0; i < count; ++i) {
    const absl::StatusOr<CommandResult> result = RunCommand(argv, command);
    if (absl::IsNotFound(result.status())) {
      return absl::UnimplementedError(
          "unsupported here: no Slurm (sbatch); next: start `optrail fleet "
          "pilot` on each machine, by ssh or by hand");
    }
    if (!result.ok()) return result.status();
    if (!result->exit.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("sbatch: ", result->exit.ToString(), ": ",
                       absl::StripAsciiWhitespace(result->stderr_text)));
    }
    jobs.emplace_back(absl::StripAsciiWhitespace(result->stdout_text));
  }
  return jobs;
}

}  // namespace optrail::fleet
