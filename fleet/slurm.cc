#include "fleet/slurm.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/hash/hash.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"
#include "base/text/quote.h"

namespace optrail::fleet {
namespace {

absl::StatusOr<std::string> RunSlurm(const std::vector<std::string>& argv,
                                     const std::string& stdin_text = "") {
  CommandOptions options;
  options.stdin_text = stdin_text;
  options.timeout = absl::Minutes(1);
  const absl::StatusOr<CommandResult> result = RunCommand(argv, options);
  if (absl::IsNotFound(result.status())) {
    return absl::UnimplementedError(absl::StrCat(
        "unsupported here: no Slurm (", argv[0],
        "); next: start `optrail fleet pilot` on each machine, by ssh or by "
        "hand"));
  }
  if (!result.ok()) return result.status();
  if (result->exit.ok()) return result->stdout_text;
  const std::string message =
      absl::StrCat(argv[0], ": ", result->exit.ToString(), ": ",
                   absl::StripAsciiWhitespace(result->stderr_text));
  // slurm_strerror() of a controller that is away, or starts.
  const bool is_away =
      result->exit.kind == ExitInfo::Kind::kTimedOut ||
      absl::StrContains(message, "Unable to contact slurm controller") ||
      absl::StrContains(message, "Socket timed out");
  return is_away ? absl::UnavailableError(message)
                 : absl::FailedPreconditionError(message);
}

// The job: its pilot, started again where it crashes. Slurm itself starts a
// job again after a failure of its node, not of its process. One that was
// killed after a minute or more is no failed start; one that gives up is.
std::string ScriptOf(const std::vector<std::string>& pilot) {
  std::string words;
  for (const std::string& word : pilot) {
    absl::StrAppend(&words, QuoteForShell(word), " ");
  }
  return absl::StrCat(
      "#!/bin/sh\n"
      "trap 'kill \"$pilot\"; wait \"$pilot\"; exit' TERM\n"
      "failed=0\n"
      "while [ $failed -lt 5 ]; do\n"
      "  began=$(date +%s)\n"
      "  ",
      words,
      "& pilot=$!\n"
      "  wait \"$pilot\"; code=$?\n"
      "  [ $code -eq 0 ] && exit 0\n"
      "  [ $code -gt 128 ] && [ $(($(date +%s) - began)) -ge 60 ] && failed=0\n"
      "  failed=$((failed + 1))\n"
      "  sleep $failed\n"
      "done\n"
      "exit 1\n");
}

// The comment of jobs by which those of the same words are found again.
std::string MarkOf(const std::vector<std::string>& options,
                   const std::vector<std::string>& pilot) {
  return absl::StrCat(
      "optrail-", Fingerprint(absl::StrCat(absl::StrJoin(options, "\n"), "\n\n",
                                           absl::StrJoin(pilot, "\n"))));
}

bool HasEnded(absl::string_view state) {
  for (const char* const end :
       {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED",
        "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"}) {
    if (state == end) return true;
  }
  return false;
}

// The name of a long option, which sbatch lets people cut; that of a short one
// is its letter.
absl::string_view NameOf(absl::string_view option) {
  if (!absl::ConsumePrefix(&option, "--")) return option.substr(0, 2);
  return option.substr(0, option.find('='));
}

}  // namespace

absl::Status CheckOptionsToKeep(const std::vector<std::string>& options) {
  for (const std::string& option : options) {
    const absl::string_view name = NameOf(option);
    bool hides = name == "-a" || name == "-M";
    for (const absl::string_view full : {"array", "clusters", "comment"}) {
      hides |= name.size() > 1 && absl::StartsWith(full, name);
    }
    if (!hides) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--keep: option '", option,
        "' of sbatch, expected none of --array, --clusters and --comment, with "
        "which jobs are not found again; next: leave it out, or `fleet up` "
        "without --keep"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> SubmitPilots(
    int count, const std::vector<std::string>& options,
    const std::vector<std::string>& pilot) {
  // The job's environment is not that of whoever submits it.
  std::vector<std::string> argv = {"sbatch",
                                   "--parsable",
                                   "--requeue",
                                   "--export=NONE",
                                   "--signal=B:TERM@60",
                                   "--open-mode=append",
                                   "--job-name=optrail-pilot"};
  argv.insert(argv.end(), options.begin(), options.end());
  argv.push_back("--comment=" + MarkOf(options, pilot));
  const std::string script = ScriptOf(pilot);
  std::vector<std::string> jobs;
  for (int i = 0; i < count; ++i) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::string said, RunSlurm(argv, script));
    // With several clusters sbatch says JOB;CLUSTER.
    jobs.emplace_back(absl::StripAsciiWhitespace(said));
  }
  return jobs;
}

absl::StatusOr<std::vector<PilotJob>> ListPilotJobs(
    const std::vector<std::string>& options,
    const std::vector<std::string>& pilot) {
  const std::string mark = MarkOf(options, pilot);
  // Without --states it lists those that complete, too: a job that was requeued
  // may be among them.
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::string said,
      RunSlurm({"squeue", "--me", "--noheader", "--format=%A|%T|%k"}));
  std::vector<PilotJob> jobs;
  for (const absl::string_view line : absl::StrSplit(said, '\n')) {
    const std::vector<std::string> fields = absl::StrSplit(
        absl::StripAsciiWhitespace(line), absl::MaxSplits('|', 2));
    if (fields.size() != 3 || fields[2] != mark || HasEnded(fields[1])) {
      continue;
    }
    const bool completes = fields[1] == "COMPLETING";
    jobs.push_back({fields[0], completes || fields[1] == "RUNNING", completes});
  }
  return jobs;
}

absl::Status CancelPilotJob(const std::string& job) {
  return RunSlurm({"scancel", job}).status();
}

}  // namespace optrail::fleet
