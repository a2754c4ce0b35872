// Exports are read by a checker that takes what the specification of
// OpenMetrics 1.0.0 allows, and nothing else.

#include "tracker/history/index/open_metrics.h"

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "re2/re2.h"
#include "tracker/history/history.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;

constexpr char kLabel[] =
    R"re([a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*")re";

// The samples by name and labels; a failure of the test for each line that
// breaks a rule.
class OpenMetricsReader {
 public:
  explicit OpenMetricsReader(const std::string& text) {
    EXPECT_TRUE(absl::EndsWith(text, "\n")) << "ends without a line feed";
    std::vector<std::string> lines = absl::StrSplit(text, '\n');
    lines.pop_back();
    EXPECT_FALSE(lines.empty());
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i + 1 == lines.size()) {
        EXPECT_EQ(lines[i], "# EOF");
      } else if (absl::StartsWith(lines[i], "#")) {
        ReadMetadata(lines[i]);
      } else {
        ReadSample(lines[i]);
      }
    }
  }

  const std::map<std::string, double>& samples() const { return samples_; }

 private:
  struct Family {
    std::string type, unit;
    bool has_help = false;
  };

  void ReadMetadata(const std::string& line) {
    static const RE2* const kLine =
        new RE2("# (TYPE|UNIT|HELP) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)");
    std::string what, name, value;
    ASSERT_TRUE(RE2::FullMatch(line, *kLine, &what, &name, &value)) << line;
    if (name != family_) {
      EXPECT_TRUE(seen_.insert(name).second) << name << " is interleaved";
      family_ = name;
      of_family_ = {};
      has_samples_ = false;
    }
    EXPECT_FALSE(has_samples_) << "metadata after samples: " << line;
    if (what == "TYPE") {
      EXPECT_EQ(of_family_.type, "") << "two types: " << line;
      EXPECT_TRUE(value == "gauge" || value == "info") << line;
      of_family_.type = value;
    } else if (what == "UNIT") {
      EXPECT_EQ(of_family_.unit, "") << "two units: " << line;
      EXPECT_NE(of_family_.type, "info") << "an info has no unit: " << line;
      EXPECT_TRUE(absl::EndsWith(name, absl::StrCat("_", value)))
          << "the name must end with the unit: " << line;
      of_family_.unit = value;
    } else {
      EXPECT_FALSE(of_family_.has_help) << "two helps: " << line;
      of_family_.has_help = true;
    }
  }

  void ReadSample(const std::string& line) {
    static const RE2* const kLine =
        new RE2(absl::StrCat("([a-zA-Z_:][a-zA-Z0-9_:]*)\\{(", kLabel, "(?:,",
                             kLabel, ")*)\\} ([^ ]+)"));
    std::string name, labels, number;
    ASSERT_TRUE(RE2::FullMatch(line, *kLine, &name, &labels, &number)) << line;
    EXPECT_EQ(name, of_family_.type == "info" ? family_ + "_info" : family_)
        << "a sample of another family: " << line;
    has_samples_ = true;
    std::set<std::string> names;
    re2::StringPiece rest(labels);
    static const RE2* const kNext =
        new RE2(R"re(,?([a-zA-Z_][a-zA-Z0-9_]*)="(?:[^"\\]|\\.)*")re");
    std::string label;
    while (RE2::Consume(&rest, *kNext, &label)) {
      EXPECT_TRUE(names.insert(label).second) << "a label twice: " << line;
    }
    double value = 0;
    EXPECT_TRUE(absl::SimpleAtod(number, &value) && std::isfinite(value))
        << line;
    if (of_family_.type == "info") {
      EXPECT_EQ(value, 1) << line;
    }
    EXPECT_TRUE(
        samples_.emplace(absl::StrCat(name, "{", labels, "}"), value).second)
        << "a sample twice: " << line;
  }

  std::string family_;
  Family of_family_;
  bool has_samples_ = false;
  std::set<std::string> seen_;
  std::map<std::string, double> samples_;
};

proto::Run RunAt(int64_t minute, const std::string& commit,
                 const std::string& benchmark, double time_ns) {
  proto::Run run;
  run.set_started_unix_ns(minute * 60'000'000'000);
  run.set_run_id(NewRecordId(run.started_unix_ns()));
  run.set_suite("s");
  run.mutable_commit()->set_id(commit);
  run.mutable_commit()->set_branch("main");
  run.mutable_hardware()->set_id("amd-2c");
  proto::BenchmarkResult* result = run.add_results();
  result->mutable_key()->set_operator_name(benchmark);
  result->set_outcome(proto::OK);
  proto::Measurement* measurement = result->add_measurements();
  measurement->set_median_ns(time_ns);
  measurement->set_calls_per_sample(1);
  measurement->add_sample_ns(static_cast<int64_t>(time_ns));
  for (const auto& [metric, unit, value] :
       {std::make_tuple("memory", "B", 4096.), {"throughput", "1/s", 2.5}}) {
    proto::MetricSamples* samples = measurement->add_metrics();
    samples->set_metric(metric);
    samples->set_unit(unit);
    samples->add_values(value);
  }
  return run;
}

class OpenMetricsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "/open_metrics_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    history_ =
        std::make_unique<History>(*History::Open(JoinPath(folder, "history")));
  }

  std::string Export(int64_t series) {
    const auto index = HistoryIndex::Open(*history_);
    EXPECT_TRUE(index.ok()) << index.status();
    std::ostringstream out;
    const auto count = ExportOpenMetrics(**index, {}, out);
    EXPECT_TRUE(count.ok()) << count.status();
    EXPECT_EQ(count.value_or(-1), series);
    return out.str();
  }

  std::unique_ptr<History> history_;
};

