#include "tracker/notify/notify.h"

#include <string>

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

GateReport RedReport(const std::string& name) {
  GateReport report;
  report.exit_code = 1;
  report.summary = "red";
  GateRow row;
  row.row.name = name;
  row.row.metric = "time";
  row.row.verdict = Verdict::kSlower;
  row.row.reason = "8% worse";
  row.action = proto::FAIL;
  report.rows.push_back(row);
  return report;
}

TEST(Annotations, AreEscapedForEachService) {
  const Annotation hostile = {true, "a,b::c", "50% \n::error::x ]; |'["};
  const std::string github = Annotations(AnnotationStyle::kGithub, {hostile});
  EXPECT_THAT(github, HasSubstr("::error title=a%2Cb%3A%3Ac::50%25 "));
  EXPECT_EQ(std::count(github.begin(), github.end(), '\n'), 1);
  const std::string azure = Annotations(AnnotationStyle::kAzure, {hostile});
  EXPECT_THAT(azure, HasSubstr("##vso[task.logissue type=error]"));
  EXPECT_THAT(azure, HasSubstr("%5D%3B"));
  EXPECT_EQ(std::count(azure.begin(), azure.end(), '\n'), 1);
  const std::string city = Annotations(AnnotationStyle::kTeamcity, {hostile});
  EXPECT_THAT(city, HasSubstr("|]; |||'|["));
}

TEST(Annotations, BeyondTheLimitAreCounted) {
  const std::vector<Annotation> many(13, {true, "t", "x"});
  EXPECT_THAT(Annotations(AnnotationStyle::kGithub, many),
              HasSubstr("3 more are not annotated"));
  EXPECT_THAT(std::string(ParseAnnotationStyle("gitea").status().message()),
              HasSubstr("--annotations=gitea: expected github"));
}

TEST(Badge, IsMarkupOfOursOnly) {
  const std::string svg = BadgeSvg("<script>", "a&b\"", "#fff");
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(svg, HasSubstr("a&amp;b&quot;"));
}

TEST(Alert, GetsJsonAndFailsWithItsLastWords) {
  const std::string file = JoinPath(::testing::TempDir(), "alert.json");
  EXPECT_TRUE(RunAlert("cat > " + file, "{\"x\": 1}").ok());
  EXPECT_EQ(*ReadFile(file), "{\"x\": 1}");
  EXPECT_THAT(
      std::string(RunAlert("echo no route >&2; exit 3", "{}").message()),
      HasSubstr("exited with code 3: no route"));
  EXPECT_THAT(std::string(RunAlert("while :; do read x; done", "{}",
                                   absl::Milliseconds(50))
                              .message()),
              HasSubstr("timed out"));
  // Its words are shown as lines, and do nothing to a terminal.
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(RunAlert("printf 'told\\nthree \\033[2Jpeople\\n'", "{}").ok());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "told\nthree \\x1b[2Jpeople\n");
  // A command that does not read is no failure.
  EXPECT_TRUE(RunAlert("true", std::string(1 << 20, 'x')).ok());
}

TEST(Publish, WritesEverythingThatIsAskedFor) {
  GateOutputs outputs;
  const std::string folder = JoinPath(::testing::TempDir(), "publish/new");
  outputs.verdict_out = JoinPath(folder, "verdict.json");
  outputs.markdown_out = JoinPath(folder, "gate.md");
  outputs.badge_out = JoinPath(folder, "badge.svg");
  outputs.annotations = "github";
  outputs.alert_command = "cat > " + JoinPath(folder, "alert.json");
  ::testing::internal::CaptureStderr();
  ASSERT_TRUE(Publish(outputs, RedReport("BM_x")).ok());
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      HasSubstr("::error title=performance%3A BM_x::slower (time): 8%"));
  EXPECT_EQ(*ReadFile(outputs.verdict_out),
            *ReadFile(JoinPath(folder, "alert.json")));
  EXPECT_THAT(*ReadFile(outputs.badge_out), HasSubstr("1 worse"));
  // All is well: nobody is told.
  ASSERT_TRUE(RemoveFile(JoinPath(folder, "alert.json")).ok());
  ASSERT_TRUE(Publish(outputs,
                      [] {
                        GateReport fine;
                        fine.exit_code = 0;
                        return fine;
                      }())
                  .ok());
  EXPECT_FALSE(FileExists(JoinPath(folder, "alert.json")));
  EXPECT_THAT(*ReadFile(outputs.badge_out), HasSubstr("fine"));
}

}  // namespace
}  // namespace optrail::tracker
