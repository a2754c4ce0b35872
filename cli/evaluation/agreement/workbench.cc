#include "cli/evaluation/agreement/workbench.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <limits>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/file.h"
#include "base/subprocess.h"

namespace optrail::agreement {
namespace {

// All that was written to a file, which is closed.
std::string TakeText(int file) {
  std::string text(lseek(file, 0, SEEK_END), '\0');
  OPTRAIL_CHECK(pread(file, text.data(), text.size(), 0) ==
                static_cast<ssize_t>(text.size()));
  close(file);
  return text;
}

}  // namespace

Json Answer::Parsed() const {
  const Json whole = Json::parse(out, nullptr, /*allow_exceptions=*/false);
  if (!whole.is_discarded()) return whole;
  std::istringstream stream(out);
  Json all = Json::array();
  while (stream >> std::ws && !stream.eof()) {
    Json next;
    try {
      stream >> next;
    } catch (const Json::parse_error&) {
      return Json();
    }
    if (!next.is_array()) return Json();
    all.insert(all.end(), next.begin(), next.end());
  }
  return all;
}

bool Answer::Says(absl::string_view text) const {
  const std::string lower = absl::AsciiStrToLower(text);
  return absl::StrContains(absl::AsciiStrToLower(out), lower) ||
         absl::StrContains(absl::AsciiStrToLower(err), lower);
}

Workbench::Workbench(std::string optrail, std::string folder, Main main)
    : optrail_(std::move(optrail)), folder_(std::move(folder)), main_(main) {
  // `bazel run` and CI services set these; the commands would look elsewhere.
  unsetenv("BUILD_WORKSPACE_DIRECTORY");
  unsetenv("OPTRAIL_BRANCH");
  std::filesystem::remove_all(folder_);
  OPTRAIL_CHECK(CreateDirectories(folder_).ok()) << folder_;
  environment_ = {{"HOME", folder_},
                  {"GIT_CONFIG_NOSYSTEM", "1"},
                  {"GIT_CEILING_DIRECTORIES", DirectoryOf(folder_)},
                  {"GIT_AUTHOR_NAME", "a"},
                  {"GIT_AUTHOR_EMAIL", "a@example.com"},
                  {"GIT_COMMITTER_NAME", "a"},
                  {"GIT_COMMITTER_EMAIL", "a@example.com"},
                  {"GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"},
                  {"GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z"},
                  {"COLUMNS", "500"}};
}

std::string Workbench::Path(absl::string_view name) const {
  return JoinPath(folder_, name);
}

std::string Workbench::Source(absl::string_view name) const {
  // The command line is cli/optrail of the same tree.
  return JoinPath(DirectoryOf(DirectoryOf(optrail_)), name);
}

Json Workbench::ReadJson(absl::string_view name) const {
  const auto text = ReadFile(Path(name));
  return text.ok() ? Json::parse(*text, nullptr, /*allow_exceptions=*/false)
                   : Json();
}

tracker::History Workbench::OpenHistory() const {
  auto history = tracker::History::Open(HistoryPath());
  OPTRAIL_CHECK(history.ok()) << history.status();
  return *std::move(history);
}

Answer Workbench::Ask(const std::vector<std::string>& arguments) const {
  std::vector<std::string> command = {optrail_};
  command.insert(command.end(), arguments.begin(), arguments.end());
  Answer answer = main_ == nullptr ? Run(command) : RunMain(command);
  answer.question = absl::StrCat("optrail ", absl::StrJoin(arguments, " "));
  return answer;
}

Answer Workbench::Run(const std::vector<std::string>& command) const {
  CommandOptions options;
  options.working_directory = folder_;
  options.environment = environment_;
  options.timeout = absl::Minutes(5);
  options.max_stdout_bytes = int64_t{256} << 20;
  const absl::StatusOr<CommandResult> result = RunCommand(command, options);
  OPTRAIL_CHECK(result.ok()) << result.status();
  Answer answer;
  answer.question = absl::StrJoin(command, " ");
  const ExitInfo& exit = result->exit;
  answer.exit_code = exit.kind == ExitInfo::Kind::kExited ? exit.code : -1;
  answer.out = result->stdout_text;
  answer.err = result->stderr_text;
  return answer;
}

Answer Workbench::RunMain(std::vector<std::string> command) const {
  std::vector<char*> argv;
  for (std::string& argument : command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const int streams[] = {memfd_create("out", 0), memfd_create("err", 0)};
  OPTRAIL_CHECK(streams[0] >= 0 && streams[1] >= 0);
  // Both processes would write what still waits in the buffers.
  std::fflush(nullptr);
  std::cout.flush();
  const pid_t child = fork();
  OPTRAIL_CHECK(child >= 0);
  if (child == 0) {
    alarm(300);
    OPTRAIL_CHECK(dup2(streams[0], STDOUT_FILENO) >= 0 &&
                  dup2(streams[1], STDERR_FILENO) >= 0 &&
                  chdir(folder_.c_str()) == 0);
    for (const auto& [name, value] : environment_) {
      setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
    }
    const int code = main_(static_cast<int>(command.size()), argv.data());
    std::cout.flush();
    std::fflush(nullptr);
    _exit(code);  // tearing down what this process has loaded takes long
  }
  int status = 0;
  OPTRAIL_CHECK(waitpid(child, &status, 0) == child);
  Answer answer;
  answer.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  answer.out = TakeText(streams[0]);
  answer.err = TakeText(streams[1]);
  return answer;
}

Answer Workbench::AskJson(std::vector<std::string> arguments) const {
  arguments.push_back("--format=json");
  return Ask(arguments);
}

std::string Workbench::Git(const std::vector<std::string>& arguments) const {
  std::vector<std::string> command = {"git", "-C", folder_};
  command.insert(command.end(), arguments.begin(), arguments.end());
  CommandOptions options;
  options.environment = environment_;
  const absl::StatusOr<CommandResult> result = RunCommand(command, options);
  OPTRAIL_CHECK(result.ok() && result->exit.ok())
      << absl::StrJoin(command, " ") << ": " << result->stderr_text;
  return std::string(absl::StripAsciiWhitespace(result->stdout_text));
}

void Workbench::InitGit() const {
  Git({"init", "--quiet", "--initial-branch=main"});
  Write(".gitignore", ".optrail/\n");
  Git({"add", ".gitignore"});
}

std::string Workbench::Commit(absl::string_view subject) const {
  Git({"commit", "--quiet", "--allow-empty", "-m", std::string(subject)});
  return Git({"rev-parse", "HEAD"});
}

void Workbench::Write(absl::string_view name, absl::string_view text,
                      bool executable) const {
  const std::string path = Path(name);
  OPTRAIL_CHECK(CreateDirectories(DirectoryOf(path)).ok()) << path;
  OPTRAIL_CHECK(WriteFileAtomically(path, std::string(text)).ok()) << path;
  if (executable) OPTRAIL_CHECK(chmod(path.c_str(), 0755) == 0) << path;
}

std::string Workbench::Record(proto::Run run) const {
  if (run.run_id().empty()) {
    run.set_run_id(tracker::NewRecordId(run.started_unix_ns()));
  }
  const absl::Status status = OpenHistory().AppendRun(run);
  OPTRAIL_CHECK(status.ok()) << status;
  return run.run_id();
}

void Workbench::Delete(absl::string_view name) const {
  std::filesystem::remove_all(Path(name));
}

Json RowWith(const Json& rows, absl::string_view column,
             absl::string_view value) {
  if (!rows.is_array()) return Json();
  for (const Json& row : rows) {
    if (TextOf(row, column) == value) return row;
  }
  return Json();
}

Json At(const Json& row, absl::string_view field) {
  if (!row.is_object()) return Json();
  const auto found = row.find(std::string(field));
  return found == row.end() ? Json() : *found;
}

std::string TextOf(const Json& row, absl::string_view field) {
  const Json found = At(row, field);
  return found.is_string() ? found.get<std::string>() : "";
}

double NumberOf(const Json& row, absl::string_view field) {
  const Json found = At(row, field);
  return found.is_number() ? found.get<double>()
                           : std::numeric_limits<double>::quiet_NaN();
}

std::vector<std::map<std::string, std::string>> ReadCsv(
    const std::string& text) {
  std::vector<std::map<std::string, std::string>> rows;
  std::vector<std::string> header;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.empty()) continue;
    const std::vector<std::string> cells = absl::StrSplit(line, ',');
    if (header.empty()) {
      header = cells;
      continue;
    }
    auto& row = rows.emplace_back();
    for (size_t i = 0; i < cells.size() && i < header.size(); ++i) {
      row[header[i]] = cells[i];
    }
  }
  return rows;
}

bool IsNear(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::abs(a - b) <=
         tolerance * std::max({std::abs(a), std::abs(b), 1e-300});
}

}  // namespace optrail::agreement