TEST_F(OpenMetricsTest, TheNewestValueIsInBaseUnits) {
  ASSERT_TRUE(
      history_->AppendRun(RunAt(1, std::string(40, 'a'), "x", 900)).ok());
  ASSERT_TRUE(
      history_->AppendRun(RunAt(2, std::string(40, 'b'), "x", 1500)).ok());
  const OpenMetricsReader reader(Export(3));
  const auto value = [&](const std::string& sample) {
    const auto found = reader.samples().find(sample);
    EXPECT_NE(found, reader.samples().end())
        << sample << " is not among "
        << ::testing::PrintToString(reader.samples());
    return found == reader.samples().end() ? NAN : found->second;
  };
  const std::string of = R"(hardware="amd-2c",branch="main")";
  EXPECT_DOUBLE_EQ(value("optrail_benchmark_seconds{benchmark=\"x\",metric="
                         "\"time\"," +
                         of + "}"),
                   1.5e-6);
  EXPECT_EQ(value("optrail_benchmark_bytes{benchmark=\"x\",metric=\"memory\"," +
                  of + "}"),
            4096);
  EXPECT_EQ(value("optrail_benchmark_value{benchmark=\"x\",metric="
                  "\"throughput\"," +
                  of + ",unit=\"1/s\"}"),
            2.5);
  EXPECT_EQ(value("optrail_benchmark_measured_timestamp_seconds{benchmark="
                  "\"x\",metric=\"time\"," +
                  of + ",unit=\"ns\"}"),
            120);
  EXPECT_EQ(value("optrail_benchmark_commit_info{benchmark=\"x\",metric="
                  "\"time\"," +
                  of + ",unit=\"ns\",commit=\"" + std::string(40, 'b') + "\"}"),
            1);
}

TEST_F(OpenMetricsTest, NamesAreEscaped) {
  ASSERT_TRUE(
      history_->AppendRun(RunAt(1, "abc", "a\"b\\c{d=\"e\"} 1\n# EOF\nf", 900))
          .ok());
  const std::string text = Export(3);
  EXPECT_EQ(OpenMetricsReader(text).samples().size(), 9);
  EXPECT_THAT(text, HasSubstr("\\\""));
}

TEST_F(OpenMetricsTest, AnEmptyHistoryIsAnEmptyDocument) {
  EXPECT_EQ(Export(0), "# EOF\n");
}

}  // namespace
}  // namespace optrail::tracker
