#include "suites/workload/tasks.h"

#include <set>
#include <string>

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/core/backend.h"

namespace optrail::suites {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

proto::Hardware EightCores() {
  proto::Hardware hardware;
  hardware.set_id("test-8c");
  hardware.set_cores(8);
  hardware.set_l1d_bytes(32 << 10);
  hardware.set_l2_bytes(1 << 20);
  hardware.set_l3_bytes(32 << 20);
  hardware.set_simd_bits(512);
  return hardware;
}

std::vector<TaskEntry> Select(const TaskSelection& selection) {
  const auto tasks = SelectTasks(selection, EightCores());
  EXPECT_TRUE(tasks.ok()) << tasks.status();
  return tasks.ok() ? *tasks : std::vector<TaskEntry>();
}

std::string ErrorOf(const TaskSelection& selection, absl::StatusCode code) {
  const auto tasks = SelectTasks(selection, EightCores());
  EXPECT_EQ(tasks.status().code(), code) << tasks.status();
  return std::string(tasks.status().message());
}

std::vector<std::string> Texts(const std::vector<TaskEntry>& tasks) {
  std::vector<std::string> texts;
  for (const TaskEntry& task : tasks) {
    texts.push_back(ShortTaskText(task.task));
  }
  return texts;
}

// Two layers, with counts, for one thread and for all cores.
std::string WriteWorkload() {
  const std::string path = ::testing::TempDir() + "/two.workload.textproto";
  EXPECT_TRUE(WriteFileAtomically(path, R"(
      name: "two"
      layer { operator_name: "add" shape: "n=4096/f32" count: 3 doc: "first" }
      layer { operator_name: "softmax" shape: "rows=8,cols=64/f32" }
      threads: [1, 0]
  )")
                  .ok());
  return path;
}

TEST(SelectTasks, MoreThreadsThanCoresAreRefusedWithTheirNumber) {
  TaskSelection selection;
  selection.op_regex = "add";
  selection.threads = {1, 99};
  const std::string error =
      ErrorOf(selection, absl::StatusCode::kInvalidArgument);
  EXPECT_NE(error.find("--threads: 99 threads: this process may use 8 cores"),
            std::string::npos)
      << error;
}

TEST(SelectTasks, ALaunchModeThatTheDeviceLacksIsRefusedBeforehand) {
  TaskSelection selection;
  selection.op_regex = "add";
  selection.launch_mode = proto::GRAPH;
  EXPECT_THAT(ErrorOf(selection, absl::StatusCode::kInvalidArgument),
              AllOf(HasSubstr("--launch=graph"), HasSubstr("cpu")));
}

TEST(SelectTasks, ABackendThatTheOperatorLacksIsNamedAndNotItsShape) {
  TaskSelection selection;
  selection.op_regex = "add";
  selection.backend = "openblas";
  EXPECT_THAT(
      ErrorOf(selection, absl::StatusCode::kNotFound),
      AllOf(HasSubstr("add has no backend openblas for cpu; there are: "),
            HasSubstr("cpu")));
  selection.op_regex = "";
  selection.backend = "nosuch";
  EXPECT_THAT(ErrorOf(selection, absl::StatusCode::kNotFound),
              HasSubstr("no operator has a backend nosuch for cpu"));
}

TEST(SelectTasks, SeveralBackendsAreNamedBetweenCommas) {
  TaskSelection selection;
  selection.op_regex = "add";
  selection.shape_regex = "n=4096/f32";
  selection.backend = "all";
  EXPECT_TRUE(WantsAllBackends("cpu,all"));
  const std::vector<TaskEntry> all = Select(selection);
  for (const TaskEntry& task : all) {
    EXPECT_NE(task.backend->name().substr(0, 7), "halide_")
        << "Halide's own autoschedulers are taken by name";
  }
  selection.backend = "all,cpu";
  EXPECT_EQ(Texts(Select(selection)), Texts(all)) << "cpu once";
  selection.backend = "cpu,nosuch";
  EXPECT_THAT(ErrorOf(selection, absl::StatusCode::kNotFound),
              HasSubstr("add has no backend nosuch for cpu"));
}

TEST(SelectTasks, AWrongNameNamesTheClosestOne) {
  TaskSelection selection;
  selection.op_regex = "sofmax";
  EXPECT_THAT(ErrorOf(selection, absl::StatusCode::kNotFound),
              HasSubstr("did you mean --op=softmax?"));
}

TEST(SelectTasks, AShapeThatIsWrittenInFullNeedsNoFile) {
  TaskSelection selection;
  selection.op_regex = "softmax|add";
  selection.shape_regex = "rows=7,cols=11/f32";
  const std::vector<TaskEntry> tasks = Select(selection);
  ASSERT_EQ(tasks.size(), 1);
  EXPECT_EQ(ShortTaskText(tasks[0].task), "softmax rows=7,cols=11/f32");
  EXPECT_FALSE(tasks[0].task.kernel_id().empty());
  // Shapes that a file lists are taken from there.
  selection.shape_regex = "n=393216/f32";
  EXPECT_EQ(Select(selection).size(), 1);
  // Of no data type, of one that nobody has, of other dimensions.
  selection.op_regex = "softmax";
  for (const auto& [shape, why] :
       std::vector<std::pair<const char*, const char*>>{
           {"rows=7,cols=11", "expected DIM=SIZE,.../TYPE"},
           {"rows=7,cols=11/f64", "f64"},
           {"rows=7,lines=11/f32", "expected \"rows,cols\" in this order"},
           {"rows=0,cols=11/f32", "expected a positive integer"}}) {
    selection.shape_regex = shape;
    EXPECT_THAT(ErrorOf(selection, absl::StatusCode::kNotFound),
                AllOf(HasSubstr("written in full"), HasSubstr(why)));
  }
}

TEST(SelectTasks, TakesEveryShapeOfTheShapesFiles) {
  std::set<std::string> ops;
  for (const TaskEntry& task : Select({})) {
    ops.insert(task.task.operator_name());
    EXPECT_EQ(task.task.threads(), 1);
    EXPECT_EQ(task.task.hardware_id(), "test-8c");
    EXPECT_EQ(task.task.cache_mode(), proto::HOT);
    EXPECT_FALSE(task.task.kernel_id().empty());
    EXPECT_EQ(task.entry->op->name(), task.task.operator_name());
  }
  EXPECT_TRUE(ops.count("add") && ops.count("matmul") && ops.count("softmax"));
}

TEST(SelectTasks, OperatorsOfTestsAreTakenOnlyWhenAskedFor) {
  TaskSelection selection;
  selection.op_regex = "faulty";
  EXPECT_THAT(ErrorOf(selection, absl::StatusCode::kNotFound),
              AllOf(HasSubstr("--op=faulty"), HasSubstr("add, "),
                    HasSubstr(", matmul, ")));
  selection.with_test_only = true;
  EXPECT_FALSE(Select(selection).empty());
}

TEST(SelectTasks, OpMatchesTheWholeNameAndShapeSomewhere) {
  TaskSelection selection;
  selection.op_regex = "ad";
  ErrorOf(selection, absl::StatusCode::kNotFound);
  selection.op_regex = "ad.";
  selection.shape_regex = "393216";
  EXPECT_THAT(Texts(Select(selection)), ElementsAre("add n=393216/f32"));
}

TEST(SelectTasks, AWorkloadBringsItsLayersCountsAndThreads) {
  TaskSelection selection;
  selection.workload = WriteWorkload();
  const std::vector<TaskEntry> tasks = Select(selection);
  EXPECT_THAT(Texts(tasks), ElementsAre("add n=4096/f32", "add n=4096/f32 x8",
                                        "softmax rows=8,cols=64/f32",
                                        "softmax rows=8,cols=64/f32 x8"));
  EXPECT_EQ(tasks[0].count, 3);
  EXPECT_EQ(tasks[0].doc, "first");
  EXPECT_EQ(tasks[2].count, 1);
}

TEST(SelectTasks, ThreadsOfTheCommandLineWinOverTheWorkloads) {
  TaskSelection selection;
  selection.workload = WriteWorkload();
  selection.op_regex = "add";
  selection.threads = {4};
  EXPECT_THAT(Texts(Select(selection)), ElementsAre("add n=4096/f32 x4"));
}

TEST(SelectTasks, ColdCachesAreAnotherTask) {
  TaskSelection selection;
  selection.op_regex = "add";
  selection.shape_regex = "n=393216";
  selection.cache_mode = proto::COLD;
  EXPECT_THAT(Texts(Select(selection)), ElementsAre("add n=393216/f32 cold"));
}

TEST(SelectTasks, ABrokenRegexIsNamedWithItsFlag) {
  TaskSelection selection;
  selection.op_regex = "add(";
  EXPECT_THAT(ErrorOf(selection, absl::StatusCode::kInvalidArgument),
              HasSubstr("--op=add("));
  selection.op_regex = "";
  selection.shape_regex = "n=[";
  EXPECT_THAT(ErrorOf(selection, absl::StatusCode::kInvalidArgument),
              HasSubstr("--shape=n=["));
}

TEST(SelectTasks, SaysWhetherTheShapeOrTheOperatorMatchedNothing) {
  TaskSelection selection;
  selection.op_regex = "matmull";
  EXPECT_THAT(ErrorOf(selection, absl::StatusCode::kNotFound),
              AllOf(HasSubstr("no operator matches --op=matmull"),
                    HasSubstr("matmul"), Not(HasSubstr("faulty"))));
  selection.op_regex = "matmul";
  selection.shape_regex = "m=3,";
  EXPECT_THAT(ErrorOf(selection, absl::StatusCode::kNotFound),
              AllOf(HasSubstr("no shape of matmul"), HasSubstr("m=3,")));
}

TEST(SelectTasks, SaysThatTheWorkloadHasNoLayerOfTheOperator) {
  TaskSelection selection;
  selection.workload = "smoke";
  selection.op_regex = "matmull";
  EXPECT_THAT(ErrorOf(selection, absl::StatusCode::kNotFound),
              HasSubstr("no operator matches --op=matmull"));
  selection.op_regex = "faulty.*";
  selection.with_test_only = true;
  EXPECT_THAT(ErrorOf(selection, absl::StatusCode::kNotFound),
              AllOf(HasSubstr("workload smoke has no layer of faulty.*"),
                    HasSubstr("--workload=smoke")));
  selection.op_regex = "";
  selection.shape_regex = "m=3,";
  EXPECT_THAT(ErrorOf(selection, absl::StatusCode::kNotFound),
              AllOf(HasSubstr("no shape of any operator matches"),
                    HasSubstr("in --workload=smoke"),
                    Not(HasSubstr("written in full"))));
}

TEST(SelectTasks, AnUnknownWorkloadListsTheKnownOnes) {
  TaskSelection selection;
  selection.workload = "smok";
  EXPECT_THAT(ErrorOf(selection, absl::StatusCode::kNotFound),
              AllOf(HasSubstr("\"smok\""), HasSubstr("smoke")));
}

TEST(BindTask, ThreadsReachTheConstraints) {
  TaskSelection selection;
  selection.op_regex = "matmul";
  selection.shape_regex = "m=512,n=512,k=512/f32";
  selection.threads = {1, 8};
  const std::vector<TaskEntry> tasks = Select(selection);
  ASSERT_EQ(tasks.size(), 2);
  const auto one = BindTask(tasks[0], EightCores());
  const auto eight = BindTask(tasks[1], EightCores());
  ASSERT_TRUE(one.ok() && eight.ok()) << one.status() << eight.status();
  proto::Config config = one->bound->default_config();
  EXPECT_TRUE(one->bound->Validate(config).ok());
  EXPECT_TRUE(eight->bound->Validate(config).ok());
  for (proto::KnobValue& knob : *config.mutable_set()) {
    if (knob.knob() == "thread_split") knob.set_variant("columns");
  }
  EXPECT_TRUE(eight->bound->Validate(config).ok());
  EXPECT_THAT(std::string(one->bound->Validate(config).message()),
              HasSubstr("one thread has nothing to share out"));
}

// A backend with a space and no kernel.
class SpaceAlone : public ops::Backend {
 public:
  explicit SpaceAlone(const std::string& space) {
    ops::BackendFiles files;
    files.space = {"alone.space.textproto", space};
    SetFiles(files);
  }
  std::string name() const override { return "alone"; }
  proto::DeviceKind kind() const override { return proto::CPU; }
  absl::StatusOr<std::string> Id(const ops::Target&) const override {
    return "alone";
  }
  absl::StatusOr<ops::Recipe> Describe(
      const ops::CompileRequest&) const override {
    return absl::UnimplementedError("no kernel");
  }
  absl::StatusOr<std::unique_ptr<ops::Invocation>> Load(
      const ops::Artifact&, const proto::Shape&, const proto::Config&,
      ops::Device&) const override {
    return absl::UnimplementedError("no kernel");
  }
};

// A space that asks for a wrong attribute may have no config for it.
TEST(BindTask, WrongAttributesAreNamedBeforeAnyConfigIsSought) {
  TaskSelection selection;
  selection.op_regex = "add";
  selection.shape_regex = "n=4096/f32";
  std::vector<TaskEntry> tasks = Select(selection);
  ASSERT_EQ(tasks.size(), 1);
  const SpaceAlone backend(R"(
      attribute { name: "padding" int: 1 }
      knob { name: "u" ints: [1, 2] doc: "unrolled" }
      constraint { expr: "u < attr.padding" why: "less than the padding" }
      default { set { knob: "u" int: 1 } }
  )");
  tasks[0].backend = &backend;
  EXPECT_THAT(std::string(BindTask(tasks[0], EightCores()).status().message()),
              AllOf(HasSubstr("alone.space.textproto"),
                    HasSubstr("operator add has no attribute \"padding\"")));
}

}  // namespace
}  // namespace optrail::suites
