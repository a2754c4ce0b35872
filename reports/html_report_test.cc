#include "reports/html_report.h"

#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "reports/build_report_data.h"
#include "reports/json_report.h"
#include "reports/markdown_report.h"
#include "reports/sample/sample_history.h"

namespace optrail::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ReportData SampleData(bool hostile) {
  SampleOptions options;
  options.commits = 12;
  options.shapes_per_operator = 1;
  options.hostile_names = hostile;
  const SampleHistory history = MakeSampleHistory(options);
  return BuildReportData(history.runs, history.sessions, {});
}

// Series that keep every point worth drawing: levels, spread, configs.
ReportData LargeData(
    int series_count, int points,
    const std::function<void(int, tracker::Point&)>& alter = nullptr) {
  ReportData data;
  data.hardware.push_back({});
  data.hardware[0].id = "test";
  for (int i = 0; i < points; ++i) {
    Commit commit;
    commit.id = absl::StrCat(100000000 + i * 7919);
    commit.subject = "a commit with a subject of usual length";
    data.commits.push_back(commit);
  }
  const auto tracked =
      std::make_shared<std::vector<tracker::Series>>(series_count);
  data.tracked = tracked;
  for (int s = 0; s < series_count; ++s) {
    tracker::Series& series = (*tracked)[s];
    series.key.metric = "time";
    series.key.unit = "ns";
    series.epochs.resize(1);
    SeriesView view;
    view.of = &series;
    view.name = absl::StrCat("operator/cpu/m=", s, ",n=512/f32/tuned/hot");
    view.operator_name = absl::StrCat("operator", s % 20);
    view.family = view.operator_name;
    view.shape = absl::StrCat("m=", s, ",n=512/f32");
    for (int i = 0; i < points; ++i) {
      tracker::Point point;
      point.outcome = proto::OK;
      tracker::PointRuns runs;
      runs.first_started_unix_ns = int64_t{1790000000} * 1000000000 + i;
      point.runs = std::make_shared<const tracker::PointRuns>(runs);
      point.value = 123456.789 + (i * 7919 + s) % 1009;
      for (const double share : {0.991, 0.998, 1., 1.003, 1.017}) {
        point.processes.push_back({*point.value * share});
      }
      tracker::ResultAttributes attributes;
      attributes.config = i > points / 2 ? "a=2,b=2" : "a=1,b=2";
      point.attributes =
          std::make_shared<const tracker::ResultAttributes>(attributes);
      if (alter) alter(i, point);
      series.points.push_back(std::move(point));
      view.commits.push_back(i);
    }
    data.series.push_back(view);
  }
  return data;
}

