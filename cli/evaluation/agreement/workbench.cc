#include "cli/evaluation/agreement/workbench.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <limits>
#include <sstream>

#include "absl/flags/reflection.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"

namespace optrail::agreement {
namespace {

// Takes what is written to a stream of this process while it lives.
class Redirected {
 public:
  explicit Redirected(int stream)
      : stream_(stream), before_(dup(stream)), file_(memfd_create("taken", 0)) {
    OPTRAIL_CHECK(before_ >= 0 && file_ >= 0 && dup2(file_, stream_) >= 0);
  }
  ~Redirected() {
    dup2(before_, stream_);
    close(before_);
    close(file_);
  }

  std::string Text() const {
    std::string text(lseek(file_, 0, SEEK_END), '\0');
    OPTRAIL_CHECK(pread(file_, text.data(), text.size(), 0) ==
                  static_cast<ssize_t>(text.size()));
    return text;
  }

 private:
  int stream_, before_, file_;
};

// The command that is running, for a handler of its crash or of its alarm.
char running[4096];

void NameTheCommand(int signal) {
  (void)!write(STDERR_FILENO, running, std::strlen(running));
  std::signal(signal, SIG_DFL);
  raise(signal);
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
  if (main_ == nullptr) return;
  environment_.push_back({"PATH", folder_});
  for (const auto& [name, value] : environment_) {
    setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
  }
  for (const int signal : {SIGSEGV, SIGABRT, SIGALRM}) {
    std::signal(signal, NameTheCommand);
  }
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

Answer Workbench::RunMain(const std::vector<std::string>& command) const {
  std::vector<std::string> words = command;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::snprintf(running, sizeof(running), "\nended by: %s\nin %s\n",
                absl::StrJoin(command, " ").c_str(), folder_.c_str());
  std::cout.flush();
  std::fflush(nullptr);
  const Redirected out(STDOUT_FILENO), err(STDERR_FILENO);
  const absl::FlagSaver flags;  // says each flag that it restores
  OPTRAIL_CHECK(chdir(folder_.c_str()) == 0);
  alarm(300);
  Answer answer;
  answer.exit_code = main_(static_cast<int>(words.size()), argv.data());
  alarm(0);
  std::cout.flush();
  std::fflush(nullptr);
  answer.out = out.Text();
  answer.err = err.Text();
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
