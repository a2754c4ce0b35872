#include "tracker/notify/junit.h"

#include <expat.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

GateRow Row(const std::string& name, Verdict verdict, proto::Action action,
            const std::string& suite = "smoke") {
  GateRow row;
  row.row.name = name;
  row.row.metric = "time";
  row.row.verdict = verdict;
  row.row.reason = "the reason of " + name;
  row.action = action;
  row.suite = suite;
  row.hardware_id = "amd-2c";
  return row;
}

// The children and attributes in the schema that CI services agree on.
const std::map<std::string, std::vector<std::string>>& Children() {
  static const auto* const children =
      new std::map<std::string, std::vector<std::string>>{
          {"testsuites", {"testsuite"}},
          {"testsuite", {"properties", "testcase", "system-out", "system-err"}},
          {"testcase", {"failure", "error", "skipped"}}};
  return *children;
}

const std::map<std::string, std::vector<std::string>>& Required() {
  static const auto* const attributes =
      new std::map<std::string, std::vector<std::string>>{
          {"testsuites", {}},
          {"testsuite",
           {"id", "package", "name", "hostname", "timestamp", "tests",
            "failures", "errors", "time"}},
          {"testcase", {"name", "classname", "time"}},
          {"failure", {"message", "type"}},
          {"error", {"message", "type"}}};
  return *attributes;
}

// Reads a document and fails the test where it breaks the schema.
class Reader {
 public:
  explicit Reader(const std::string& xml) {
    XML_Parser parser = XML_ParserCreate(nullptr);
    XML_SetUserData(parser, this);
    XML_SetElementHandler(
        parser,
        [](void* self, const char* name, const char** attributes) {
          static_cast<Reader*>(self)->Start(name, attributes);
        },
        [](void* self, const char*) {
          static_cast<Reader*>(self)->open_.pop_back();
        });
    EXPECT_EQ(XML_Parse(parser, xml.data(), static_cast<int>(xml.size()), 1),
              XML_STATUS_OK)
        << XML_ErrorString(XML_GetErrorCode(parser)) << "\n"
        << xml;
    XML_ParserFree(parser);
    for (const char* result : {"failure", "error"}) {
      EXPECT_EQ(said_[absl::StrCat(result, "s")], count[result]) << xml;
    }
    EXPECT_EQ(said_["skipped"], count["skipped"]) << xml;
    EXPECT_EQ(said_["tests"], count["testcase"]) << xml;
  }

  std::map<std::string, int> count;  // elements by name
  std::vector<std::string> names;    // of test cases

 private:
  void Start(const std::string& name, const char** attributes) {
    if (open_.empty()) {
      EXPECT_EQ(name, "testsuites");
    } else {
      EXPECT_THAT(Children().at(open_.back()), ::testing::Contains(name));
    }
    ++count[name];
    std::map<std::string, std::string> given;
    for (; attributes[0] != nullptr; attributes += 2) {
      given[attributes[0]] = attributes[1];
    }
    if (Required().count(name) > 0) {
      for (const std::string& attribute : Required().at(name)) {
        EXPECT_EQ(given.count(attribute), 1) << name << " lacks " << attribute;
      }
    }
    if (name == "testcase") names.push_back(given["name"]);
    if (name == "testsuite") {
      for (const char* which : {"tests", "failures", "errors", "skipped"}) {
        int value = 0;
        EXPECT_TRUE(absl::SimpleAtoi(given[which], &value)) << given[which];
        said_[which] += value;
      }
    }
    open_.push_back(name);
  }

  std::vector<std::string> open_;
  std::map<std::string, int> said_;
};

TEST(GateJunit, SaysOfEachRowWhatTheGateDoes) {
  GateReport report;
  report.exit_code = 1;
  report.rows = {Row("slow", Verdict::kSlower, proto::FAIL),
                 Row("unclear", Verdict::kCannotTell, proto::FAIL),
                 Row("let pass", Verdict::kCannotTell, proto::WARN),
                 Row("warned", Verdict::kSlowerInMostSamples, proto::WARN),
                 Row("same", Verdict::kUnchanged, proto::IGNORE, "other")};
  const std::string xml = GateJunit(report);
  Reader reader(xml);
  EXPECT_EQ(reader.count["testsuite"], 2);
  EXPECT_EQ(reader.count["testcase"], 5);
  EXPECT_EQ(reader.count["failure"], 1);
  EXPECT_EQ(reader.count["error"], 1);
  EXPECT_EQ(reader.count["skipped"], 1);
  EXPECT_THAT(xml, HasSubstr("the reason of slow"));
  EXPECT_THAT(xml, HasSubstr("warned (time): slower in most samples"));
}

TEST(GateJunit, NoGateThatDoesNotPassHasAFileThatPasses) {
  GateReport report;
  report.exit_code = 3;
  report.reason = GateReason::kNoCandidate;
  report.summary = "no run of commit 1a2b3c4d5e6f";
  EXPECT_EQ(Reader(GateJunit(report)).count["error"], 1);
  EXPECT_THAT(GateJunit(report), HasSubstr(report.summary));
  // Nothing was measured: the time is that of the gate.
  EXPECT_THAT(GateJunit(report), Not(HasSubstr("timestamp=\"1970")));
  report.rows = {Row("same", Verdict::kUnchanged, proto::IGNORE)};
  EXPECT_EQ(Reader(GateJunit(report)).count["error"], 1);
  report.exit_code = 0;
  EXPECT_EQ(Reader(GateJunit(report)).count["error"], 0);
}

TEST(GateJunit, NamesAreTextWhateverTheyHold) {
  GateReport report;
  report.exit_code = 1;
  report.rows = {
      Row("</testcase><x y=\"]]>&\x1b\xff\n'", Verdict::kSlower, proto::FAIL),
      Row("\xef\xbf\xbf", Verdict::kSlower, proto::FAIL)};
  EXPECT_THAT(Reader(GateJunit(report)).names,
              ElementsAre("</testcase><x y=\"]]>&\\x1b\\xff\\n' (time)",
                          "\\uffff (time)"));
}

}  // namespace
}  // namespace optrail::tracker
