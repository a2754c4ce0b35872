#include "tracker/workload/workload_time.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

void AddLayer(proto::Run& run, const std::string& op, const std::string& shape,
              int count, const std::string& part = "",
              const std::string& way = "") {
  proto::WorkloadLayer* layer = run.add_workload_layers();
  layer->set_operator_name(op);
  layer->set_shape(shape);
  layer->set_count(count);
  layer->set_part(part);
  layer->set_way(way);
}

void AddResult(proto::Run& run, const std::string& op, const std::string& shape,
               proto::ConfigSelection selection, const std::string& backend,
               double time_ns, proto::Outcome outcome = proto::OK) {
  proto::BenchmarkResult* result = run.add_results();
  proto::BenchmarkKey* key = result->mutable_key();
  key->set_operator_name(op);
  key->set_device_kind(proto::CPU);
  *key->mutable_shape() = *tuning::ParseShape(shape);
  key->set_selection(selection);
  key->set_threads(1);
  key->set_backend(backend);
  result->set_outcome(outcome);
  for (const double factor : {0.9, 1.0, 5.0}) {
    result->add_measurements()->set_median_ns(time_ns * factor);
  }
}

// linear (fused) 24 x 100 us by default, 80 tuned, 50 by onednn; add 48 x 1 us;
// beside it matmul and gelu, 90 and 30 us.
class WorkloadTimeTest : public testing::Test {
 protected:
  WorkloadTimeTest() {
    run_.set_workload("model");
    AddLayer(run_, "add", "n=8/f32", 48);
    AddLayer(run_, "linear", "m=1,n=1,k=1/f32", 24, "ffn", "fused");
    AddLayer(run_, "matmul", "m=1,n=1,k=1/f32", 24, "ffn", "separate");
    AddLayer(run_, "gelu", "n=8/f32", 24, "ffn", "separate");
    AddResult(run_, "add", "n=8/f32", proto::DEFAULT, "", 1e3);
    AddResult(run_, "linear", "m=1,n=1,k=1/f32", proto::DEFAULT, "", 100e3);
    AddResult(run_, "linear", "m=1,n=1,k=1/f32", proto::TUNED, "", 80e3);
    AddResult(run_, "linear", "m=1,n=1,k=1/f32", proto::DEFAULT, "onednn",
              50e3);
    AddResult(run_, "linear", "m=1,n=1,k=1/f32", proto::DEFAULT, "wrong", 1,
              proto::WRONG_RESULT);
    AddResult(run_, "matmul", "m=1,n=1,k=1/f32", proto::DEFAULT, "", 90e3);
    AddResult(run_, "gelu", "n=8/f32", proto::DEFAULT, "", 30e3);
  }

  WorkloadTime time() const {
    const std::vector<WorkloadTime> times = WorkloadTimes(run_);
    EXPECT_EQ(times.size(), 1);
    return times.at(0);
  }

  proto::Run run_;
};

TEST_F(WorkloadTimeTest, CountsCallsAndPutsTheSlowestFirst) {
  const WorkloadTime time = this->time();
  ASSERT_EQ(time.layers.size(), 4);
  EXPECT_EQ(time.layers[0].layer.operator_name(), "matmul");
  EXPECT_FALSE(time.layers[0].counts);
  const LayerTime& linear = time.layers[1];
  EXPECT_EQ(linear.layer.operator_name(), "linear");
  EXPECT_DOUBLE_EQ(linear.default_ns, 24 * 100e3);
  EXPECT_DOUBLE_EQ(linear.tuned_ns, 24 * 80e3);
  EXPECT_DOUBLE_EQ(linear.best_ns, 24 * 50e3);
  EXPECT_EQ(linear.best_backend, "onednn");
  EXPECT_DOUBLE_EQ(time.layers[3].best_ns, 48 * 1e3);
  EXPECT_EQ(time.threads, 1);
}

