#ifndef OPTRAIL_CLI_EVALUATION_AGREEMENT_WORKBENCH_H_
#define OPTRAIL_CLI_EVALUATION_AGREEMENT_WORKBENCH_H_

// Workbench is a scratch folder in which a test makes a history and asks the
// command line about it, as a user would.
//
//   Workbench bench(optrail, folder);
//   bench.Git({"init", "--quiet"});
//   bench.Record(MakeRun(spec, &rng));
//   const Answer answer = bench.Ask({"gate", "--format=json"});
//   if (answer.exit_code == 0) Use(answer.Json());
//
// The history is .optrail/history in the folder. A Workbench is used by one
// thread at a time. What cannot happen in a correct test ends the process.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "tracker/history/history.h"
#include "tracker/proto/run.pb.h"

namespace optrail::agreement {

using Json = nlohmann::json;

// The output of a command.
struct Answer {
  std::string question;  // the command line
  int exit_code = 0;
  std::string out, err;

  // The output as JSON. Several documents one after another, as `show` of a
  // commit with several runs prints them, are one array. Null if it is no JSON.
  Json Parsed() const;
  bool Says(absl::string_view text) const;  // in either stream
};

class Workbench {
 public:
  // A main() that answers in this process, which has everything loaded: a
  // program takes a tenth of a second for that, and a copy of this process a
  // third of it for its pages. It finds no git: no history of such a test has a
  // repository. A command that crashes ends the test, which prints the command.
  using Main = int (*)(int argc, char** argv);

  // Empties `folder`. The command line is the program `optrail`, or `main`.
  Workbench(std::string optrail, std::string folder, Main main = nullptr);

  const std::string& folder() const { return folder_; }
  const std::string& optrail() const { return optrail_; }
  // The path of a file of the source tree that the test has as data.
  std::string Source(absl::string_view name) const;
  std::string Path(absl::string_view name) const;
  std::string HistoryPath() const { return Path(".optrail/history"); }
  tracker::History OpenHistory() const;

  Answer Ask(const std::vector<std::string>& arguments) const;
  // Any other program, in the folder.
  Answer Run(const std::vector<std::string>& command) const;
  // The same with `--format=json`.
  Answer AskJson(std::vector<std::string> arguments) const;

  std::string Git(const std::vector<std::string>& arguments) const;
  void InitGit() const;
  // Adds an empty commit and returns its id. Ids are the same in every test.
  std::string Commit(absl::string_view subject = "change") const;

  // Null where there is no such file or it holds no JSON.
  Json ReadJson(absl::string_view name) const;
  void Write(absl::string_view name, absl::string_view text,
             bool executable = false) const;
  // Adds to the history and returns the run's id.
  std::string Record(proto::Run run) const;
  void Delete(absl::string_view name) const;

 private:
  using Environment = std::vector<std::pair<std::string, std::string>>;

  Answer RunMain(const std::vector<std::string>& command) const;

  std::string optrail_, folder_;
  Main main_;
  Environment environment_;
};

// The row of a table whose `column` is `value`; null if there is none.
Json RowWith(const Json& rows, absl::string_view column,
             absl::string_view value);
// A field; null where it is absent.
Json At(const Json& row, absl::string_view field);
// A field as text; "" where it is absent or null.
std::string TextOf(const Json& row, absl::string_view field);
// A field as number; NaN where it is absent or null.
double NumberOf(const Json& row, absl::string_view field);

// Rows of a CSV with a header and without quotes, by column.
std::vector<std::map<std::string, std::string>> ReadCsv(
    const std::string& text);

// Relative, for numbers that went through text.
bool IsNear(double a, double b, double tolerance = 1e-9);

}  // namespace optrail::agreement

#endif  // OPTRAIL_CLI_EVALUATION_AGREEMENT_WORKBENCH_H_
