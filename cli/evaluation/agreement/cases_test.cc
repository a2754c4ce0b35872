// Runs every case of cases.h, each in a folder of its own. A known failure is
// printed and passes. One that holds again fails, so that its mark is removed
// and can hide no later break.
//
//   bazel test //cli/evaluation/agreement:cases_test
//   bazel test ... --test_filter='*HeadWithoutARunIsExit3'

#include "cli/evaluation/agreement/cases.h"

#include <unistd.h>

#include <iostream>

#include "absl/strings/str_join.h"
#include "base/file/file.h"
#include "gtest/gtest.h"

namespace optrail::agreement {

// How GoogleTest names the parameter.
void PrintTo(const Case& the_case, std::ostream* out) { *out << the_case.name; }

namespace {

// The first argument of the test; where it is when the folder changes.
std::string* Optrail() {
  static auto* const path = new std::string;
  return path;
}

std::vector<Case> AllCases() {
  std::vector<Case> all;
  for (const auto& group :
       {CandidateCases(), PairCases(), RowCases(), SeriesCases(), PageCases(),
        AnswerCases(), SessionCases(), RecordCases(), ScriptCases()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

class CaseTest : public ::testing::TestWithParam<Case> {};

TEST_P(CaseTest, AllCommandsAgree) {
  const Case& the_case = GetParam();
  Workbench bench(*Optrail(), JoinPath(::testing::TempDir(), the_case.name));
  Findings found;
  the_case.run(bench, found);
  const std::string wrong = absl::StrJoin(found.wrong(), "\n  ");
  const std::string known = the_case.known_failure;
  if (known.empty()) {
    EXPECT_TRUE(found.wrong().empty()) << "  " << wrong;
  } else if (found.wrong().empty()) {
    ADD_FAILURE() << "it holds again; next: remove its known_failure: "
                  << known;
  } else {
    std::cout << "known failure: " << known << "\n  " << wrong << "\n";
  }
  bench.Delete("");
}

INSTANTIATE_TEST_SUITE_P(Cases, CaseTest, ::testing::ValuesIn(AllCases()),
                         [](const ::testing::TestParamInfo<Case>& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace optrail::agreement

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc < 2) {
    std::cerr << "expected the path of the command line as first argument\n";
    return 2;
  }
  char folder[4096];
  const std::string path = argv[1];
  *optrail::agreement::Optrail() =
      path[0] == '/' || getcwd(folder, sizeof folder) == nullptr
          ? path
          : optrail::JoinPath(folder, path);
  return RUN_ALL_TESTS();
}