TEST_F(WorkloadTimeTest, OneConfigReadTwiceGainsNothing) {
  AddResult(run_, "add", "n=8/f32", proto::TUNED, "", 1.21e3);
  for (proto::BenchmarkResult& result : *run_.mutable_results()) {
    if (result.key().operator_name() == "add") result.set_config("unroll=1");
  }
  const WorkloadTime time = this->time();
  const auto add = std::find_if(time.layers.begin(), time.layers.end(),
                                [](const LayerTime& layer) {
                                  return layer.layer.operator_name() == "add";
                                });
  ASSERT_NE(add, time.layers.end());
  EXPECT_NEAR(add->default_ns, 48 * 1.1e3, 1);
  EXPECT_EQ(add->tuned_ns, add->default_ns);
  EXPECT_EQ(add->best_ns, add->default_ns);
  EXPECT_EQ(add->best_backend, "cpu");
}

TEST_F(WorkloadTimeTest, ALibraryBetweenTwoReadingsOfOneConfigIsTheBest) {
  AddResult(run_, "add", "n=8/f32", proto::TUNED, "", 1.21e3);
  for (proto::BenchmarkResult& result : *run_.mutable_results()) {
    if (result.key().operator_name() == "add") result.set_config("unroll=1");
  }
  AddResult(run_, "add", "n=8/f32", proto::DEFAULT, "onednn", 1.05e3);
  const WorkloadTime time = this->time();
  const LayerTime& add = time.layers.back();
  EXPECT_EQ(add.layer.operator_name(), "add");
  EXPECT_EQ(add.best_backend, "onednn");
  EXPECT_NEAR(add.best_ns, 48 * 1.05e3, 1);
}

TEST_F(WorkloadTimeTest, AnotherWayIsComparedAndNotCounted) {
  const std::string text = WorkloadSummary(time());
  // 2.448 ms by default, 1.968 tuned, 1.248 by the best; 2.88 ms apart.
  EXPECT_THAT(text, HasSubstr("2 of 2 layers"));
  EXPECT_THAT(text, HasSubstr("(1.24x)"));
  EXPECT_THAT(text, HasSubstr("(1.96x)"));
  EXPECT_THAT(text, HasSubstr("ffn: fused"));
  EXPECT_THAT(text, HasSubstr("(2.40x)"));
}

TEST_F(WorkloadTimeTest, ALayerWithoutAReadingIsNamed) {
  AddLayer(run_, "softmax", "rows=1,cols=2/f32", 3);
  const std::string text = WorkloadSummary(time());
  EXPECT_THAT(text, HasSubstr("2 of 3 layers"));
  EXPECT_THAT(text, HasSubstr("not measured: softmax rows=1,cols=2/f32\n"));
  for (const char* shape : {"rows=1,cols=3/f32", "rows=1,cols=4/f32",
                            "rows=1,cols=5/f32", "rows=1,cols=6/f32"}) {
    AddLayer(run_, "softmax", shape, 3);
  }
  EXPECT_THAT(WorkloadSummary(this->time()),
              HasSubstr("softmax rows=1,cols=4/f32 and 2 more\n"));
}

TEST_F(WorkloadTimeTest, SharesAddUpOverWhatCounts) {
  const std::string csv = WorkloadTable(time()).ToCsv();
  EXPECT_THAT(csv, HasSubstr("ffn, separate"));
  EXPECT_THAT(csv, HasSubstr("0.961"));  // 1200 of 1248 us
}

TEST_F(WorkloadTimeTest, AWayThatWasNotMeasuredWholeIsNotCompared) {
  ASSERT_EQ(time().parts.size(), 1);
  run_.mutable_results()->RemoveLast();  // gelu
  EXPECT_TRUE(time().parts.empty());
  EXPECT_THAT(WorkloadSummary(time()), Not(HasSubstr("separate")));
}