std::string DataElement(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

int Count(const std::string& text, const std::string& what) {
  int count = 0;
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

TEST(HtmlReportTest, HostileNamesAddNoMarkup) {
  const std::string plain = WriteHtmlReport(SampleData(false));
  ReportData data = SampleData(true);
  data.title = "</title><script>document.title='owned'</script>";
  const std::string hostile = WriteHtmlReport(data);
  EXPECT_EQ(Count(hostile, "<script"), Count(plain, "<script"));
  EXPECT_EQ(Count(hostile, "</script"), Count(plain, "</script"));
  EXPECT_EQ(Count(hostile, "<!--"), Count(plain, "<!--"));
  EXPECT_EQ(Count(hostile, "<img"), Count(plain, "<img"));
  const std::string json = DataElement(hostile);
  for (const char c : json) {
    ASSERT_TRUE(c >= 0x20 && c < 0x7f && c != '<' && c != '>' && c != '&');
  }
}

TEST(HtmlReportTest, HostileNamesArriveUnchanged) {
  const std::string page = WriteHtmlReport(SampleData(true));
  const nlohmann::json data = nlohmann::json::parse(DataElement(page));
  std::vector<std::string> names;
  for (const auto& series : data["series"]) names.push_back(series["n"]);
  EXPECT_THAT(names, ::testing::Contains(HostileNames()[0]));
  EXPECT_THAT(names, ::testing::Contains(HostileNames()[4]));
}

TEST(HtmlReportTest, ForbidsNetworkAndForeignScripts) {
  const std::string page = WriteHtmlReport(SampleData(false));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_EQ(Count(page.substr(0, 2000), "'sha256-"), 2);
  EXPECT_THAT(page.substr(0, 2000), Not(HasSubstr("script-src 'unsafe")));
  EXPECT_EQ(Count(page, "src=\"http"), 0);
  EXPECT_EQ(Count(page, "<link"), 0);
}

TEST(HtmlReportTest, CarriesTheLicenceOfECharts) {
  EXPECT_THAT(WriteHtmlReport({}), HasSubstr("Apache License"));
}

TEST(HtmlReportTest, IsTheSameForTheSameData) {
  EXPECT_EQ(WriteHtmlReport(SampleData(true)),
            WriteHtmlReport(SampleData(true)));
}

TEST(HtmlReportTest, AThousandSeriesOfAThousandPointsStayBelowSixMegabytes) {
  const std::string page = WriteHtmlReport(LargeData(1000, 1000));
  EXPECT_LT(page.size(), 6'000'000);
  const nlohmann::json data = nlohmann::json::parse(DataElement(page));
  ASSERT_EQ(data["series"].size(), 1000);
  EXPECT_EQ(data["series"][0]["t"], 1000);
  // Enough remains to draw, and the newest points do.
  EXPECT_GT(data["series"][0]["y"].size(), 50);
  EXPECT_EQ(data["series"][0]["c"].back(), 999);
}

TEST(HtmlReportTest, KeepsToASmallerBoundToo) {
  HtmlReportOptions options;
  options.max_bytes = 2'000'000;
  EXPECT_LT(WriteHtmlReport(LargeData(500, 300), options).size(), 2'000'000);
}

TEST(HtmlReportTest, UnknownNumbersAreNullAndNeverZero) {
  const ReportData data = LargeData(1, 3, [](int i, tracker::Point& point) {
    if (i == 1) point.value.reset();
    if (i != 2) return;
    point.value = std::numeric_limits<double>::infinity();
    point.processes = {{std::numeric_limits<double>::quiet_NaN()}};
  });
  const nlohmann::json json =
      nlohmann::json::parse(DataElement(WriteHtmlReport(data)));
  EXPECT_TRUE(json["series"][0]["y"][1].is_null());
  EXPECT_TRUE(json["series"][0]["y"][2].is_null());
  // A member that is null is left out; the page adds it.
  EXPECT_FALSE(json["series"][0].contains("f"));
  const nlohmann::json full = nlohmann::json::parse(WriteJsonReport(data));
  EXPECT_TRUE(full["series"][0]["points"][1]["value"].is_null());
}

TEST(JsonReportTest, HoldsEveryPointUnrounded) {
  const nlohmann::json json =
      nlohmann::json::parse(WriteJsonReport(LargeData(3, 700)));
  EXPECT_EQ(json["schema"], 1);
  ASSERT_EQ(json["series"][2]["points"].size(), 700);
  EXPECT_EQ(json["series"][0]["points"][0]["value"], 123456.789);
}

TEST(JsonReportTest, TheMatrixNamesTheSeriesOfEachHardware) {
  // Benchmarks with other numbers of threads are others.
  SampleHistory history = MakeSampleHistory({});
  for (proto::Run& run : history.runs) {
    for (proto::BenchmarkResult& result : *run.mutable_results()) {
      result.mutable_key()->set_threads(1);
    }
  }
  const nlohmann::json json = nlohmann::json::parse(
      WriteJsonReport(BuildReportData(history.runs, history.sessions, {})));
  const nlohmann::json& matrix = json["by_hardware"];
  ASSERT_GE(matrix["hardware"].size(), 2);
  ASSERT_FALSE(matrix["rows"].empty());
  for (const nlohmann::json& row : matrix["rows"]) {
    ASSERT_EQ(row["series"].size(), matrix["hardware"].size());
    bool has_worst = false;
    for (size_t i = 0; i < row["series"].size(); ++i) {
      if (row["series"][i].is_null()) continue;
      const nlohmann::json& series =
          json["series"][row["series"][i].get<int>()];
      EXPECT_EQ(series["name"], row["name"]);
      EXPECT_EQ(series["branch"], row["branch"]);
      EXPECT_EQ(series["hardware"], matrix["hardware"][i]);
      has_worst |= series["verdict"] == row["worst"];
    }
    EXPECT_TRUE(has_worst) << row.dump();
  }
}

TEST(MarkdownReportTest, ListsWhatWantsAttention) {
  SampleOptions options;
  const SampleHistory history = MakeSampleHistory(options);
  const std::string text =
      WriteMarkdownReport(BuildReportData(history.runs, history.sessions, {}));
  EXPECT_THAT(text, HasSubstr("slower | `softmax/cpu"));
  EXPECT_THAT(text, HasSubstr("### Default vs tuned"));
  EXPECT_THAT(text, HasSubstr("22 more are not listed"));
}

TEST(MarkdownReportTest, NamesAndCommitsOnlyShow) {
  SampleOptions options;
  SampleHistory history = MakeSampleHistory(options);
  for (proto::Run& run : history.runs) {
    run.mutable_commit()->set_subject("fixes #12, thanks @team: www.evil.test");
  }
  const std::string text =
      WriteMarkdownReport(BuildReportData(history.runs, history.sessions, {}));
  EXPECT_THAT(text, HasSubstr("fixes `#12`, thanks `@team: www.evil.test`"));
  const std::string id = history.runs.back().commit().id().substr(0, 8);
  EXPECT_THAT(text, HasSubstr(absl::StrCat("Newest commit: `", id, "` fixes")));
}

TEST(MarkdownReportTest, SaysWhatToDoWithoutData) {
  EXPECT_THAT(WriteMarkdownReport({}), HasSubstr("optrail bench --record"));
}

}  // namespace
}  // namespace optrail::reports