TEST_F(WorkloadTimeTest, HostileNamesStayOffTheTerminal) {
  WorkloadTime hostile = time();
  hostile.name = "\x1b[31m";
  hostile.parts[0].part = "a\x1b]0;b\x07";
  hostile.parts[0].ways[1].way = "c\nd";
  hostile.missing = {"\x1b"};
  const std::string text = WorkloadSummary(hostile);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("c\\nd"));
}

TEST_F(WorkloadTimeTest, NothingTunedIsNotCalledTuned) {
  EXPECT_EQ(time().tuned, 1);
  EXPECT_THAT(WorkloadSummary(time()), HasSubstr("in 1 of them (1.24x)"));
  for (proto::BenchmarkResult& result : *run_.mutable_results()) {
    if (result.key().selection() == proto::TUNED) {
      result.set_outcome(proto::CONTENDED);
    }
  }
  EXPECT_EQ(time().tuned, 0);
  EXPECT_THAT(WorkloadSummary(time()), Not(HasSubstr("tuned")));
}

TEST_F(WorkloadTimeTest, LibrariesHaveTotalsWithOursWhereTheyLack) {
  EXPECT_TRUE(time().libraries.empty());  // nobody says that one did the work
  for (proto::BenchmarkResult& result : *run_.mutable_results()) {
    if (result.key().backend() == "onednn") result.set_library("oneDNN 2");
  }
  AddResult(run_, "gelu", "n=8/f32", proto::DEFAULT, "blis", 1e3);
  run_.mutable_results()->rbegin()->set_library("BLIS 1");  // does not count
  const WorkloadTime time = this->time();
  ASSERT_EQ(time.libraries.size(), 1);
  EXPECT_EQ(time.libraries[0].backend, "onednn");
  EXPECT_EQ(time.libraries[0].layers, 1);
  EXPECT_DOUBLE_EQ(time.libraries[0].time_ns, 24 * 50e3 + 48 * 1e3);
  EXPECT_THAT(WorkloadSummary(time),
              HasSubstr("oneDNN 2: 1.25 ms (0.63 of our time), with holes: 1 "
                        "of 2 layers its own (0.62), 48.0 us ours, of add "
                        "n=8/f32\n"));
}

TEST_F(WorkloadTimeTest, TheLimitIsThatOfTheCeilingsOrTheBest) {
  EXPECT_EQ(time().limit_ns, 0);
  for (proto::BenchmarkResult& result : *run_.mutable_results()) {
    if (result.key().backend().empty() &&
        result.key().selection() == proto::DEFAULT) {
      result.set_roofline_fraction(.9);
    }
  }
  const WorkloadTime time = this->time();
  EXPECT_DOUBLE_EQ(time.layers[3].limit_ns, 48 * .9e3);
  // oneDNN takes less than the 90 us that the ceilings are said to allow.
  EXPECT_DOUBLE_EQ(time.layers[1].limit_ns, 24 * 50e3);
  EXPECT_DOUBLE_EQ(time.limit_ns, 24 * 50e3 + 48 * .9e3);
  EXPECT_THAT(WorkloadSummary(time), HasSubstr("limit: 1.24 ms by this"));
}

TEST_F(WorkloadTimeTest, ThreadsAreToldApart) {
  AddResult(run_, "add", "n=8/f32", proto::DEFAULT, "", 500);
  run_.mutable_results()->rbegin()->mutable_key()->set_threads(2);
  const std::vector<WorkloadTime> times = WorkloadTimes(run_);
  ASSERT_EQ(times.size(), 2);
  EXPECT_EQ(times[0].measured, 2);
  EXPECT_EQ(times[1].threads, 2);
  EXPECT_EQ(times[1].measured, 1);
  EXPECT_DOUBLE_EQ(times[1].default_ns, 48 * 500);
  EXPECT_THAT(times[1].missing, ElementsAre("linear m=1,n=1,k=1/f32"));
}

TEST_F(WorkloadTimeTest, ARunOfNoWorkloadHasNone) {
  run_.clear_workload_layers();
  EXPECT_TRUE(WorkloadTimes(run_).empty());
}

}  // namespace
}  // namespace optrail::tracker
